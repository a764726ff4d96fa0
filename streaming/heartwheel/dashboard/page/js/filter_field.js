// The field of a page that filters its rows by text, where the key / goes.

import { h } from "./dom.js";
import { settled } from "./throttle.js";

/**
 * Make the field, in its label.
 *
 * @param {object} wanted
 * @param {string} wanted.value what stands in it
 * @param {string} wanted.placeholder what may be written into it
 * @param {string} wanted.label its name for screen readers
 * @param {(text: string) => unknown} wanted.changed takes the text, trimmed, once nobody types for a moment
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
