// Messages in place of data: nothing yet, nothing found, an error. Each says what to do.

import { h } from "./dom.js";

/** @import { Now } from "answers" */
/** @import { Child } from "./types.d.ts" */

/**
 * Show that there is nothing, why, and what to do.
 *
 * @param {Child} title
 * @param {...Child} words
 */
export const empty = (title, ...words) => h("div", { class: "empty" }, h("strong", {}, title), h("span", {}, words));

/**
 * Show an error in the server's words.
 *
 * @param {unknown} error
 */
export function failed(error) {
  const { message, hint } = /** @type {Error & { hint?: string }} */ (error);
  return empty(message, hint ?? "");
}

/**
 * Say why a list of expired members is empty.
 *
 * @param {Now | null} now
 * @param {...Child} more
 */
export const noneExpired = (now, ...more) =>
  now?.health.state === "unreachable"
    ? empty("Not known who was expired.", "Kafka does not answer. Who was expired shows up here when it does.")
    : empty("No member was expired yet.", "A member shows up here within moments of missing its deadline.", ...more);

/**
 * Make a link to the section of the documentation that says what to do, which the dashboard serves itself.
 *
 * @param {string | null | undefined} topic
 */
export const readOn = (topic) =>
  topic
    ? h("p", { class: "small" }, h("a", { href: `/troubleshooting#${topic}` }, `What to do: ${topic.replaceAll("-", " ")}`))
    : null;

/** @param {string} text */
export const code = (text) => h("code", {}, text);

/**
 * Make the heading of a page.
 *
 * @param {string} title
 * @param {Child} [about]
 * @param {...Child} end
 */
export function head(title, about, ...end) {
  return h("div", { class: "page-head" }, h("h1", { tabindex: "-1" }, title), end, about ? h("p", {}, about) : null);
}

/**
 * Make a panel with a heading.
 *
 * @param {string} title
 * @param {Child} note
 * @param {...Child} children
 */
export function panel(title, note, ...children) {
  return h(
    "section",
    { class: "panel" },
    h("div", { class: "panel-head" }, h("h2", {}, title), note ? h("span", { class: "soft" }, note) : null),
    children,
  );
}
