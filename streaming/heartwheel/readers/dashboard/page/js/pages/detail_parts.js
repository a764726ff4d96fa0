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
/** @import { Expiration, GroupAnswer, TimelineLine } from "answers" */
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
  const part = (/** @type {string} */ before) =>
    get(`/api/timeline${pathOf(group)}`, { before, limit: LINES }, { signal });
  const ask = async () => {
    let { rows, next, total } = await part("");
    for (let page = 1; page < pages && next; page++) {
      const more = await part(next);
      rows = [...rows, ...more.rows];
      next = more.next;
    }
    return { rows, next, total };
  };
  const older = () => (pages++, load());
  const load = loader({
    ask,
    show: ({ rows, next, total }) => {
      put(list, rows.map(timelineLine));
      list.hidden = !total;
      put(
        foot,
        h("span", {}, total ? `${count(rows.length)} of ${counted(total, "line")}.` : "Nothing happened in the window that is kept."),
        next ? h("button", { type: "button", class: "button", onclick: older }, "Older") : null,
      );
    },
    place: foot,
  });
  return { element: panel("What happened", "newest first", list, foot), load };
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
export function newestOut({ group_id: group, expirations, expirations_count: all }, { title, columns }) {
  if (!expirations?.length) return null;
  const list = table({ caption: `${title}: members of this group`, columns, key: (row) => row.id });
  list.show(expirations.slice(0, NEWEST));
  const more = h("a", { class: "small", href: `/expired${query({ group })}` }, `All ${count(all)}`);
  return h("section", { class: "panel flush" }, h("div", { class: "panel-head" }, h("h2", {}, title), more), list.element);
}
