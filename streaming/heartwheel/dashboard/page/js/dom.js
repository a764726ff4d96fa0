// Elements without markup: every text goes through text nodes, so that an id full of tags is shown as it is.

import { at } from "./base.js";

const SVG = "http://www.w3.org/2000/svg";

/** Make an element. `props`: attributes, `on…` handlers, `dataset`; children: nodes, texts, arrays; null is left out. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Make an SVG element, as `h` does. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : placed(name, value));
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** Links are written as paths of this dashboard, wherever it lies. */
const placed = (name, value) => (name === "href" && value.startsWith("/") ? at(value) : value);

/** Put children in the place of all that an element holds. */
export function put(element, ...children) {
  element.replaceChildren(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** Write a text only if it differs: a table of a hundred rows is asked to do so four times a second. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Set an attribute only if it differs; null takes it away. */
export function mark(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== placed(name, value)) element.setAttribute(name, placed(name, value));
}
