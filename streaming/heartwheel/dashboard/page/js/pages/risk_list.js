// Members by what is left until their deadline, with bars that run down between two updates.

import { groupHref, linked, memberHref } from "../cells.js";
import { h, mark, put, write } from "../dom.js";
import { clock, countdown, duration, utc } from "../format.js";
import { empty } from "../states.js";
import { table } from "../table.js";

/** @import { AtRisk } from "../answers.d.ts" */
/** @import { Stream } from "../stream.js" */
/** @import { Cell, Column } from "../types.d.ts" */

/** @typedef {Omit<AtRisk, "clock_ms">} Risk */

/** Bars are as long as what is left, against the first of these that most rows stay under; the others are full. */
const SCALES = [5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000, 86_400_000];

const SOON_MS = 2_000;

/**
 * Make the list. Returns `{element, show({rows}), tick()}`; `tick` moves the bars.
 *
 * @param {{ stream: Stream, rows?: number }} wanted
 */
export function riskList({ stream, rows: limit = 50 }) {
  /** @type {Set<() => void>} */
  const bars = new Set();
  let scale = SCALES[0];
  /** @type {Column<Risk>} */
  const left = {
    label: "Left until its deadline",
    width: "38%",
    className: "wide bare",
    cell: () => bar(bars, () => scale, stream),
  };
  const list = table({
    caption: "Members nearest to expiry",
    key: (/** @type {Risk} */ { group_id, member_id }) => `${group_id}\n${member_id}`,
    columns: [
      {
        label: "Member",
        width: "34%",
        className: "wide bare",
        cell: () =>
          linked((row) => ({
            href: memberHref(row.group_id, row.member_id),
            first: row.member_id,
            second: `shard ${row.shard}`,
          })),
      },
      {
        label: "Group",
        width: "28%",
        cell: () =>
          linked((row) => ({
            href: groupHref(row.group_id),
            first: row.group_id,
            second: `deadline ${clock(row.deadline_ms)}`,
            titleSecond: utc(row.deadline_ms),
          })),
      },
      left,
    ],
  });
  const element = h("div", { class: "panel flush" });
  const tick = () => bars.forEach((draw) => draw());
  const show = (/** @type {{ rows: Risk[] }} */ { rows }) => {
    if (!rows.length)
      return put(
        element,
        empty(
          "Nobody is waited for.",
          "Either no member is alive, or the engine is still catching up and does not let deadlines pass.",
        ),
      );
    if (list.element.parentNode !== element) put(element, list.element);
    const usual = rows[Math.floor(rows.length * 0.75)].deadline_ms - stream.serverMs();
    scale = SCALES.find((end) => end >= usual) ?? SCALES[SCALES.length - 1];
    list.show(rows.slice(0, limit));
    return tick();
  };
  return { element, show, tick };
}

/**
 * @param {Set<() => void>} bars
 * @param {() => number} scale
 * @param {Stream} stream
 * @returns {Cell<Risk>}
 */
function bar(bars, scale, stream) {
  const fillElement = h("i");
  const track = h("div", { class: "bar" }, fillElement);
  const words = h("span", { class: "strong nowrap" });
  const note = h("span", { class: "faint small" });
  const element = h("div", { class: "risk" }, h("span", { class: "risk-words" }, words, note), track);
  /** @type {Risk | null} */
  let row = null;
  const draw = () => {
    if (!row) return;
    const left = row.deadline_ms - stream.serverMs();
    fillElement.style.transform = `scaleX(${Math.min(1, Math.max(0, left / scale()))})`;
    mark(element, "class", `risk tone-${left <= 0 ? "bad" : left < SOON_MS ? "warn" : "accent"}`);
    write(words, left <= 0 ? "deadline passed" : countdown(left));
    write(
      note,
      left <= 0
        ? `${duration(-left)} ago, unless a heartbeat is on its way`
        : left < SOON_MS
          ? "soon"
          : `of ${duration(scale())}`,
    );
  };
  bars.add(draw);
  return { element, fill: (fresh) => ((row = fresh), draw()) };
}
