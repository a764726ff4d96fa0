// A command line that sends a heartbeat, and a button that copies it; only if the dashboard knows a gateway.

import { groupHref } from "./cells.js";
import { h, write } from "./dom.js";
import { panel } from "./states.js";

const meta = /** @type {HTMLMetaElement | null} */ (document.querySelector('meta[name="heartwheel-gateway"]'));
const gateway = (meta?.content ?? "").replace(/\/+$/, "");

const GROUP = "mine";
const COPIED_MS = 2_000;

/** Make the panel; null if no gateway is known. */
export function beatLine() {
  if (!gateway) return null;
  const line = h("code", { class: "beat-line wrap" }, `curl -X POST '${gateway}/beat/${GROUP}/me?session=10s'`);
  const label = h("span", { role: "status" }, "Copy");
  const button = h("button", { type: "button", class: "button", onclick: () => copy(line, label) }, label);
  const about = h(
    "p",
    { class: "soft small" },
    "Each call is a heartbeat of member me. It appears in group ",
    h("a", { href: groupHref(GROUP) }, GROUP),
    ", and is expired ten seconds after the last call.",
  );
  return panel("Beat from a terminal", null, h("div", { class: "beat" }, line, button), about);
}

/**
 * @param {HTMLElement} line
 * @param {HTMLElement} label
 */
async function copy(line, label) {
  const done = (await written(line.textContent ?? "")) || selected(line);
  write(label, done ? "Copied" : "Press Ctrl+C");
  setTimeout(() => write(label, "Copy"), COPIED_MS);
}

/**
 * Browsers have a clipboard for pages over TLS and of this machine only.
 *
 * @param {string} text
 */
async function written(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Select the line, and copy it as older browsers do.
 *
 * @param {HTMLElement} line
 */
function selected(line) {
  getSelection()?.selectAllChildren(line);
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  }
}
