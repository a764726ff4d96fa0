// The choice of a stretch of time: a length until now, or two moments. It is kept in the address.

import { h, mark, put } from "./dom.js";
import { timeField } from "./filter_field.js";
import { icon } from "./icons.js";
import { follows } from "./source.js";

/** @import { LanePage } from "answers" */

/** @typedef {{ last: string, since_ms: string, until_ms: string }} Range */

/** The whole of a log that has ended, or what is newest of one that is followed. */
const WHOLE = "all";

/** @type {[last: string, label: string][]} */
const LENGTHS = [
  ["900000", "15 min"],
  ["3600000", "1 h"],
  ["21600000", "6 h"],
  ["86400000", "24 h"],
  ["604800000", "7 d"],
  ["2592000000", "30 d"],
];

/** The names of a range in the address. */
export const RANGE = ["last", "since_ms", "until_ms"];

const FIRST = follows ? "3600000" : WHOLE;

/**
 * Return the parameters of a request for a range.
 *
 * @param {Record<string, string>} range
 */
export function asked({ last, since_ms, until_ms }) {
  if (since_ms || until_ms) return { since_ms, until_ms, last_ms: since_ms ? "" : last === WHOLE ? "" : last || FIRST };
  return { last_ms: (last || FIRST) === WHOLE ? "" : last || FIRST };
}

/**
 * Make the controls.
 *
 * @param {Record<string, string>} filters with the names of `RANGE`
 * @param {(range: Range) => unknown} changed
 */
export function rangeTools(filters, changed) {
  const set = (/** @type {Partial<Range>} */ range) => changed({ last: "", since_ms: "", until_ms: "", ...range });
  const lengths = (follows ? LENGTHS : /** @type {[string, string][]} */ ([[WHOLE, "Whole log"], ...LENGTHS.slice(0, 5)])).map(
    ([last, label]) => ({ last, button: h("button", { type: "button", class: "button", onclick: () => set({ last }) }, label) }),
  );
  const fields = h("span", { class: "moments" });
  /** @type {[number, number]} */
  let shown = [0, 0];
  const move = (/** @type {number} */ by) => {
    const size = shown[1] - shown[0];
    set({ since_ms: String(Math.round(shown[0] + by * size)), until_ms: String(Math.round(shown[1] + by * size)) });
  };
  const step = (/** @type {number} */ by, /** @type {string} */ label, /** @type {string} */ name) => {
    const button = h("button", { type: "button", class: `button ${name}`, "aria-label": label, title: label, onclick: () => move(by) }, icon("back"));
    return button;
  };
  const element = h(
    "div",
    { class: "tools range", role: "group", "aria-label": "Time" },
    h("div", { class: "segments" }, lengths.map(({ button }) => button)),
    step(-1, "Earlier", "earlier"),
    step(1, "Later", "later"),
    fields,
  );
  /** Show the range that the server has answered for. */
  const show = (/** @type {LanePage} */ { from_ms: from, to_ms: to, is_now: isNow }) => {
    shown = [from, to];
    const isFixed = Boolean(filters.since_ms || filters.until_ms);
    for (const { last, button } of lengths) mark(button, "aria-pressed", String(!isFixed && last === (filters.last || FIRST)));
    if (fields.contains(document.activeElement)) return;
    put(
      fields,
      timeField("From", filters.since_ms || String(Math.floor(from)), (since_ms) => set({ since_ms, until_ms: filters.until_ms })),
      timeField("until", filters.until_ms || (isNow ? "" : String(Math.ceil(to))), (until_ms) => set({ since_ms: filters.since_ms || (until_ms ? String(Math.round(from)) : ""), until_ms })),
    );
  };
  return { element, show };
}
