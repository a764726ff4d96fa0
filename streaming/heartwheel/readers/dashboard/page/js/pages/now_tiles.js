// The figures of page Now.

import { h, mark, put } from "../dom.js";
import { ago, clock, count, counted, duration, latest, NOTHING, rate } from "../format.js";

/** @import { Now } from "answers" */

/** @typedef {[figure: string, unit: string, note?: string, tone?: string | null]} Reading */

const UNREAD = "nothing was read yet";

/**
 * Whether Kafka has not answered since the dashboard began: what its topics hold is not known, and not zero.
 *
 * @param {Now} now
 */
const isUnread = ({ health, shards }) => health.state === "unreachable" && !shards;

/**
 * Each tile: its name, what it means, and how it reads from /api/now: `[figure, unit?, note?, tone?]`. Figures that
 * were not updated since `asOf` are not shown as present ones.
 *
 * @type {[name: string, about: string, read: (now: Now, asOf: number | null) => Reading][]}
 */
const TILES = [
  [
    "Members alive",
    "Members that neither were expired nor have left; those of unknown session count too",
    ({ members }, asOf) =>
      asOf === null || members === null
        ? [count(members), "", members === null ? "no job seen yet" : "not expired, and not left"]
        : [NOTHING, "", `not known; ${count(members)} at ${clock(asOf)}`],
  ],
  [
    "Groups",
    "Groups that the engine knows",
    ({ groups, groups_by_state }, asOf) =>
      groups === null
        ? [NOTHING, "", "no job seen yet"]
        : [count(groups), "", asOf === null ? byState(groups_by_state) : `as of ${clock(asOf)}`],
  ],
  [
    "Expired a minute",
    "Over the last minute",
    (now) => [
      rate(now.expirations_per_minute),
      "",
      isUnread(now) ? UNREAD : `${now.expirations_per_minute === null ? "no decisions; " : ""}${count(now.expirations_total)} in ${kept(now)}`,
    ],
  ],
  ["Known after", "From a member's deadline until its expiration was in Kafka: median of the window", lateness],
  ["Clock behind", "The engine's clock against wall time: how far behind the present it decides", clockBehind],
  [
    "Last batch",
    "How long the newest batch took",
    ({ last_batch, at_ms }) =>
      last_batch
        ? [
            ...split(duration(last_batch.duration_ms)),
            `${counted(last_batch.records, "record")}, ${ago(Math.max(0, at_ms - last_batch.at_ms))}`,
          ]
        : ["–", "", "no batch seen yet"],
  ],
  [
    "Backlog",
    "Records in the heartbeat topic that no batch has read yet",
    ({ backlog, last_batch }) =>
      backlog === null
        ? [NOTHING, "", last_batch ? "not known: nothing is read" : "no batch seen yet"]
        : [count(backlog), "", backlog ? "records not read yet" : "everything is read"],
  ],
  [
    "Heartbeats",
    "Records read a second",
    (now) => [
      rate(now.heartbeats_per_second),
      now.heartbeats_per_second === null ? "" : "/s",
      now.rejects_total
        ? `${counted(now.rejects_total, "record")} rejected`
        : isUnread(now)
          ? UNREAD
          : "none rejected",
      now.rejects_total ? "warn" : null,
    ],
  ],
];

/**
 * Format the length of the window that is kept, to the minute.
 *
 * @param {Now} now
 */
function kept({ at_ms, window }) {
  const ms = Math.max(0, at_ms - (window?.from_ms ?? at_ms));
  return ms < 60_000 ? "the last minute" : duration(Math.floor(ms / 60_000) * 60_000);
}

/** @param {Record<string, number>} states */
function byState(states) {
  const busy = (states?.PreparingRebalance ?? 0) + (states?.CompletingRebalance ?? 0) + (states?.Reconciling ?? 0);
  return busy ? `${count(busy)} rebalancing now` : "none rebalancing";
}

/**
 * @param {Now} now
 * @returns {Reading}
 */
function lateness(now) {
  const { lateness_ms } = now;
  if (!lateness_ms?.count) return ["–", "", isUnread(now) ? UNREAD : "none expired yet"];
  const late = lateness_ms.objective && lateness_ms.p99 > lateness_ms.objective;
  return [
    ...split(duration(lateness_ms.p50)),
    `${latest(lateness_ms.count, lateness_ms.p99)}${late ? `: over ${duration(lateness_ms.objective)}` : ""}`,
    late ? "warn" : null,
  ];
}

/**
 * @param {Now} now
 * @returns {Reading}
 */
function clockBehind({ clock_behind_ms, shards, shards_held }) {
  if (clock_behind_ms === null || clock_behind_ms === undefined) return ["–", "", "no clock seen yet"];
  const note = shards_held ? `held in ${count(shards_held)} of ${counted(shards, "shard")}` : counted(shards, "shard");
  return [...split(duration(clock_behind_ms)), note, shards_held ? "warn" : null];
}

/**
 * Split a figure from its unit, if it has just one.
 *
 * @param {string} text
 * @returns {[figure: string, unit: string]}
 */
function split(text) {
  const match = /^(-?[\d.,]+) (\S+)$/.exec(text);
  return match ? [match[1], match[2]] : [text, ""];
}

/** Make the tiles. Returns `{element, show(now)}`. */
export function tiles() {
  const made = TILES.map(([name, about, read]) => {
    const figure = h("span", { class: "figure" }, "–");
    const note = h("span", { class: "note" });
    const element = h("div", { class: "tile", title: about }, h("dt", {}, name), h("dd", {}, figure, h("br"), note));
    const show = (/** @type {Now} */ now, /** @type {number | null} */ asOf) => fill(figure, note, read(now, asOf));
    return { element, fill: show };
  });
  return {
    element: h(
      "dl",
      { class: "tiles" },
      made.map(({ element }) => element),
    ),
    show: (/** @type {Now} */ now, /** @type {number | null} */ asOf) => made.forEach((tile) => tile.fill(now, asOf)),
  };
}

/**
 * @param {HTMLElement} figure
 * @param {HTMLElement} note
 * @param {Reading} reading
 */
function fill(figure, note, [value, unit, words, tone]) {
  put(figure, value, unit ? h("small", {}, ` ${unit}`) : null);
  put(note, words ?? "");
  mark(note, "class", tone ? `note tone-${tone}` : "note");
}
