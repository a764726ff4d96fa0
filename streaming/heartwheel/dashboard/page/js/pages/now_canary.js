// What the canary has measured: members that fall silent on schedule, and whether each was expired, in time, truly.

import { tag } from "../cells.js";
import { h } from "../dom.js";
import { clock, count, counted, duration } from "../format.js";
import { code, empty } from "../states.js";
import { facts } from "./detail_parts.js";

/** @import { CanaryFigures, Now } from "answers" */

/**
 * Say in words and figures how the canary fares.
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
    ["Died on schedule", count(canary.expected)],
    ["Found in time", count(canary.known - canary.late)],
    ["Found late", count(canary.late)],
    ["Missed", count(canary.missed)],
    ["Expired while alive", count(canary.false)],
    ["Awaited now", count(canary.pending)],
    ["Known after, median", duration(canary.lateness_ms.p50)],
    ["99 of 100 within", duration(canary.lateness_ms.p99)],
    ["Longest", duration(canary.lateness_ms.max)],
  ]);
  figures.classList.add("tight");
  return [h("p", {}, tag({ icon, label, tone }), " ", words), undecided(canary), figures];
}

/**
 * What was proved until somebody looked last says nothing of now.
 *
 * @param {ReturnType<typeof verdict>} found
 * @param {number} asOf
 */
const former = ({ label, words }, asOf) => ({
  label: `${label} until ${clock(asOf)}`,
  icon: "clock",
  tone: "calm",
  words: `${words} Of now nothing can be said.`,
});

/** @param {CanaryFigures} figures */
function verdict({ known, missed, late, void: skipped, objective_ms: objective, false: wrong }) {
  if (missed || wrong) {
    const words = `${count(missed)} missed and ${count(wrong)} false: the engine's promises do not hold. Look at its log.`;
    return { label: "Broken", icon: "alert", tone: "bad", words };
  }
  if (late) {
    const words = `Every one that died was found, but ${count(late)} later than ${duration(objective)} after the deadline.`;
    return { label: "Late", icon: "clock", tone: "warn", words };
  }
  if (!known) {
    const words = skipped ? "None of those that died until now can be judged." : "No canary has had to die yet.";
    return { label: "Starting", icon: "hourglass", tone: "calm", words };
  }
  const words = "Every canary that died was found, and none that lived was expired.";
  return { label: "Proved", icon: "check", tone: "good", words };
}

/** @param {CanaryFigures} figures */
function undecided({ void: skipped, void_reason: why }) {
  if (!skipped) return null;
  return h(
    "p",
    { class: "soft small" },
    `Of ${counted(skipped, "silence")} nothing can be said${why ? `: ${why}` : ""}.`,
  );
}
