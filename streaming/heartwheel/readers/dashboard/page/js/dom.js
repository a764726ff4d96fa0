// Elements without markup: every text goes through text nodes, so that an id full of tags is shown as it is.

import { at } from "./base.js";

/** @import { Child, Props } from "./types.d.ts" */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element. `props`: attributes, `on…` handlers, `dataset`; children: nodes, texts, arrays; null is left out.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Props} [props]
 * @param {...Child} children
 */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/**
 * Make an SVG element, as `h` does.
 *
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Props} [props]
 * @param {...Child} children
 */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/**
 * @template {HTMLElement | SVGElement} Made
 * @param {Made} element
 * @param {Props} props
 * @param {Child[]} children
 */
function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : placed(name, String(value)));
  }
  element.append(...flattened(children));
  return element;
}

/**
 * @param {Child[]} children
 * @returns {(Node | string)[]}
 */
const flattened = (children) =>
  /** @type {any[]} */ (children)
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false);

/**
 * Links are given as paths of this dashboard, without the base path.
 *
 * @param {string} name
 * @param {string} value
 */
const placed = (name, value) => (name === "href" && value.startsWith("/") ? at(value) : value);

/**
 * Return an element of the page's HTML file.
 *
 * @param {string} id
 */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * Replace all children of an element.
 *
 * @template {Element} Put
 * @param {Put} element
 * @param {...Child} children
 */
export function put(element, ...children) {
  element.replaceChildren(...flattened(children));
  return element;
}

/**
 * Write a text only if it differs: a table of a hundred rows is updated four times a second.
 *
 * @param {Element} element
 * @param {string} text
 */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Set an attribute only if it differs; null removes it.
 *
 * @param {Element} element
 * @param {string} name
 * @param {string | null} value
 */
export function mark(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== placed(name, value)) element.setAttribute(name, placed(name, value));
}
