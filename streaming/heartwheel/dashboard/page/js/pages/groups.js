// Page Groups: every group's state, its last rebalance and why, who blocks one now, and who rebalances again and again.

import { get } from "../api.js";
import { groupHref, linked, tagged, twoLines } from "../cells.js";
import { h, put } from "../dom.js";
import { ago, clock, count, countdown, counted, duration, NOTHING, utc } from "../format.js";
import { code, empty, failed, head } from "../states.js";
import { table } from "../table.js";
import { animated, settled, throttled } from "../throttle.js";
import { kindWords, spaced, STATE_NAMES, stateWords } from "../words.js";

const ROWS = 100;

export const groupsPage = {
  tab: "/groups",
  title: () => "Groups",
  mount(main, { router, stream, signal }) {
    const filters = Object.fromEntries(["text", "state", "storm"].map((name) => [name, router.query.get(name) ?? ""]));
    const body = h("div", { class: "panel flush" });
    const foot = h("div", { class: "pager" });
    const list = table({ caption: "Groups", columns: columns(stream), key: (group) => group.group_id });
    let rows = [];
    const draw = () => {
      if (list.element.parentNode !== body) put(body, list.element);
      list.show(rows);
    };
    const load = async () => {
      try {
        const answer = await get("/api/groups", { ...filters, limit: ROWS }, { signal });
        rows = answer.rows;
        if (rows.length) draw();
        else
          put(
            body,
            nothing(filters, () => router.go("/groups")),
          );
        put(
          foot,
          h("span", {}, rows.length ? `${count(rows.length)} shown of ${count(answer.total)}.` : ""),
          h("span", {}, answer.note ?? ""),
        );
      } catch (error) {
        if (error.name !== "AbortError") put(body, failed(error));
      }
    };
    const ask = throttled(load, 1_500, signal);
    stream.addEventListener(
      "groups",
      ({ detail }) => {
        const changed = new Map(detail.rows.map((group) => [group.group_id, group]));
        const known = rows.filter((group) => changed.has(group.group_id)).length;
        rows = rows.map((group) => changed.get(group.group_id) ?? group);
        if (known) draw();
        if (known < changed.size || detail.skipped || filters.state || filters.storm) ask(); // who is in the list may be another now
      },
      { signal },
    );
    stream.addEventListener("reload", ask, { signal });
    animated(
      () =>
        rows.some(({ blocked }) => blocked) &&
        ((rows = rows.map((group) => (group.blocked ? { ...group } : group))), draw()),
      500,
      signal,
    );
    const filter = (change) => {
      Object.assign(filters, change);
      router.keep(filters);
      load();
    };
    main.append(
      head(
        "Groups",
        "Each group as the engine sees it. A group that rebalances has nobody working for as long as it does.",
      ),
      tools(filters, filter, signal),
      body,
      foot,
    );
    ask();
  },
};

function tools(filters, filter, signal) {
  const text = h("input", {
    type: "search",
    value: filters.text,
    placeholder: "Group",
    "aria-label": "Filter by group",
    "data-filter": true,
    maxlength: 200,
  });
  text.addEventListener(
    "input",
    settled(() => filter({ text: text.value.trim() }), 250, signal),
  );
  const state = h(
    "select",
    { "aria-label": "Filter by state" },
    h("option", { value: "" }, "Every state"),
    STATE_NAMES.map((name) => h("option", { value: name, selected: name === filters.state }, stateWords(name).label)),
  );
  state.addEventListener("change", () => filter({ state: state.value }));
  const storm = h("input", { type: "checkbox", checked: filters.storm === "true" });
  storm.addEventListener("change", () => filter({ storm: storm.checked ? "true" : "" }));
  return h(
    "div",
    { class: "tools" },
    h("label", { class: "field grow" }, text, h("span", { class: "kbd", title: "Press / to filter" }, "/")),
    h("span", { class: "field" }, state),
    h("label", { class: "check" }, storm, "Only storms"),
  );
}

function columns(stream) {
  return [
    {
      label: "Group",
      width: "25%",
      className: "wide",
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
      about: "Hover over a state to read what it means",
      cell: () => tagged((group) => ({ ...stateWords(group.state), title: group.state_words })),
    },
    {
      label: "Members",
      width: "9%",
      className: "number",
      cell: () =>
        twoLines((group) => ({
          first: count(group.members),
          second: `gen. ${group.generation_id < 0 ? NOTHING : count(group.generation_id)}`,
        })),
    },
    { label: "Last rebalance", width: "21%", cell: () => twoLines((group) => lastRebalance(group, stream.serverMs())) },
    {
      label: "Waiting for",
      width: "15%",
      about: "Who has not rejoined, and how long the group still waits",
      cell: () => twoLines((group) => blockers(group, stream.serverMs())),
    },
    { label: "Expired", width: "12%", about: "Members expired in the window; rebalances in a row", cell: expiredCell },
  ];
}

function lastRebalance({ last }, now) {
  if (!last) return { first: "none seen", second: "" };
  const length =
    last.duration_ms === null || last.duration_ms === undefined ? "" : `, took ${duration(last.duration_ms)}`;
  return {
    first: spaced(last.cause ?? last.type),
    second: `${ago(Math.max(0, now - last.time_ms))}${length}`,
    title: last.reason,
    titleSecond: `${clock(last.time_ms)}, ${utc(last.time_ms)}`,
  };
}

function blockers({ blocked }, now) {
  if (!blocked) return { first: NOTHING, second: "" };
  const left =
    blocked.deadline_ms === null || blocked.deadline_ms === undefined
      ? ""
      : `${countdown(Math.max(0, blocked.deadline_ms - now))} left`;
  return { first: waitedFor(blocked), second: left, title: blocked.awaiting.join("\n") };
}

function waitedFor({ awaiting, awaiting_count: all }) {
  if (all === 1) return awaiting[0];
  return all ? counted(all, "member") : "others to join";
}

function expiredCell() {
  const line = twoLines((group) => ({ first: count(group.expirations), second: "" }));
  const badge = tagged(({ storm }) =>
    storm
      ? {
          icon: "storm",
          label: `storm: ${count(storm.count)}`,
          tone: "bad",
          title: `${counted(storm.count, "rebalance")} in ${duration(storm.window_ms)}; it began with: ${spaced(storm.first_cause)}`,
        }
      : null,
  );
  return { element: h("div", {}, line.element, badge.element), fill: (group) => (line.fill(group), badge.fill(group)) };
}

function nothing(filters, clear) {
  if (Object.values(filters).some(Boolean))
    return empty(
      "No group matches these filters.",
      h("button", { type: "button", class: "button", onclick: clear }, "Clear the filters"),
    );
  return empty(
    "No group has been seen yet.",
    "Groups show up with their first rebalance or expiration. To see some, run ",
    code("heartwheel demo"),
    ".",
  );
}
