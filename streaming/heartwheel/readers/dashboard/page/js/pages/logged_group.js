// One group of a broker's log: the verdict and what to change, how it stands, its members as lanes, its timeline.

import { tag, time } from "../cells.js";
import { h } from "../dom.js";
import { count, counted, duration } from "../format.js";
import { LOGGED_OUT_OF_A_GROUP } from "../log_columns.js";
import { AT_END } from "../source.js";
import { readOn } from "../states.js";
import { goesByEpochs, kindWords, stateWords, troubleKind, troubleTopic } from "../words.js";
import { facts, newestOut } from "./detail_parts.js";

/** @import { GroupAnswer } from "answers" */

/**
 * The parts of the page.
 *
 * @param {GroupAnswer} group
 * @param {HTMLElement} lanes the panel of its members as lanes
 * @param {HTMLElement} happened the panel of the timeline
 */
export const loggedGroup = (group, lanes, happened) => [
  verdict(group),
  stands(group),
  lanes,
  happened,
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

/**
 * From when on they are counted, if older ones are in the history alone.
 *
 * @param {GroupAnswer} group
 */
const sinceOf = ({ older_until_ms: older }) => (typeof older === "number" ? [" since ", time(older)] : null);

/** @param {GroupAnswer} group */
function stands(group) {
  const { last } = group;
  const number = goesByEpochs(group.kind) ? "Epoch" : "Generation";
  return h(
    "section",
    { class: "panel" },
    h("div", { class: "tags" }, tag(stateWords(group.state)), h("span", { class: "soft" }, AT_END)),
    h("p", { class: "state-words" }, group.state_words),
    facts([
      ["Members", group.members === null ? "not logged" : count(group.members)],
      [number, group.generation_id < 0 ? "not logged" : count(group.generation_id)],
      ["Kind", group.kind ? h("span", { title: kindWords(group.kind) }, group.kind) : "not in the log"],
      ["Last change", last ? [last.words, ", ", time(last.began_ms)] : "none seen"],
      ["It took", last?.duration_ms === null || last?.duration_ms === undefined ? null : duration(last.duration_ms)],
      ["Out by a timeout", [counted(group.expirations_count, "time"), sinceOf(group)]],
      ["In Kafka's words", last?.reason || null, "wide"],
    ]),
  );
}
