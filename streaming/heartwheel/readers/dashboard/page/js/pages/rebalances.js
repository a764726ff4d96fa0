// Page Rebalances: for each group when it rebalanced, how long, why, for which members it waited, and how long a day.

import { get } from "../api.js";
import { groupHref, memberHref, time } from "../cells.js";
import { h, put } from "../dom.js";
import { clock, count, counted, duration, NOTHING, utc } from "../format.js";
import { groupList } from "../group_list.js";
import { follows, fromLog } from "../source.js";
import { empty, head } from "../states.js";
import { spaced, WHILE_IT_REBALANCES } from "../words.js";

/** @import { GroupRebalances, Rebalance, RebalancePage } from "answers" */
/** @import { Page } from "../types.d.ts" */

const GROUPS = 50;

const OPEN = fromLog && !follows ? "not over at the end of the log" : "still under way";

/** @type {Page} */
export const rebalancesPage = {
  tab: "/rebalances",
  title: () => "Rebalances",
  mount(main, visit) {
    const { stream, signal } = visit;
    const body = h("div", { class: "stack" });
    const { again, field } = groupList(visit, {
      names: ["text"],
      ask: (asked) => get("/api/rebalances", { ...asked, limit: GROUPS }, { signal }),
      show: (page, { text }) => show(body, page, text),
      place: body,
    });
    const about =
      `What rebalances cost. ${WHILE_IT_REBALANCES} The groups that rebalanced for longest come first.` +
      (fromLog ? " Groups with epochs (consumer, share, streams) are not here: no member of them stops for a new epoch." : "");
    main.append(head("Rebalances", about), h("div", { class: "tools" }, field), body);
    stream.addEventListener("groups", again, { signal });
    again();
  },
};

/**
 * @param {HTMLElement} body
 * @param {RebalancePage} page
 * @param {string} text
 */
function show(body, { groups, from_ms: from, to_ms: to, slot_ms: slot, matched }, text) {
  if (!groups.length || from === null || to === null)
    return put(body, text ? empty("No group matches this filter.") : empty("No rebalance has been seen yet."));
  const more = matched > groups.length ? h("p", { class: "soft" }, `${count(matched - groups.length)} more groups.`) : null;
  return put(
    body,
    groups.map((group) => section(group, from, to, slot)),
    more,
  );
}

/**
 * @param {GroupRebalances} group
 * @param {number} from
 * @param {number} to
 * @param {number} slot
 */
function section(group, from, to, slot) {
  const { group_id: id, days, longest, rebalances } = group;
  return h(
    "section",
    { class: "panel rebalances" },
    h(
      "div",
      { class: "panel-head" },
      h("h2", {}, h("a", { class: "mono wrap", href: groupHref(id) }, id)),
      h("span", { class: "soft" }, cost(group)),
    ),
    strip(group, from, slot),
    h("p", { class: "strip-ends soft small" }, h("span", {}, clock(from)), h("span", {}, clock(to))),
    h(
      "p",
      { class: "soft small" },
      fromLog ? "Rebalanced per day: " : "Rebalanced per day (UTC): ",
      days
        .slice(0, 7)
        .map(({ day, lost_ms: ms, rebalances: n, unmeasured }) => {
          if (ms === null) return `${day}: ${counted(n, "rebalance")} of unknown length`;
          const more = unmeasured ? `, and ${count(unmeasured)} more of unknown length` : "";
          return `${day}: ${duration(ms)} in ${counted(n - unmeasured, "rebalance")}${more}`;
        })
        .join("; "),
    ),
    h(
      "p",
      { class: "small list-title" },
      rebalances > longest.length ? listTitle(longest, rebalances) : "",
    ),
    list(id, longest),
  );
}

/**
 * @param {readonly Rebalance[]} listed
 * @param {number} all
 */
function listTitle([first, ...others], all) {
  const open = first.ended_ms === null;
  return `${open ? "The open one and the" : "The"} ${count(others.length + (open ? 0 : 1))} longest of ${count(all)}:`;
}

/** @param {GroupRebalances} group */
function cost({ rebalances, lost_ms: lost, longest_ms: longest, unmeasured, longest: listed }) {
  const all = counted(rebalances, "rebalance");
  const open = listed[0]?.ended_ms === null;
  const unknown = unmeasured - (open ? 1 : 0);
  const still = open ? ", one still under way" : "";
  if (lost === null || longest === null) return unknown ? `${all}${still}; how long is not known` : `${all}, still under way`;
  const but = unknown ? `, and ${count(unknown)} of unknown length` : "";
  return `${all}, ${duration(lost)} in all, the longest ${duration(longest)}${but}${still}`;
}

/**
 * Draw how much of each slot of time the group rebalanced: the higher, the more.
 *
 * @param {GroupRebalances} group
 * @param {number} from
 * @param {number} slot
 */
function strip({ group_id: id, strip: slots, rebalances }, from, slot) {
  const element = h("div", {
    class: "strip",
    role: "img",
    "aria-label": `${id}: ${counted(rebalances, "rebalance")}; each bar is ${duration(slot)}, as high as the part of it in which the group rebalanced`,
  });
  for (const { at, lost_ms: lost, rebalances: began, blocked } of slots) {
    const share = lost === null ? null : Math.min(1, lost / slot);
    const bar = h("span", {
      class: `strip-bar tone-${blocked ? "bad" : share === null ? "calm" : "warn"}`,
      title: slotWords(from + at * slot, share, began, blocked),
    });
    bar.style.left = `${at / 2}%`;
    bar.style.height = share === null ? "" : `${Math.max(6, 100 * share).toFixed(1)}%`;
    element.append(bar);
  }
  return element;
}

/**
 * @param {number} at
 * @param {number | null} share
 * @param {number} began
 * @param {boolean} blocked
 */
function slotWords(at, share, began, blocked) {
  const cost = share === null ? "how long is not known" : `it rebalanced for ${percent(share)} of this time`;
  return `${utc(Math.round(at))}\n${counted(began, "rebalance")} began; ${cost}${blocked ? "\nwaited for members that were taken out" : ""}`;
}

/** @param {number} share */
const percent = (share) => (share > 0 && share < 0.01 ? "less than 1 %" : `${Math.round(100 * share)} %`);

/** @param {Rebalance} row */
const took = ({ duration_ms: ms, ended_ms: end }) =>
  end === null ? OPEN : ms === null ? "how long is not known" : `took ${duration(ms)}`;

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
const blockers = (group, members) => [
  members
    .slice(0, 3)
    .map((member, at) => [at ? ", " : "", h("a", { class: "mono wrap", href: memberHref(group, member) }, member)]),
  members.length > 3 ? ` and ${counted(members.length - 3, "other")}` : "",
];
