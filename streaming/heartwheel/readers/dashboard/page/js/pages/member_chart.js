// How long a member was silent: a line that rises until the next event, and the session timeout it must not meet.

import { chart, colour, TIMES } from "../charts.js";
import { duration } from "../format.js";

/** @import UPlot from "uplot" */
/** @import { MemberHistory } from "answers" */

/**
 * Make the chart. Returns `{element, show(history)}`.
 *
 * @param {{ signal: AbortSignal }} wanted
 */
export function silenceChart({ signal }) {
  /** @type {MemberHistory | null} */
  let shown = null;
  const { element, show } = chart({
    signal,
    height: 210,
    format: duration,
    steps: TIMES,
    series: [
      { label: "silent for", colour: "chart-1", fill: true },
      { label: "over the timeout", colour: "chart-bad", fill: true },
      { label: "session timeout", colour: "chart-bad", dash: [5, 4] },
    ],
    summary: () => (shown ? words(shown) : ""),
    hooks: { draw: [(plot) => shown?.deadline_ms && deadline(plot, shown.deadline_ms)] },
  });
  return { element, show: (/** @type {MemberHistory} */ history) => show(lines((shown = history))) };
}

/**
 * The points of the three lines, as uPlot wants them: `[times, silences, silences over the timeout, timeout]`.
 *
 * @param {MemberHistory} history
 * @returns {UPlot.AlignedData}
 */
export function lines({ events, session_timeout_ms: limit, deadline_ms: deadline }) {
  /** @type {[ms: number, silent: number][]} */
  const points = [];
  const times = events.map(({ at_ms }) => at_ms);
  const lastBeat = times.findLastIndex((ms) => !deadline || ms < deadline);
  times.forEach((ms, at) => {
    if (at) points.push([ms, ms - times[at - 1]]);
    points.push([ms, 0]);
  });
  if (deadline && lastBeat === times.length - 1) {
    const reach = Math.round((limit ?? 0) * 0.35);
    points.push([deadline, deadline - times[lastBeat]], [deadline + reach, deadline + reach - times[lastBeat]]);
  }
  const crossed = points.flatMap((point, at) => crossing(points[at - 1], point, limit));
  return [
    crossed.map(([ms]) => ms),
    crossed.map(([, silent]) => silent),
    crossed.map(([, silent]) => (limit && silent >= limit ? silent : null)),
    crossed.map(() => limit),
  ];
}

/**
 * A point, and before it the one where the line meets the timeout, if it does on the way.
 *
 * @param {[number, number] | undefined} before
 * @param {[number, number]} point
 * @param {number | null | undefined} limit
 * @returns {[number, number][]}
 */
function crossing(before, point, limit) {
  if (!limit || !before || before[1] >= limit || point[1] <= limit) return [point];
  return [[before[0] + limit - before[1], limit], point];
}

/**
 * @param {UPlot} plot
 * @param {number} ms
 */
function deadline(plot, ms) {
  const x = plot.valToPos(ms, "x", true);
  const { top, height } = plot.bbox;
  const { ctx } = plot;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour("chart-bad");
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x, top + height);
  ctx.stroke();
  ctx.font = `${11 * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;
  ctx.textAlign = "right";
  ctx.fillText("deadline", x - 6 * devicePixelRatio, top + 12 * devicePixelRatio);
  ctx.restore();
}

/** @param {MemberHistory} history */
function words({ gaps, events, session_timeout_ms: limit, deadline_ms: deadline }) {
  const longest = Math.max(0, ...(gaps ?? []).map(({ gap_ms }) => gap_ms));
  const end = deadline
    ? ` After the last event before the deadline nothing came for the whole session timeout, ${duration(limit)}.`
    : "";
  return `${events.length} events; the longest gap between two was ${duration(longest)}.${end}`;
}
