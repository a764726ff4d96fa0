// The canary's measurements: whether members that fall silent on schedule were expired, in time and rightly.

import { tag } from "../cells.js";
import { h } from "../dom.js";
import { clock, count, counted, duration } from "../format.js";
import { code, empty } from "../states.js";
import { facts } from "./detail_parts.js";

/** @import { CanaryFigures, Now } from "answers" */

/**
 * Show the canary's result in words and figures.
 *
 * @param {Now} now
 * @param {number | null} asOf
 */
export function canaryWords({ canary }, asOf) {
  if (!canary?.enabled) {
    return empty(
      "The canary is off.",
      "Set ",
      code("canary.enabled = true"),
      " to have the engine proved all the time.",
    );
  }
  const { label, icon, tone, words } = asOf === null ? verdict(canary) : former(verdict(canary), asOf);
  const figures = facts([
    ["Silent on schedule", count(canary.expected)],
    ["Found in time", count(canary.known - canary.late)],
    ["Found late", count(canary.late)],
    ["Missed", count(canary.missed)],
    ["Expired while alive", count(canary.false)],
    ["Awaited now", count(canary.pending)],
    ["Cannot be judged", h("span", { title: canary.void_reason }, count(canary.void))],
    ["Known after, median", duration(canary.lateness_ms.p50)],
    ["99 of 100 within", canary.known < 100 ? null : duration(canary.lateness_ms.p99)],
    ["Longest", duration(canary.lateness_ms.max)],
  ]);
  figures.classList.add("tight");
  return [h("p", {}, tag({ icon, label, tone }), " ", words), figures];
}

/**
 * Results from before the engine stopped say nothing about now.
 *
 * @param {ReturnType<typeof verdict>} found
 * @param {number} asOf
 */
const former = ({ label, words }, asOf) => ({
  label: `${label} until ${clock(asOf)}`,
  icon: "clock",
  tone: "calm",
  words: `${words} The present result is not known.`,
});

/**
 * Return one verdict on the decided silences: those that are pending, or cannot be judged, are only in the figures.
 *
 * @param {CanaryFigures} figures
 */
function verdict({ expected, known, missed, late, pending, void_reason: why, objective_ms: objective, false: wrong }) {
  if (missed || wrong) {
    const found = [
      missed ? `${count(missed)} of ${count(missed + known)} silences ${missed === 1 ? "was" : "were"} not found in time` : "",
      wrong ? `${counted(wrong, "living member")} ${wrong === 1 ? "was" : "were"} expired` : "",
    ];
    const words = `${found.filter(Boolean).join(", and ")}: the engine's promises do not hold. Look at its log.`;
    return { label: "Broken", icon: "alert", tone: "bad", words };
  }
  if (late) {
    const words = `${count(late)} of ${count(known)} silences ${late === 1 ? "was" : "were"} found later than ${duration(objective)} after the deadline.`;
    return { label: "Late", icon: "clock", tone: "warn", words };
  }
  if (known) {
    const words = `${known === 1 ? "The one silence" : `All ${count(known)} silences`} that can be judged ${known === 1 ? "was" : "were"} found in time, and no living member was expired.`;
    return { label: "Proved", icon: "check", tone: "good", words };
  }
  const words = pending
    ? "The first silence may still be found in time."
    : expected
      ? `No silence can be judged${why ? `: ${why}` : ""}.`
      : "No member of the canary has fallen silent yet.";
  return { label: pending || !expected ? "Starting" : "Not known", icon: "hourglass", tone: "calm", words };
}
