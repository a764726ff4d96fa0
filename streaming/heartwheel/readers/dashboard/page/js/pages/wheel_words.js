// What a timing wheel is, in three sentences that name this wheel's own figures, and what the drawing's signs mean.

import { h } from "../dom.js";
import { duration } from "../format.js";

/** @import { WheelView } from "answers" */

/**
 * Explain the wheel that is shown.
 *
 * @param {WheelView} wheel
 */
export function explanation({ levels, tick_ms: tick, size }) {
  const finest = tick
    ? `a slot of the outer ring is ${duration(tick)} wide, so a turn takes ${duration(tick * size)}`
    : "the outer ring has the finest slots";
  const inner =
    levels.length > 1
      ? `One slot of the next ring is as wide as that whole turn.`
      : `A ring inside it is made when a deadline needs it.`;
  return [
    h("h2", {}, "How to read it"),
    h(
      "ol",
      { class: "steps" },
      h(
        "li",
        {},
        h("strong", {}, "Every member has a timer"),
        ` for the moment its session runs out. The wheel files timers by that moment: ${finest}. ${inner}`,
      ),
      h(
        "li",
        {},
        h("strong", {}, "The hands are the engine's clock."),
        " When a hand enters a slot of an inner ring, the timers in it move one ring out: a cascade.",
      ),
      h(
        "li",
        {},
        h("strong", {}, "On the outer ring the hand lets timers run out."),
        " Who has sent a heartbeat since is filed again under its new deadline; who has not is expired. ",
        "So no member is ever searched for: the engine looks only at the slot under the hand.",
      ),
    ),
  ];
}

/** Explain the signs. */
export const legend = () =>
  h(
    "ul",
    { class: "signs small soft" },
    h(
      "li",
      {},
      h("i", { class: "sign few" }),
      h("i", { class: "sign many" }),
      "few and many timers; the number says how many",
    ),
    h("li", {}, h("i", { class: "sign hand" }), "the slot under the hand"),
    h("li", {}, h("i", { class: "sign moved" }), "flashes: timers came in"),
  );
