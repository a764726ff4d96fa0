// The wheel as rows: one a level, a box a slot with its number. It shows in figures what the rings show in shades.

import { h, mark, put, write } from "../dom.js";
import { count, counted, duration } from "../format.js";
import { flash, shade, short } from "./wheel_shade.js";

/** @import { WheelLevelView, WheelView } from "answers" */

const PLACES = ["outer ring", "second ring", "third ring", "fourth ring", "fifth ring"];

/** Make the rows. Returns `{element, show(wheel, {flash})}`. */
export function wheelRows() {
  const element = h("div", { class: "levels" });
  /** @type {ReturnType<typeof level>[]} */
  let levels = [];
  let shape = "";
  const show = (/** @type {WheelView} */ wheel, /** @type {{ flash: boolean }} */ { flash: flashes }) => {
    const now = wheel.levels.map(({ slots, tick_ms }) => `${tick_ms}:${slots.length}`).join();
    const same = now === shape;
    if (!same) levels = wheel.levels.map(level);
    if (!same)
      put(
        element,
        levels.map((made) => made.element),
      );
    shape = now;
    wheel.levels.forEach((data, at) => fill(levels[at], data, flashes && same));
  };
  return { element, show };
}

/**
 * @param {WheelLevelView} level
 * @param {number} at
 */
function level({ tick_ms: tick, span_ms: span, slots }, at) {
  const boxes = slots.map(() => h("span", { class: "box" }));
  const note = h("span", { class: "soft" });
  const row = h("div", { class: "boxes", role: "img" }, boxes);
  const title = h(
    "div",
    { class: "level-head small" },
    h("strong", {}, `Level ${at}`),
    h("span", { class: "soft" }, PLACES[at] ?? "innermost ring"),
    h("span", { class: "soft" }, `a slot ${duration(tick)}, a turn ${duration(span)}`),
    note,
  );
  const counts = /** @type {number[] | null} */ (null);
  return { element: h("div", { class: "level" }, title, row), boxes, note, row, counts };
}

/**
 * @param {number} entries
 * @param {number[]} slots
 * @param {number | null} hand
 */
function rowWords(entries, slots, hand) {
  const where = hand === null ? "the clock does not run yet" : `the clock is in slot ${hand}`;
  return `${counted(entries, "timer")} in ${counted(slots.filter(Boolean).length, "slot")} of ${slots.length}; ${where}`;
}

/**
 * @param {number} slot
 * @param {number[]} slots
 * @param {number | null} hand
 * @param {number} tick
 */
function boxWords(slot, slots, hand, tick) {
  const words = `slot ${slot}: ${counted(slots[slot], "timer")}`;
  if (hand === null) return words;
  return `${words}, due in about ${duration(((slot - hand + slots.length) % slots.length) * tick)}`;
}

/**
 * @param {ReturnType<typeof level>} made
 * @param {WheelLevelView} level
 * @param {boolean} flashes
 */
function fill(made, { slots, hand, entries, tick_ms: tick }, flashes) {
  const most = Math.max(1, ...slots);
  write(made.note, counted(entries, "timer"));
  mark(made.row, "aria-label", rowWords(entries, slots, hand));
  slots.forEach((timers, slot) => {
    const box = made.boxes[slot];
    write(box, timers ? short(timers) : "");
    mark(box, "class", `box shade-${shade(timers, most)}${slot === hand ? " under-hand" : ""}`);
    mark(box, "title", boxWords(slot, slots, hand, tick));
    if (flashes && made.counts && timers > made.counts[slot]) flash(box);
  });
  made.counts = slots;
  mark(made.element, "data-entries", count(entries));
}
