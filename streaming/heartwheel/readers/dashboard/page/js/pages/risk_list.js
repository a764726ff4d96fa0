// Members by the time until their deadline, with bars that run down between two updates.

import { groupHref, linked, memberHref } from "../cells.js";
import { h, mark, put, write } from "../dom.js";
import { clock, countdown, duration, utc } from "../format.js";
import { empty } from "../states.js";
import { table } from "../table.js";

/** @import { AtRisk } from "answers" */
/** @import { Stream } from "../stream.js" */
/** @import { Cell, Column } from "../types.d.ts" */

/** @typedef {Omit<AtRisk, "clock_ms">} Risk */

const SOON_MS = 2_000;

/**
 * Make the list. Returns `{element, show({rows}), tick()}`; `tick` moves the bars.
 *
 * @param {{ stream: Stream, rows?: number }} wanted
 */
export function riskList({ stream, rows: limit = 50 }) {
  /** @type {Set<() => void>} */
  const bars = new Set();
  /** @type {Column<Risk>} */
  const left = {
    label: "Left until its deadline",
    width: "38%",
    className: "wide bare",
    about: "What is left of the member's session: full just after a heartbeat, empty at its deadline",
    cell: () => bar(bars, stream),
  };
  const list = table({
    caption: "Members nearest to expiry",
    key: (/** @type {Risk} */ { group_id, member_id }) => `${group_id}\n${member_id}`,
    columns: [
      {
        label: "Member",
        width: "34%",
        className: "wide bare c-risk-member",
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
        className: "bare c-risk-group",
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
          "No member is waited for.",
          "Either no member is alive, or the engine is still catching up and does not let deadlines pass.",
        ),
      );
    if (list.element.parentNode !== element) put(element, list.element);
    list.show(rows.slice(0, limit));
    return tick();
  };
  return { element, show, tick };
}

/**
 * @param {Set<() => void>} bars
 * @param {Stream} stream
 * @returns {Cell<Risk>}
 */
function bar(bars, stream) {
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
    const session = row.session_timeout_ms;
    const undecided = stream.asOfMs !== null;
    // Without the length of its session a bar would have no full length.
    track.hidden = session === null;
    const share = session === null || undecided ? 0 : left / session;
    fillElement.style.transform = `scaleX(${Math.min(1, Math.max(0, share))})`;
    mark(element, "class", `risk tone-${undecided ? "calm" : left <= 0 ? "bad" : left < SOON_MS ? "warn" : "accent"}`);
    write(words, undecided ? "not decided" : left <= 0 ? "deadline passed" : countdown(left));
    write(note, noteOf(left, session, undecided));
  };
  bars.add(draw);
  return { element, fill: (fresh) => ((row = fresh), draw()) };
}

/**
 * @param {number} left
 * @param {number | null} session
 * @param {boolean} undecided
 */
function noteOf(left, session, undecided) {
  if (undecided) return "the engine does not decide at the moment";
  if (left <= 0) return `${duration(-left)} ago, unless a heartbeat is on its way`;
  const soon = left < SOON_MS ? "soon; " : "";
  if (session === null) return `${soon}session not known`;
  // A member that has just asked to join has longer than its session.
  return left > session ? `its session: ${duration(session)}` : `${soon}of ${duration(session)}`;
}
