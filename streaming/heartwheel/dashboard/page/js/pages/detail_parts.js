// What the detail views share: their head with the way back, and lists of facts.

import { h } from "../dom.js";
import { icon } from "../icons.js";

/** Head a detail view: the way back (also by Escape), what it is, its name. */
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

/** List facts: name and value, those without a value left out. */
export const facts = (pairs) =>
  h(
    "dl",
    { class: "facts" },
    pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
