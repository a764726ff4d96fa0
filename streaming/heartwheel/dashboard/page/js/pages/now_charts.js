// The charts of page Now: the last while, step by step.

import { get } from "../api.js";
import { chart } from "../charts.js";
import { h } from "../dom.js";
import { count, duration, rate } from "../format.js";

/** @import { Series, SeriesStep } from "../answers.d.ts" */
/** @import { Following, Line } from "../types.d.ts" */

/** @typedef {Exclude<keyof Series & keyof SeriesStep, "step_ms" | "t_ms">} Key */
/**
 * One chart.
 *
 * @typedef {object} Spec
 * @property {string} title
 * @property {string} about
 * @property {(value: number) => string} format
 * @property {(Line & { key: Key })[]} series
 */
/** @typedef {[number[], ...(number | null)[][]]} Data */

const POINTS = 120;

/**
 * Title, what it tells, the series by their names in /api/series, how a value is written.
 *
 * @type {Spec[]}
 */
const CHARTS = [
  {
    title: "Expired members",
    about: "each bar is 5 s",
    format: rate,
    series: [{ key: "expirations", label: "expired", colour: "chart-1", bars: true, fill: true }],
  },
  {
    title: "Known after the deadline",
    about: "",
    format: duration,
    series: [
      { key: "lateness_p50_ms", label: "median", colour: "chart-1" },
      { key: "lateness_p99_ms", label: "99 of 100", colour: "chart-2", dash: [5, 4] },
    ],
  },
  {
    title: "Heartbeats a second",
    about: "",
    format: count,
    series: [{ key: "heartbeats_per_second", label: "read", colour: "chart-3", fill: true }],
  },
  {
    title: "Batch duration",
    about: "",
    format: duration,
    series: [{ key: "batch_ms", label: "longest", colour: "chart-4", fill: true }],
  },
];

/**
 * Make the charts; they load by themselves and then follow the stream.
 *
 * @param {Following} visit
 */
export function seriesCharts({ stream, signal }) {
  const made = CHARTS.map((spec) => ({
    spec,
    ...chart({
      series: spec.series,
      format: spec.format,
      signal,
      summary: (data) => summary(spec, /** @type {Data} */ (data)),
      spanGaps: true,
    }),
  }));
  const element = h(
    "section",
    { class: "charts", "aria-label": "Charts" },
    made.map(({ spec, element: canvas }) =>
      h("div", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, spec.title), legend(spec)), canvas),
    ),
  );
  /** @type {Series | null} */
  let held = null;
  const draw = (/** @type {Series} */ data) =>
    made.forEach(({ spec, show }) => show([data.t_ms, ...spec.series.map(({ key }) => data[key])]));
  const load = () =>
    get("/api/series", { points: POINTS }, { signal }).then(
      (series) => {
        held = series;
        draw(held);
      },
      () => {},
    ); // no answer: the banner says so
  stream.addEventListener("reload", load, { signal });
  stream.addEventListener("series", ({ detail }) => held && (add(held, detail), draw(held)), { signal });
  load();
  return { element };
}

/** @param {Spec} spec */
function legend({ series, about }) {
  if (series.length === 1) return about ? h("span", { class: "soft" }, about) : null;
  return h(
    "span",
    { class: "legend" },
    series.map(({ label }, at) => h("span", {}, h("i", { class: at ? "two" : "" }), label)),
  );
}

/**
 * Add one step, or write the newest anew: a step is sent again while it fills.
 *
 * @param {Series} held
 * @param {SeriesStep} step
 */
export function add(held, step) {
  const again = held.t_ms.at(-1) === step.t_ms;
  for (const [key, values] of Object.entries(held)) {
    const value = step[/** @type {keyof SeriesStep} */ (key)];
    if (!Array.isArray(values) || value === undefined) continue;
    if (again) values[values.length - 1] = value;
    else values.push(value);
    if (values.length > POINTS) values.shift();
  }
}

/**
 * @param {Spec} spec
 * @param {Data} data
 */
function summary({ title, series, format }, [, ...drawn]) {
  const parts = series.map(({ label }, at) => {
    const known = drawn[at].filter((value) => value !== null && value !== undefined);
    return known.length
      ? `${label}: now ${format(known[known.length - 1])}, at most ${format(Math.max(...known))}`
      : `${label}: nothing known yet`;
  });
  return `${title}. ${parts.join("; ")}.`;
}
