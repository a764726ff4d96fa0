// One group of a broker's log: what the log says of it and what to change, how it stands at the end, all that happened.

import { get, isAborted, pathOf } from "../api.js";
import { tag, time } from "../cells.js";
import { h, put } from "../dom.js";
import { count, counted, duration } from "../format.js";
import { LOGGED_OUT_OF_A_GROUP } from "../log_columns.js";
import { failed, panel, readOn } from "../states.js";
import { goesByEpochs, kindWords, stateWords, troubleKind, troubleTopic } from "../words.js";
import { facts, newestOut, timelineLine } from "./detail_parts.js";

/** @import { GroupAnswer } from "answers" */

const LINES = 100;

/**
 * The parts of the page.
 *
 * @param {GroupAnswer} group
 * @param {AbortSignal} signal
 */
export const loggedGroup = (group, signal) => [
  verdict(group),
  stands(group),
  timeline(group.group_id, signal),
  newestOut(group, { title: "Out last", columns: LOGGED_OUT_OF_A_GROUP }),
];

/** @param {GroupAnswer} group */
function verdict({ verdict: sentences, troubles }) {
  if (!sentences.length) return null;
  return h(
    "section",
    { class: "panel verdict" },
    troubles.length
      ? h(
          "div",
          { class: "tags" },
          troubles.map(({ kind, words }) => tag({ ...troubleKind(kind), title: words })),
        )
      : null,
    h(
      "div",
      { class: "why" },
      h("h2", {}, "What the log says"),
      sentences.map((sentence) => h("p", {}, sentence)),
    ),
    troubles.map(({ kind }) => readOn(troubleTopic(kind))),
  );
}

/** @param {GroupAnswer} group */
function stands(group) {
  const { last } = group;
  const number = goesByEpochs(group.kind) ? "Epoch" : "Generation";
  return h(
    "section",
    { class: "panel" },
    h("div", { class: "tags" }, tag(stateWords(group.state)), h("span", { class: "soft" }, "at the end of the log")),
    h("p", { class: "state-words" }, group.state_words),
    facts([
      ["Members", group.members === null ? "not logged" : count(group.members)],
      [number, group.generation_id < 0 ? "not logged" : count(group.generation_id)],
      ["Kind", group.kind ? h("span", { title: kindWords(group.kind) }, group.kind) : "not in the log"],
      ["Last change", last ? [last.words, ", ", time(last.time_ms)] : "none seen"],
      ["It took", last?.duration_ms === null || last?.duration_ms === undefined ? null : duration(last.duration_ms)],
      ["Out by a timeout", counted(group.expirations_count, "time")],
      ["In Kafka's words", last?.reason || null, "wide"],
    ]),
  );
}

/**
 * All that happened, the newest first, older lines when they are asked for.
 *
 * @param {string} group
 * @param {AbortSignal} signal
 */
function timeline(group, signal) {
  const element = panel("What happened", "newest first");
  const list = h("ol", { class: "timeline whole", tabindex: "0", "aria-label": "What happened, newest first" });
  const foot = h("p", { class: "pager" });
  element.append(list, foot);
  const load = (/** @type {string} */ before) =>
    get(`/api/timeline${pathOf(group)}`, { before, limit: LINES }, { signal }).then(
      ({ rows, next, total }) => {
        list.append(...rows.map(timelineLine));
        const older = () => load(next ?? "");
        put(
          foot,
          h("span", {}, `${count(list.children.length)} of ${counted(total, "line")}.`),
          next ? h("button", { type: "button", class: "button", onclick: older }, "Older") : null,
        );
      },
      (error) => isAborted(error) || put(foot, failed(error)),
    );
  load("");
  return element;
}

