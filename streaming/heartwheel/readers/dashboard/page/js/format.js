// Numbers, durations and times as people read them. Times come as epoch ms and are shown in the reader's zone.

import { fromLog } from "./source.js";

const NUMBER = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** People read the broker's log next to the page, so its times are shown as in the log. */
const timeZone = fromLog ? "UTC" : undefined;

const CLOCK = new Intl.DateTimeFormat(undefined, {
  timeZone,
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const CLOCK_MS = new Intl.DateTimeFormat(undefined, {
  timeZone,
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 1,
  hourCycle: "h23",
});
const DAY = new Intl.DateTimeFormat(undefined, { timeZone, day: "numeric", month: "short" });
/** @type {[string, number][]} */
const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
];

export const NOTHING = "–";

/**
 * @param {number | null | undefined} value
 * @returns {value is null | undefined}
 */
const missing = (value) => value === null || value === undefined;

/**
 * Format a count: 12,345; from a million on 1.2M.
 *
 * @param {number | null | undefined} value
 */
export function count(value) {
  if (missing(value)) return NOTHING;
  return Math.abs(value) < 1_000_000 ? NUMBER.format(Math.round(value)) : SHORT.format(value);
}

/**
 * Format how many members a group has: "50", "47 of 50" if the expected number is known, "3 (1 unknown)" if the session
 * of one is not known.
 *
 * @param {{ members: number | null, expected: number | null, unknown_sessions: number }} group
 */
export const membersOf = ({ members, expected, unknown_sessions: unknown }) =>
  `${count(members)}${missing(expected) ? "" : ` of ${count(expected)}`}${unknown ? ` (${count(unknown)} unknown)` : ""}`;

/**
 * Format a rate: two significant digits below ten, a whole number from ten on.
 *
 * @param {number | null | undefined} value
 */
export function rate(value) {
  if (missing(value)) return NOTHING;
  return Math.abs(value) < 10 ? String(Number(value.toFixed(1))) : count(value);
}

/**
 * Format a count of things: "1 member", "2 members".
 *
 * @param {number | null | undefined} value
 * @param {string} one
 * @param {string} [many]
 */
export const counted = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

/**
 * Format a length of time: 640 ms, 6 s, 6.4 s, 1 min 5 s, 2 h 3 min.
 *
 * @param {number | null | undefined} ms
 * @returns {string}
 */
export function duration(ms) {
  if (missing(ms)) return NOTHING;
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${trimmed(ms / 1_000)} s`;
  const long = Math.max(ms, 60_000); // a length that rounds to 60 s becomes 1 min
  const found = UNITS.findIndex(([, length]) => long >= length);
  const [[unit, size], next] = [UNITS[found], UNITS[found + 1]];
  const whole = Math.floor(long / size);
  const rest = Math.floor((long % size) / next[1]);
  return rest ? `${whole} ${unit} ${rest} ${next[0]}` : `${whole} ${unit}`;
}

/** @param {number} seconds */
const trimmed = (seconds) => (seconds < 10 ? seconds.toFixed(1) : seconds.toFixed(0)).replace(/\.0$/, "");

/**
 * Format the 99th percentile of lengths of time; for fewer than a hundred it is the longest of them.
 *
 * @param {number} number how many there are
 * @param {number} p99 ms
 */
export const latest = (number, p99) =>
  number < 100 ? `longest of ${count(number)}: ${duration(p99)}` : `99 of 100 within ${duration(p99)}`;

/**
 * Format a countdown: tenths below ten seconds, so that it visibly moves.
 *
 * @param {number} ms
 */
export function countdown(ms) {
  return ms >= 10_000 ? duration(Math.ceil(ms / 1_000) * 1_000) : `${Math.max(0, ms / 1_000).toFixed(1)} s`;
}

/**
 * Format how long ago something was, roughly.
 *
 * @param {number} ms
 */
export const ago = (ms) =>
  ms < 1_500 ? "just now" : `${duration(ms < 60_000 ? Math.round(ms / 1_000) * 1_000 : ms)} ago`;

/**
 * Format a time of day in the reader's zone, with the day if it is not today.
 *
 * @param {number | null | undefined} ms
 * @param {{ tenths?: boolean }} [options]
 */
export function clock(ms, { tenths = false } = {}) {
  if (missing(ms) || ms < 0) return NOTHING;
  const date = new Date(ms);
  const time = (tenths ? CLOCK_MS : CLOCK).format(date);
  return !fromLog && date.toDateString() === new Date().toDateString() ? time : `${DAY.format(date)} ${time}`;
}

/**
 * Format a time of day without its day, for a line below one that has it.
 *
 * @param {number | null | undefined} ms
 */
export const timeOfDay = (ms) => (missing(ms) || ms < 0 ? NOTHING : CLOCK.format(new Date(ms)));

/**
 * Format a day: 22 Nov.
 *
 * @param {number} ms
 */
export const dayOf = (ms) => DAY.format(new Date(ms));

/**
 * Format a time in UTC, for titles.
 *
 * @param {number | null | undefined} ms
 */
export const utc = (ms) =>
  missing(ms) || ms < 0 ? "" : `${new Date(ms).toISOString().replace("T", " ").replace("Z", "")}${fromLog ? "" : " UTC"}`;

/**
 * Format a size: 640 B, 12 kB, 1.2 MB.
 *
 * @param {number | null | undefined} value
 */
export function bytes(value) {
  if (missing(value)) return NOTHING;
  if (value < 1_000) return `${value} B`;
  return value < 1_000_000 ? `${Math.round(value / 1_000)} kB` : `${(value / 1_000_000).toFixed(1)} MB`;
}
