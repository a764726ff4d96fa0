// Keys that work on every page: "/" goes to the filter, Escape leaves it, or closes a detail view, "?" names them all.

import { byId, h, put } from "./dom.js";

const TYPING = "input, select, textarea";

/**
 * Listen for the keys. `escape` is called for an Escape that no field uses.
 *
 * @param {() => unknown} escape
 */
export function keyboard(escape) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
    const target = /** @type {HTMLElement} */ (event.target);
    const typing = target.matches?.(TYPING);
    if (event.key === "/" && !typing) focusFilter(event);
    if (event.key === "?" && !typing) showKeys();
    if (event.key === "Escape") typing ? target.blur() : escape();
  });
}

/** @param {KeyboardEvent} event */
function focusFilter(event) {
  const field = /** @type {HTMLInputElement | null} */ (document.querySelector("[data-filter]"));
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
}

/** @type {[key: string, about: string][]} */
const KEYS = [
  ["/", "go to the filter of the page"],
  ["Esc", "leave the filter, or close a group or member"],
  ["Tab, Enter", "go through links and rows; the table does not move while you are in it"],
  ["?", "these keys"],
];

/** Name the keys in a dialog, which the browser closes with Escape. */
export function showKeys() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("keys"));
  put(
    dialog,
    h("h2", {}, "Keys"),
    h(
      "dl",
      { class: "keys" },
      KEYS.map(([key, about]) => [h("dt", {}, h("span", { class: "kbd" }, key)), h("dd", {}, about)]),
    ),
    h("button", { type: "button", class: "button", onclick: () => dialog.close() }, "Close"),
  );
  if (!dialog.open) dialog.showModal();
}
