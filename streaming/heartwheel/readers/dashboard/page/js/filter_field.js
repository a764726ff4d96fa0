// The field of a page that filters its rows by text, where the key / goes.

import { h } from "./dom.js";
import { settled } from "./throttle.js";
import { fromLog } from "./source.js";

/** Times of a broker's log are shown as in the log. */
const ZONE = fromLog ? "Z" : "";

/**
 * Make the field, in its label.
 *
 * @param {object} wanted
 * @param {string} wanted.value its initial text
 * @param {string} wanted.placeholder a hint on what to type
 * @param {string} wanted.label its name for screen readers
 * @param {(text: string) => unknown} wanted.changed called with the trimmed text once the user stops typing
 * @param {AbortSignal} wanted.signal
 */
export function filterField({ value, placeholder, label, changed, signal }) {
  const text = h("input", {
    type: "search",
    value,
    placeholder,
    "aria-label": label,
    "data-filter": true,
    maxlength: 200,
  });
  text.addEventListener(
    "input",
    settled(() => changed(text.value.trim()), 250, signal),
  );
  return h("label", { class: "field grow" }, text, h("span", { class: "kbd", title: "Press / to filter" }, "/"));
}

/**
 * Make the field of a moment in the reader's zone. An empty one is no bound.
 *
 * @param {string} label
 * @param {string} value epoch ms
 * @param {(value: string) => unknown} changed takes epoch ms, or nothing
 */
export function timeField(label, value, changed) {
  const input = h("input", { type: "datetime-local", step: "1", value: localTime(Number(value)) });
  input.addEventListener("change", () => changed(input.value ? String(new Date(input.value + ZONE).getTime()) : ""));
  return h("label", { class: "field moment" }, h("span", {}, label), input);
}

/**
 * Return a moment in the format of such a field.
 *
 * @param {number} ms
 */
function localTime(ms) {
  if (!ms) return "";
  const ahead = fromLog ? 0 : new Date(ms).getTimezoneOffset() * 60_000;
  return new Date(ms - ahead).toISOString().slice(0, 19);
}
