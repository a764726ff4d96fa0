// A stretch of time as a line from 0 to 100 %, with round moments on it.

import { clock, dayOf, timeOfDay, utc } from "./format.js";
import { h } from "./dom.js";

/** Lengths between two round moments, ms: seconds, minutes, hours, days. */
const STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * 1_000),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * 60_000),
  ...[1, 2, 3, 6, 12].map((n) => n * 3_600_000),
  ...[1, 2, 7, 14, 28].map((n) => n * 86_400_000),
];

/** Most round moments on a line. */
const TICKS = 6;

/** Up to where the time of a round moment has room beside it, %. */
const LABELLED = 94;

export class TimeScale {
  /**
   * @param {number} from epoch ms
   * @param {number} to epoch ms
   * @param {string} [end] what its end is called
   */
  constructor(from, to, end = "") {
    this.from = from;
    this.end = end;
    this.to = Math.max(to, from + 1);
    const step = STEPS.find((each) => (this.to - from) / each <= TICKS) ?? STEPS[STEPS.length - 1];
    /** @type {number[]} */
    this.ticks = [];
    for (let at = Math.ceil(from / step) * step; at < this.to && this.ticks.length <= 2 * TICKS; at += step) this.ticks.push(at);
    this.step = step;
  }

  /**
   * Return where a moment is, %; one outside is at the nearer end.
   *
   * @param {number} ms
   */
  at(ms) {
    return (100 * (Math.min(Math.max(ms, this.from), this.to) - this.from)) / (this.to - this.from);
  }

  /**
   * Put an element from one moment to another.
   *
   * @param {HTMLElement} element
   * @param {number} from
   * @param {number} to
   */
  place(element, from, to) {
    const left = this.at(from);
    element.style.left = `${left.toFixed(3)}%`;
    element.style.width = `${(this.at(to) - left).toFixed(3)}%`;
    return element;
  }

  /** Draw the round moments with their times. */
  axis() {
    const element = h("div", { class: "lane-axis", "aria-hidden": "true" });
    for (const ms of this.ticks.filter((each) => this.at(each) <= LABELLED)) {
      const label = h("span", { title: utc(ms) }, this.label(ms));
      label.style.left = `${this.at(ms).toFixed(3)}%`;
      element.append(label);
    }
    return element;
  }

  /** @param {number} ms */
  label(ms) {
    if (this.step >= 86_400_000) return dayOf(ms);
    const midnight = ms % 86_400_000 === 0;
    return midnight ? dayOf(ms) : this.step < 60_000 ? timeOfDay(ms) : timeOfDay(ms).slice(0, 5);
  }

  /** Say the stretch of time in words. */
  words() {
    return `${clock(this.from)} to ${clock(this.to)}`;
  }
}
