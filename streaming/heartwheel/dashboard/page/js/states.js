// What stands where data would stand: nothing yet, nothing found, an error. Each says what to do.

import { h } from "./dom.js";

/** Say that there is nothing, why, and what to do. */
export const empty = (title, ...words) => h("div", { class: "empty" }, h("strong", {}, title), h("span", {}, words));

/** Say what went wrong, as the server put it. */
export const failed = (error) => empty(error.message, error.hint ?? "");

export const code = (text) => h("code", {}, text);

/** Head a page. */
export function head(title, about, ...end) {
  return h("div", { class: "page-head" }, h("h1", { tabindex: "-1" }, title), end, about ? h("p", {}, about) : null);
}

/** Make a panel with a heading. */
export function panel(title, note, ...children) {
  return h(
    "section",
    { class: "panel" },
    h("div", { class: "panel-head" }, h("h2", {}, title), note ? h("span", { class: "soft" }, note) : null),
    children,
  );
}
