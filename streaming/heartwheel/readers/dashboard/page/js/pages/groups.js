// Page Groups: every group's state, its last change and why, which members block it now, and which groups are in a
// storm.

import { get } from "../api.js";
import { expiredAndTroubles, groupHref, linked, tagged, twoLines } from "../cells.js";
import { h, put } from "../dom.js";
import { ago, clock, count, countdown, counted, duration, membersOf, utc, NOTHING } from "../format.js";
import { groupList } from "../group_list.js";
import { LOGGED_GROUPS } from "../log_columns.js";
import { AT_END, fromLog } from "../source.js";
import { code, empty, head } from "../states.js";
import { table } from "../table.js";
import { animated } from "../throttle.js";
import { formerStateWords, kindWords, STATE_NAMES, stateWords, WHILE_IT_REBALANCES } from "../words.js";

/** @import { Blocked, Group, GroupPage, NewGroups } from "answers" */
/** @import { Stream } from "../stream.js" */
/** @import { Column, LineTexts, Page, Visit } from "../types.d.ts" */

const ROWS = 100;

const FILTERS = ["text", "state", "trouble", "order"];

/** The orders of the list, and its initial one. */
const WORST = "worst";

/** @type {Page} */
export const groupsPage = {
  tab: "/groups",
  title: () => "Groups",
  mount(main, { router, stream, signal }) {
    const view = new View({ router, stream, signal });
    const about = fromLog
      ? `Each group as it stands ${AT_END}, the worst first, with what was wrong and what to change.`
      : `The worst first. ${WHILE_IT_REBALANCES}`;
    main.append(head("Groups", about), view.tools(), view.body, view.foot);
    view.start();
  },
};

class View {
  /** @param {Pick<Visit, "router" | "stream" | "signal">} visit */
  constructor({ router, stream, signal }) {
    this.router = router;
    this.stream = stream;
    this.signal = signal;
    /** @type {Group[]} */
    this.rows = [];
    this.table = table({
      caption: "Groups",
      columns: fromLog ? LOGGED_GROUPS : columns(stream),
      key: (group) => group.group_id,
      sort: (order) => this.list.change({ order: this.filters.order === order ? "" : order }),
    });
    this.body = h("div", { class: "panel flush" });
    this.foot = h("div", { class: "pager" });
    this.list = groupList({ router, stream, signal }, {
      names: FILTERS,
      ask: (filters) => get("/api/groups", { ...filters, order: filters.order || WORST, limit: ROWS }, { signal }),
      show: (/** @type {GroupPage} */ page) => this.show(page),
      place: this.body,
    });
    this.filters = this.list.filters;
  }

  tools() {
    const { filters, list } = this;
    const states = STATE_NAMES.map((name) =>
      h("option", { value: name, selected: name === filters.state }, stateWords(name).label),
    );
    const state = h("select", { "aria-label": "Filter by state" }, h("option", { value: "" }, "Every state"), states);
    state.addEventListener("change", () => list.change({ state: state.value }));
    const trouble = h("input", { type: "checkbox", checked: filters.trouble === "true" });
    trouble.addEventListener("change", () => list.change({ trouble: trouble.checked ? "true" : "" }));
    return h(
      "div",
      { class: "tools" },
      list.field,
      h("span", { class: "field" }, state),
      h("label", { class: "check" }, trouble, "Only in trouble"),
    );
  }

  start() {
    const { stream, signal } = this;
    let asOf = stream.asOfMs;
    const look = () => {
      if ((asOf === null) === (stream.asOfMs === null)) return;
      asOf = stream.asOfMs;
      this.rows = this.rows.map((group) => ({ ...group }));
      if (this.rows.length) this.draw();
    };
    stream.addEventListener("now", look, { signal });
    stream.addEventListener("link", look, { signal });
    stream.addEventListener("groups", ({ detail }) => this.hear(detail), { signal });
    animated(() => this.tick(), 500, signal);
    this.list.again();
  }

  /** @param {GroupPage} page */
  show({ rows, total, note }) {
    this.rows = rows;
    this.table.order(this.filters.order || WORST);
    if (rows.length) this.draw();
    else put(this.body, this.nothing());
    const shown = rows.length ? `${count(rows.length)} shown of ${count(total)}.` : "";
    put(this.foot, h("span", {}, shown), h("span", {}, note ?? ""));
  }

  draw() {
    if (this.table.element.parentNode !== this.body) put(this.body, this.table.element);
    this.table.show(this.rows);
  }

