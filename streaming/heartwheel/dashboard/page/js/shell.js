// The frame around every page: which tab is open, the engine's health, the theme, and whether the connection stands.

import { at } from "./base.js";
import { byId, h, mark, put } from "./dom.js";
import { ago, clock, duration } from "./format.js";
import { icon } from "./icons.js";
import { healthWords } from "./words.js";

/** @import { Now } from "./answers.d.ts" */
/** @import { Stream } from "./stream.js" */

/**
 * Bring the frame to life. Returns `select(tab)`, which marks the open page's tab.
 *
 * @param {Stream} stream
 */
export function frame(stream) {
  stream.addEventListener("now", ({ detail }) => showHealth(detail));
  stream.addEventListener("link", () => showLink(stream));
  setInterval(() => {
    stream.watch();
    showLink(stream);
  }, 500);
  themeButton();
  return { select };
}

/** @param {string | null} tab */
function select(tab) {
  for (const link of document.querySelectorAll(".tabs a"))
    mark(link, "aria-current", tab !== null && link.getAttribute("href") === at(tab) ? "page" : null);
}

let healthShown = "";

/** @param {Now} now */
function showHealth({ health, version }) {
  if (healthShown === health.state + health.sentence) return;
  healthShown = health.state + health.sentence;
  if (health.state === "log") showLog();
  const words = healthWords(health.state);
  const pill = byId("health-pill");
  pill.hidden = false;
  pill.className = `health-pill tone-${words.tone}`;
  pill.title = health.sentence;
  put(pill, icon(words.icon), words.label);
  put(
    byId("foot"),
    h("span", {}, `heartwheel ${version}`),
    h("span", {}, h("a", { href: "/docs" }, "API")),
    h("span", {}, h("a", { href: "/metrics" }, "Metrics")),
    h("span", {}, `Times are in ${zone()}; hover shows UTC.`),
  );
}

/** With no engine behind the page there is nobody to be at risk: what was read is on the other pages. */
function showLog() {
  if (document.documentElement.dataset.source === "log") return;
  document.documentElement.dataset.source = "log";
  const first = document.querySelector(".tabs a:not([data-engine])")?.getAttribute("href") ?? "";
  for (const link of [byId("health-pill"), document.querySelector(".brand")]) link?.setAttribute("href", first);
}

const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "your zone";

/** @param {Stream} stream */
function showLink(stream) {
  const banner = byId("link-banner");
  banner.hidden = !stream.lost;
  if (!stream.lost) return put(banner);
  if (!banner.firstChild) put(banner, h("div", {}, icon("plug"), h("span", {})));
  const words = /** @type {HTMLElement} */ (banner.querySelector("div > span"));
  words.textContent =
    stream.heardMs === null
      ? `The dashboard's server does not answer for ${duration(Date.now() - stream.openedMs)}. Trying again.`
      : `Connection lost. What you see is from ${clock(stream.heardMs)}, ${ago(Date.now() - stream.heardMs)}. Trying again.`;
  return banner;
}

function themeButton() {
  const button = byId("theme-button");
  const draw = () => {
    const dark = globalThis.heartwheelTheme.dark();
    put(button, icon(dark ? "sun" : "moon"));
    button.title = dark ? "Switch to light colours" : "Switch to dark colours";
    button.setAttribute("aria-label", button.title);
  };
  button.addEventListener("click", () =>
    globalThis.heartwheelTheme.set(globalThis.heartwheelTheme.dark() ? "light" : "dark"),
  );
  addEventListener("heartwheel-theme", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}
