// What the detail views share: their head with the way back, and lists of facts.

import { h } from "../dom.js";
import { icon } from "../icons.js";

/** @import { Router } from "../router.js" */
/** @import { Child } from "../types.d.ts" */

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
