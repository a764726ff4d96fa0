// The common parts of the detail views: the head with the way back, lists of facts, the timeline, the newest
// expirations.

import { get, pathOf, query } from "../api.js";
import { time } from "../cells.js";
import { h, put } from "../dom.js";
import { count, counted } from "../format.js";
import { icon } from "../icons.js";
import { loader } from "../loader.js";
import { fromLog } from "../source.js";
import { panel } from "../states.js";
import { table } from "../table.js";

/** @import { Router } from "../router.js" */
/** @import { Expiration, GroupAnswer, TimelineLine, TimelinePage } from "answers" */
/** @import { Child, Column } from "../types.d.ts" */

/**
 * Make the head of a detail view: the way back (also by Escape), its kind, its name.
 *
 * @param {{ title: string, kind: string, about: Child, back: string, router: Router }} what
 */
export function detailHead({ title, kind, about, back, router }) {
  const link = h("a", { class: "button quiet back", href: back, title: "Back (Escape)" }, icon("back"), "Back");
  link.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    router.back(back);
  });
  return h(
    "div",
    { class: "detail-head" },
    link,
    h("p", { class: "soft small" }, kind, " ", about),
    h("h1", { class: "mono", tabindex: "-1" }, title),
  );
}

/**
 * Make a list of facts: name, value, and "wide" for long ones; those without a value are left out.
 *
 * @param {[name: string, value: Child, width?: string][]} rows
 */
export const facts = (rows) =>
  h(
    "dl",
    { class: "facts" },
    rows
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value, width]) => h("div", { class: width }, h("dt", {}, name), h("dd", {}, value))),
  );

/** @type {{ [kind: string]: [icon: string, tone: string] | undefined }} */
const KINDS = {
  expired: ["door", "bad"],
  triggered: ["sync", "warn"],
  completed: ["check", "good"],
  epoch: ["sync", "calm"],
  protocol: ["sync", "warn"],
  empty: ["dot", "calm"],
  left: ["door", "calm"],
  storm: ["storm", "bad"],
  moved: ["sync", "calm"],
};

/** The words of what leads to a time that is not in memory. */
export const FROM_HISTORY = "Older, from the history";

/** The number of lines per request. */
const LINES = 100;

/**
 * Make the panel of a group's timeline: the newest lines first, older ones on request.
 *
 * @param {string} group
 * @param {AbortSignal} signal
 * @returns {{ element: HTMLElement, load: () => unknown }} `load` requests its lines, also to update them
 */
export function happenedTo(group, signal) {
  const list = h("ol", { class: `timeline${fromLog ? " whole" : ""}`, tabindex: "0", "aria-label": "What happened, newest first" });
  const foot = h("p", { class: "pager" });
  let pages = 1;
  const ask = async () => {
    /** @type {TimelineLine[]} */
    const rows = [];
    let total = 0;
    /** @type {{ before: string, until_ms: string } | null} */
    let place = { before: "", until_ms: "" };
    for (let page = 0; page < pages && place; page++) {
      const answer = /** @type {TimelinePage} */ (
        await get(`/api/timeline${pathOf(group)}`, { ...place, limit: LINES }, { signal })
      );
      rows.push(...answer.rows);
      if (!place.before) total += answer.total;
      place = after(answer, place.until_ms);
    }
    return { rows, place, total };
  };
  const older = () => (pages++, load());
  const load = loader({
    ask,
    show: ({ rows, place, total }) => {
      put(list, rows.map(timelineLine));
      list.hidden = !total;
      put(
        foot,
        h("span", {}, total ? `${count(rows.length)} of ${counted(total, "line")}.` : "Nothing happened in the window that is kept."),
        place ? h("button", { type: "button", class: "button", onclick: older }, place.before ? "Older" : FROM_HISTORY) : null,
      );
    },
    place: foot,
  });
  return { element: panel("What happened", "newest first", list, foot), load };
}

/**
 * The place of the lines before those of an answer; null if there are none.
 *
 * @param {TimelinePage} answer
 * @param {string} untilMs
 */
function after({ next, older_until_ms: older }, untilMs) {
  if (next) return { before: next, until_ms: untilMs };
  return typeof older === "number" ? { before: "", until_ms: String(older) } : null;
}

/** @param {TimelineLine} event */
function timelineLine({ time_ms: ms, kind, text }) {
  const [name, tone] = KINDS[kind] ?? ["dot", "calm"];
  return h("li", { class: `tone-${tone}` }, icon(name), time(ms), h("span", { class: "wrap" }, text));
}

/** The most that are shown; page Expired has the others. */
const NEWEST = 10;

/**
 * The newest expirations of a group, with a link to all; null if there are none.
 *
 * @param {GroupAnswer} group
 * @param {{ title: string, columns: Column<Expiration>[] }} wanted
 */
export function newestOut({ group_id: group, expirations, expirations_count: all, older_until_ms: older }, { title, columns }) {
  const more = typeof older === "number" ? h("a", { class: "small", href: `/expired${query({ group, until_ms: older })}` }, FROM_HISTORY) : null;
  if (!expirations?.length) return more && h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, title), more));
  const list = table({ caption: `${title}: members of this group`, columns, key: (row) => row.id });
  list.show(expirations.slice(0, NEWEST));
  const every = h("a", { class: "small", href: `/expired${query({ group })}` }, `All ${count(all)}`);
  return h("section", { class: "panel flush" }, h("div", { class: "panel-head" }, h("h2", {}, title), every, more), list.element);
}