  /**
   * Groups in the list are updated in place; only the server knows whether others belong into it.
   *
   * @param {NewGroups} news
   */
  hear({ rows, skipped }) {
    const changed = new Map(rows.map((group) => [group.group_id, group]));
    const known = this.rows.filter((group) => changed.has(group.group_id)).length;
    this.rows = this.rows.map((group) => changed.get(group.group_id) ?? group);
    if (known) this.draw();
    if (known < changed.size || skipped || this.filters.order !== "name") this.list.again();
  }

  /** Continue the countdowns between two updates. */
  tick() {
    if (!this.rows.some(({ blocked }) => blocked)) return;
    this.rows = this.rows.map((group) => (group.blocked ? { ...group } : group));
    this.draw();
  }

  nothing() {
    if (FILTERS.some((name) => name !== "order" && this.filters[name])) {
      const onclick = () => this.router.go("/groups");
      const clear = h("button", { type: "button", class: "button", onclick }, "Clear the filters");
      return empty("No group matches these filters.", clear);
    }
    if (fromLog) return empty("No group is in what was read of the log.");
    const words = "Groups show up with their first heartbeat. To see some, run ";
    return empty("No group has been seen yet.", words, code("heartwheel demo"), ".");
  }
}

/**
 * @param {Stream} stream
 * @returns {Column<Group>[]}
 */
function columns(stream) {
  return [
    {
      label: "Group",
      width: "21%",
      order: "name",
      className: "c-name",
      cell: () =>
        linked((group) => ({
          href: groupHref(group.group_id),
          first: group.group_id,
          second: group.kind ? group.kind : "kind not known",
          titleSecond: kindWords(group.kind),
        })),
    },
    {
      label: "State",
      width: "18%",
      className: "c-state",
      about: "Hover over a state to read what it means",
      cell: () => tagged((group) => ({ ...stateNow(group, stream), title: group.state_words })),
    },
    {
      label: "Members",
      width: "13%",
      order: "members",
      className: "number",
      cell: () =>
        twoLines((group) => ({
          first: membersOf(group),
          second: `gen. ${group.generation_id < 0 ? NOTHING : count(group.generation_id)}`,
        })),
    },
    { label: "Last change", width: "21%", order: "changed", className: "c-change", cell: () => twoLines((group) => lastChange(group, stream.serverMs())) },
    {
      label: "Waiting for",
      width: "15%",
      className: "c-waiting",
      about: "Who has not rejoined, or not synced, and how long the group still waits",
      cell: () => twoLines((group) => blockers(group, stream.asOfMs === null ? stream.serverMs() : null)),
    },
    { label: "Expired", order: "expired", width: "12%", about: "Members expired in the window, and what is wrong with the group", cell: expiredAndTroubles },
  ];
}

/**
 * Return the words for a group's state, which is an old one while no engine processes the groups. A group with a member
 * of unknown session is not known to be well.
 *
 * @param {Pick<Group, "state" | "unknown_sessions">} group
 * @param {Stream} stream
 */
export function stateNow({ state, unknown_sessions: unknown }, { asOfMs }) {
  const words = asOfMs === null ? stateWords(state) : formerStateWords(state);
  return unknown && words.tone === "good" ? { ...words, tone: "calm" } : words;
}

/**
 * @param {Group} group
 * @param {number} now
 * @returns {LineTexts}
 */
function lastChange({ last }, now) {
  if (!last) return { first: "none seen", second: "" };
  const length =
    last.duration_ms === null || last.duration_ms === undefined ? "" : `, took ${duration(last.duration_ms)}`;
  return {
    first: last.words,
    second: `${ago(Math.max(0, now - last.began_ms))}${length}`,
    title: last.reason,
    titleSecond: `${clock(last.began_ms)}, ${utc(last.began_ms)}`,
  };
}

/**
 * @param {Group} group
 * @param {number | null} now
 * @returns {LineTexts}
 */
function blockers({ blocked }, now) {
  if (!blocked) return { first: NOTHING, second: "" };
  const left =
    now === null
      ? "no decisions"
      : blocked.deadline_ms === null || blocked.deadline_ms === undefined
      ? "until when is not known"
      : `${countdown(Math.max(0, blocked.deadline_ms - now))} left`;
  return { first: waitedFor(blocked), second: left, title: blocked.awaiting.join("\n") };
}

/** @param {Blocked} rebalance */
function waitedFor({ awaiting, awaiting_count: all, to }) {
  if (all === 1 && awaiting.length) return awaiting[0];
  return all ? counted(all, "member") : to === "sync" ? "the assignment" : "others to join";
}
