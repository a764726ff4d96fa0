// The wheel as rings: the finest level outside, one segment a slot, and a hand on each ring.

import { mark, put, svg, write } from "../dom.js";
import { clock } from "../format.js";
import { flash, shade, short } from "./wheel_shade.js";

/** @import { WheelLevelView, WheelView } from "answers" */

/** @typedef {{ path: SVGPathElement, text: SVGTextElement }} Segment */
/** @typedef {{ parts: Segment[], hand: SVGLineElement, group: SVGGElement, counts: number[] | null }} Ring */

const CENTRE = 200;
const OUTER = 196;
const HUB = 44;
const GAP = 3;

/** Beyond this many slots a ring has no room for numbers; they are in the rows below it. */
const NUMBERED_MAX = 32;

/** Make the drawing. Returns `{element, show(wheel, {flash}), turn(wheel, clock_ms)}`. */
export function wheelRings() {
  const element = svg("svg", { class: "rings", viewBox: "0 0 400 400", "aria-hidden": "true" });
  /** @type {Ring[]} */
  let rings = [];
  let shape = "";
  const time = svg("text", { x: CENTRE, y: CENTRE + 5, class: "rings-clock" });
  const build = (/** @type {WheelView} */ wheel) => {
    rings = wheel.levels.map((level, at) => ring(level, at, wheel.levels.length));
    put(
      element,
      rings.map(({ group }) => group),
      time,
    );
  };
  const show = (/** @type {WheelView} */ wheel, /** @type {{ flash: boolean }} */ { flash: flashes }) => {
    const now = wheel.levels.map(({ slots }) => slots.length).join();
    const same = now === shape;
    if (!same) build(wheel);
    shape = now;
    wheel.levels.forEach((level, at) => fill(rings[at], level, flashes && same));
  };
  const turn = (/** @type {WheelView} */ wheel, /** @type {number} */ clockMs) => {
    write(time, clockMs < 0 ? "no clock" : clock(clockMs));
    wheel.levels.forEach((level, at) => rings[at] && point(rings[at], level, clockMs));
  };
  return { element, show, turn };
}

/**
 * @param {WheelLevelView} level
 * @param {number} at
 * @param {number} levels
 * @returns {Ring}
 */
function ring({ slots }, at, levels) {
  const thick = Math.min(48, (OUTER - HUB) / levels);
  const outer = OUTER - at * thick;
  const inner = outer - thick + GAP;
  const parts = slots.map((_, slot) => segment(slot, slots.length, inner, outer));
  const hand = svg("line", { class: "hand", x1: CENTRE, x2: CENTRE, y1: CENTRE - inner + 1, y2: CENTRE - outer - 2 });
  return {
    parts,
    hand,
    group: svg(
      "g",
      {},
      parts.map(({ path }) => path),
      parts.map(({ text }) => text),
      hand,
    ),
    counts: null,
  };
}

/**
 * @param {number} slot
 * @param {number} slots
 * @param {number} inner
 * @param {number} outer
 * @returns {Segment}
 */
function segment(slot, slots, inner, outer) {
  const turn = (2 * Math.PI) / slots;
  const pad = Math.min(0.012, turn * 0.08);
  const [from, to] = [slot * turn + pad, (slot + 1) * turn - pad];
  const path = svg("path", {
    class: "slot",
    d: `M${at(outer, from)}A${outer} ${outer} 0 0 1 ${at(outer, to)}L${at(inner, to)}A${inner} ${inner} 0 0 0 ${at(inner, from)}Z`,
  });
  const [x, y] = at((inner + outer) / 2, (from + to) / 2);
  return { path, text: svg("text", { class: "slot-number", x, y: y + 3.6 }) };
}

/**
 * A point of the dial: angle 0 is at the top, and goes clockwise.
 *
 * @param {number} radius
 * @param {number} angle
 */
const at = (radius, angle) =>
  [CENTRE + radius * Math.sin(angle), CENTRE - radius * Math.cos(angle)].map((value) => Number(value.toFixed(2)));

/**
 * @param {Ring} drawn
 * @param {WheelLevelView} level
 * @param {boolean} flashes
 */
function fill(drawn, { slots, hand }, flashes) {
  const most = Math.max(1, ...slots);
  slots.forEach((timers, slot) => {
    const { path, text } = drawn.parts[slot];
    const level = shade(timers, most);
    mark(path, "class", `slot shade-${level}${slot === hand ? " under-hand" : ""}`);
    mark(text, "class", `slot-number on-${level}`);
    write(text, timers && slots.length <= NUMBERED_MAX ? short(timers) : "");
    if (flashes && drawn.counts && timers > drawn.counts[slot]) flash(path);
  });
  drawn.counts = slots;
}

/**
 * @param {Ring} ring
 * @param {WheelLevelView} level
 * @param {number} clockMs
 */
function point({ hand, parts }, { tick_ms: tick, slots }, clockMs) {
  mark(hand, "visibility", clockMs < 0 ? "hidden" : "visible");
  if (clockMs < 0) return;
  const turns = (clockMs / tick / slots.length) % 1;
  mark(hand, "transform", `rotate(${(turns * 360).toFixed(2)} ${CENTRE} ${CENTRE})`);
  const under = Math.floor(turns * slots.length);
  parts.forEach(({ path }, slot) => path.classList.toggle("under-hand", slot === under));
}
