// What a screen reader announces: a summary at intervals, never one line per event.

import { counted } from "./format.js";

/** @import { HealthState } from "answers" */
/** @import { Stream } from "./stream.js" */

/** Least time between two announcements. */
const PAUSE_MS = 8_000;

/**
 * Announce new expirations and changes of the engine's health in one polite region.
 *
 * @param {HTMLElement} element
 * @param {Stream} stream
 */
export function announcer(element, stream) {
  let expired = 0;
  /** @type {HealthState | null} */
  let health = null;
  let words = "";
  let last = 0;
  stream.addEventListener("expirations", ({ detail }) => (expired += detail.rows.length + detail.skipped));
  stream.addEventListener("now", ({ detail }) => {
    if (health !== null && health !== detail.health.state) words = `${detail.health.sentence} `;
    health = detail.health.state;
  });
  stream.addEventListener("link", () => (words = stream.lost ? "Connection lost. " : "Connected again. "));
  setInterval(() => {
    if ((!expired && !words) || Date.now() - last < PAUSE_MS) return;
    last = Date.now();
    element.textContent = `${words}${expired ? `${counted(expired, "member")} expired.` : ""}`;
    words = "";
    expired = 0;
  }, 500);
}
