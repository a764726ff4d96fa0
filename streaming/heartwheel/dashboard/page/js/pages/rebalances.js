// Page Rebalances: of each group when it rebalanced, how long, why, who was waited for, and the time lost a day.

import { get, isAborted } from "../api.js";
import { groupHref, memberHref, time } from "../cells.js";
import { h, put } from "../dom.js";
import { filterField } from "../filter_field.js";
import { clock, count, counted, duration, NOTHING, utc } from "../format.js";
import { empty, failed, head } from "../states.js";
import { throttled } from "../throttle.js";
import { spaced } from "../words.js";

/** @import { GroupRebalances, Rebalance, RebalancePage } from "../answers.d.ts" */
/** @import { Page, Visit } from "../types.d.ts" */

const GROUPS = 50;

/** More than these of a group are in its timeline alone. */
const LONGEST = 5;

/** @type {Page} */
export const rebalancesPage = {
  tab: "/rebalances",
  title: () => "Rebalances",
  mount(main, { router, stream, signal }) {
    const view = new View({ router, stream, signal });
    const about =
      "What rebalances cost. While a group rebalances, nobody in it works; the groups that lost most time come first.";
    main.append(head("Rebalances", about), view.tools(), view.body);
    view.start();
  },
};

class View {
  /** @param {Pick<Visit, "router" | "stream" | "signal">} visit */
  constructor({ router, stream, signal }) {
    this.router = router;
    this.stream = stream;
    this.signal = signal;
    this.asked = 0;
    this.text = router.query.get("text") ?? "";
    this.body = h("div", { class: "stack" });
    this.ask = throttled(() => this.load(), 1_500, signal);
  }

  tools() {
    const changed = (/** @type {string} */ text) => {
      this.text = text;
      this.router.keep({ text });
      this.load();
    };
    const { text: value, signal } = this;
    return h(
      "div",
      { class: "tools" },
      filterField({ value, placeholder: "Group", label: "Filter by group", changed, signal }),
    );
  }

  start() {
    this.stream.addEventListener("groups", this.ask, { signal: this.signal });
    this.stream.addEventListener("reload", this.ask, { signal: this.signal });
    this.ask();
  }

  async load() {
    const asked = ++this.asked;
    try {
      const answer = await get("/api/rebalances", { text: this.text, limit: GROUPS }, { signal: this.signal });
      if (asked === this.asked) this.show(answer);
    } catch (error) {
      if (!isAborted(error) && asked === this.asked) put(this.body, failed(error));
    }
  }

  /** @param {RebalancePage} page */
  show({ groups, from_ms: from, to_ms: to, matched }) {
    if (!groups.length || from === null || to === null) {
      put(this.body, this.text ? empty("No group matches this filter.") : empty("No rebalance has been seen yet."));
      return;
    }
    const more = matched > groups.length ? h("p", { class: "soft" }, `${count(matched - groups.length)} more groups.`) : null;
    put(
      this.body,
      groups.map((group) => section(group, from, to)),
      more,
    );
  }
}

/**
 * @param {GroupRebalances} group
 * @param {number} from
 * @param {number} to
 */
function section(group, from, to) {
  const { group_id: id, days, rows } = group;
  return h(
    "section",
    { class: "panel rebalances" },
    h(
      "div",
      { class: "panel-head" },
      h("h2", {}, h("a", { class: "mono wrap", href: groupHref(id) }, id)),
      h("span", { class: "soft" }, cost(group)),
    ),
    strip(group, from, Math.max(to, from + 1)),
    h("p", { class: "strip-ends soft small" }, h("span", {}, clock(from)), h("span", {}, clock(to))),
    h(
      "p",
      { class: "soft small" },
      "Lost a day (UTC): ",
      days
        .slice(0, 7)
        .map(({ day, lost_ms: ms, rebalances: n }) => `${day}: ${ms === null ? "unknown" : duration(ms)} in ${counted(n, "rebalance")}`)
        .join("; "),
    ),
    list(id, longestOf(rows)),
  );
}

/** @param {GroupRebalances} group */
function cost({ rebalances, lost_ms: lost, longest_ms: longest, unmeasured }) {
  const all = counted(rebalances, "rebalance");
  if (lost === null || longest === null) return `${all}; how long is not known`;
  const but = unmeasured ? `, and ${count(unmeasured)} of unknown length` : "";
  return `${all}, ${duration(lost)} in all, the longest ${duration(longest)}${but}`;
}

/**
 * Draw when each rebalance was, and how long: the wider, the longer nobody worked.
 *
 * @param {GroupRebalances} group
 * @param {number} from
 * @param {number} to
 */
function strip({ group_id: id, rows }, from, to) {
  const element = h("div", {
    class: "strip",
    role: "img",
    "aria-label": `${id}: ${counted(rows.length, "rebalance")} from ${clock(from)} to ${clock(to)}`,
  });
  for (const row of rows) {
    const bar = h("span", {
      class: `strip-bar tone-${row.blocked_by.length ? "bad" : "warn"}`,
      title: `${utc(row.started_ms)}\n${took(row)}\n${row.reason}${row.blocked_by.length ? `\nwaited for ${row.blocked_by.join(", ")}` : ""}`,
    });
    bar.style.left = `${(100 * (row.started_ms - from)) / (to - from)}%`;
    bar.style.width = `${(100 * (row.duration_ms ?? 0)) / (to - from)}%`;
    element.append(bar);
  }
  return element;
}

/** @param {Rebalance} row */
const took = ({ duration_ms: ms, ended_ms: end }) =>
  end === null ? "runs" : ms === null ? "how long is not known" : `took ${duration(ms)}`;

/** @param {readonly Rebalance[]} rows */
const longestOf = (rows) =>
  [...rows].sort((one, other) => (other.duration_ms ?? 0) - (one.duration_ms ?? 0)).slice(0, LONGEST);

/**
 * @param {string} group
 * @param {readonly Rebalance[]} rows
 */
function list(group, rows) {
  return h(
    "ul",
    { class: "lines members" },
    rows.map((row) =>
      h(
        "li",
        {},
        h(
          "span",
          { class: "wrap", title: row.reason },
          time(row.started_ms),
          `, ${took(row)}: ${spaced(row.cause)}`,
          row.blocked_by.length ? [", waited for ", blockers(group, row.blocked_by)] : "",
        ),
        h("span", { class: "soft small nowrap" }, row.generation_id < 0 ? NOTHING : `gen. ${count(row.generation_id)}`),
      ),
    ),
  );
}

/**
 * @param {string} group
 * @param {readonly string[]} members
 */
const blockers = (group, members) =>
  members
    .slice(0, 3)
    .flatMap((member, at) => [
      at ? ", " : "",
      h("a", { class: "mono wrap", href: memberHref(group, member) }, member),
    ]);
