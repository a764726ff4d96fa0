// What the detail views share: their head with the way back, lists of facts, lines of a timeline, the newest expirations.

import { query } from "../api.js";
import { time } from "../cells.js";
import { h } from "../dom.js";
import { count } from "../format.js";
import { icon } from "../icons.js";
import { table } from "../table.js";

/** @import { Router } from "../router.js" */
/** @import { Expiration, GroupAnswer, TimelineLine } from "answers" */
/** @import { Child, Column } from "../types.d.ts" */

/**
 * Head a detail view: the way back (also by Escape), what it is, its name.
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
 * List facts: name, value, and "wide" for long ones; those without a value are left out.
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

/**
 * A line of what happened to a group.
 *
 * @param {TimelineLine} event
 */
export function timelineLine({ time_ms: ms, kind, text }) {
  const [name, tone] = KINDS[kind] ?? ["dot", "calm"];
  return h("li", { class: `tone-${tone}` }, icon(name), time(ms), h("span", { class: "wrap" }, text));
}

/** More than these are on page Expired. */
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
