// The frame around every page: the open tab, the engine's health, the theme, and the state of the connection.

import { at } from "./base.js";
import { byId, h, mark, put } from "./dom.js";
import { ago, clock, duration } from "./format.js";
import { icon } from "./icons.js";
import { showKeys } from "./keyboard.js";
import { fromLog } from "./source.js";
import { healthWords, LINK_LOST, troubleWords } from "./words.js";

/** @import { Now } from "answers" */
/** @import { Stream } from "./stream.js" */

/**
 * Start the frame. Returns `select(tab)`, which marks the open page's tab.
 *
 * @param {Stream} stream
 */
export function frame(stream) {
  stream.addEventListener("now", () => showHealth(stream));
  stream.addEventListener("link", () => {
    showLink(stream);
    showHealth(stream);
  });
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
  document.documentElement.dataset.page = tab ?? "";
}

let shown = "";

/** @param {Stream} stream */
function showHealth(stream) {
  const { now, lost } = stream;
  if (!now) return;
  const { health, trouble, version } = now;
  const key = JSON.stringify([lost, health, trouble.sentence, now.log?.zone_assumed]);
  if (shown === key) return;
  shown = key;
  if (fromLog) showLog();
  pill("health-pill", lost ? LINK_LOST : healthWords(health), lost ? NO_SERVER : `Engine. ${health.sentence}`);
  pill("groups-pill", troubleWords(lost ? { ...trouble, known: false } : trouble), lost ? NO_SERVER : trouble.sentence);
  showEngine(stream);
  put(
    byId("foot"),
    h("span", {}, `heartwheel ${version}`),
    h("span", {}, h("a", { href: "/docs" }, "API")),
    h("span", {}, h("a", { href: "/troubleshooting" }, "Troubleshooting")),
    fromLog ? null : h("span", {}, h("a", { href: "/metrics" }, "Metrics")),
    h("span", {}, h("button", { type: "button", class: "link", onclick: showKeys }, "Keys")),
    h("span", {}, zoneWords(now)),
  );
}

const NO_SERVER = "The dashboard's server does not answer, so nothing is known of the engine and the groups.";

/**
 * @param {string} id
 * @param {{ label: string, icon: string, tone: string }} words
 * @param {string} title
 */
function pill(id, words, title) {
  const element = byId(id);
  element.hidden = false;
  element.className = `health-pill tone-${words.tone}`;
  element.title = title;
  put(element, icon(words.icon), h("span", {}, words.label));
}

/**
 * Show on each page that the engine does not decide, except on page Now, which has the details.
 *
 * @param {Stream} stream
 */
function showEngine({ now, lost }) {
  const banner = byId("engine-banner");
  const health = now?.health;
  const asOf = health?.as_of_ms ?? null;
  banner.hidden = lost || !health || !(["stalled", "unreachable"].includes(health.state) || asOf !== null);
  if (banner.hidden || !health) return put(banner);
  banner.className = `banner tone-${healthWords(health).tone}`;
  const when = asOf === null ? "" : ` What you see is as of ${clock(asOf)}.`;
  return put(
    banner,
    h("div", {}, icon("alert"), h("span", {}, health.sentence, when, " ", h("a", { class: "nowrap", href: "/" }, "What to do"))),
  );
}

/** Without an engine no member is at risk; the other pages show what was read. */
function showLog() {
  const first = document.querySelector(".tabs a:not([data-engine])")?.getAttribute("href") ?? "";
  for (const link of [byId("health-pill"), document.querySelector(".brand")]) link?.setAttribute("href", first);
}

/** @param {Now} now */
function zoneWords({ log }) {
  if (fromLog) return log?.zone_assumed ? "Times are as in the log, which names no time zone." : "Times are in UTC.";
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "your zone";
  return zone === "UTC" ? "Times are in UTC." : `Times are in ${zone}; hover shows UTC.`;
}

/** @param {Stream} stream */
function showLink(stream) {
  const banner = byId("link-banner");
  banner.hidden = !stream.lost;
  if (!stream.lost) return put(banner);
  if (!banner.firstChild) put(banner, h("div", {}, icon("plug"), h("span", {})));
  const words = /** @type {HTMLElement} */ (banner.querySelector("div > span"));
  words.textContent =
    stream.lastEventMs === null
      ? `The dashboard's server does not answer for ${duration(Date.now() - stream.openedMs)}. Trying again.`
      : `Connection lost. What you see is from ${clock(stream.lastEventMs)}, ${ago(Date.now() - stream.lastEventMs)}. Trying again.`;
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
