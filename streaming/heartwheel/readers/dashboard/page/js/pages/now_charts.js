// The charts of page Now: the recent time, step by step.

import { get } from "../api.js";
import { chart, COUNTS, RATES, TIMES } from "../charts.js";
import { h, put, write } from "../dom.js";
import { count, duration, rate } from "../format.js";

/** @import { Now, Series, SeriesStep } from "answers" */
/** @import { Router } from "../router.js" */
/** @import { Line, Visit } from "../types.d.ts" */

/** @typedef {Exclude<keyof Series & keyof SeriesStep, "step_ms" | "t_ms">} Key */
/**
 * One chart.
 *
 * @typedef {object} Spec
 * @property {string} title
 * @property {(stepMs: number) => string} [about]
 * @property {(value: number) => string} format
 * @property {number[]} steps
 * @property {(Line & { key: Key })[]} series
 */
/** @typedef {[number[], ...(number | null)[][]]} Data */

const POINTS = 120;

/** How far back the charts may go, ms: as far as the server keeps events (`dashboard.window`). */
const RANGES = [600_000, 3_600_000, 21_600_000, 86_400_000];

/**
 * Title, meaning, the series by their names in /api/series, the format of a value.
 *
 * @type {Spec[]}
 */
const CHARTS = [
  {
    title: "Expired members",
    about: (step) => `each bar is ${duration(step)}`,
    format: count,
    steps: COUNTS,
    series: [{ key: "expirations", label: "expired", colour: "chart-1", bars: true, fill: true }],
  },
  {
    title: "Known after the deadline",
    format: duration,
    steps: TIMES,
    series: [
      { key: "lateness_p50_ms", label: "median", colour: "chart-1" },
      { key: "lateness_p99_ms", label: "99 of 100, of fewer the longest", colour: "chart-2", dash: [5, 4] },
    ],
  },
  {
    title: "Heartbeats a second",
    format: rate,
    steps: RATES,
    series: [{ key: "heartbeats_per_second", label: "read", colour: "chart-3", fill: true }],
  },
  {
    title: "Batch duration",
    format: duration,
    steps: TIMES,
    series: [{ key: "batch_ms", label: "longest", colour: "chart-4", fill: true }],
  },
];

/**
 * Make the charts; they load by themselves and then follow the stream.
 *
 * @param {Pick<Visit, "router" | "stream" | "signal">} visit
 */
export function seriesCharts({ router, stream, signal }) {
  const made = CHARTS.map((spec) => ({
    spec,
    note: legend(spec),
    ...chart({
      series: spec.series,
      format: spec.format,
      steps: spec.steps,
      signal,
      summary: (data) => summary(spec, /** @type {Data} */ (data)),
      spanGaps: true,
    }),
  }));
  /** @type {Series | null} */
  let held = null;
  const draw = (/** @type {Series} */ data) => {
    for (const { spec, note, show } of made) {
      if (spec.about) write(note, spec.about(data.step_ms));
      show([data.t_ms, ...spec.series.map(({ key }) => data[key])]);
    }
  };
  const range = rangeField(router, () => load());
  const load = () =>
    get("/api/series", { points: POINTS, step_ms: range.ms() / POINTS }, { signal }).then(
      (series) => {
        if (series.step_ms !== range.ms() / POINTS) return; // another range was chosen meanwhile
        held = series;
        draw(held);
      },
      () => {},
    ); // no answer: the banner says so
  const follow = (/** @type {SeriesStep} */ step) => {
    if (!held) return;
    if (held.step_ms === step.step_ms) {
      add(held, step);
      draw(held);
    } else if (step.t_ms >= (held.t_ms.at(-1) ?? 0) + held.step_ms) load(); // the stream has only the finest steps
  };
  stream.addEventListener("reload", load, { signal });
  stream.addEventListener("series", ({ detail }) => follow(detail), { signal });
  load();
  const panels = made.map(({ spec, note, element }) =>
    h("div", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, spec.title), note), element),
  );
  return {
    element: h("section", { "aria-label": "Charts" }, range.element, h("div", { class: "charts" }, panels)),
    offer: range.offer,
  };
}

/**
 * Make the field for how far back the charts go. `offer(kept)` sets how long the server keeps events.
 *
 * @param {Router} router
 * @param {() => unknown} changed
 */
function rangeField(router, changed) {
  const asked = Number(router.query.get("range"));
  let chosen = RANGES.includes(asked) ? asked : RANGES[0];
  /** @type {HTMLSelectElement} */
  const choice = h("select", {
    onchange: () => {
      chosen = Number(choice.value);
      router.keep({ range: chosen === RANGES[0] ? "" : choice.value });
      changed();
    },
  });
  const note = h("span", { class: "soft small" });
  let offered = -1;
  const offer = (/** @type {Now} */ { window: { kept_ms: kept } }) => {
    if (kept === offered) return;
    offered = kept;
    const ranges = RANGES.filter((ms) => ms <= Math.max(kept, chosen));
    put(choice, ranges.map((ms) => h("option", { value: ms, selected: ms === chosen }, `Last ${duration(ms)}`)));
    write(note, `Kept: the last ${duration(kept)} (dashboard.window).`);
  };
  const element = h("div", { class: "tools" }, h("label", { class: "field" }, h("span", {}, "Charts"), choice), note);
  return { element, offer, ms: () => chosen };
}

/** @param {Spec} spec */
function legend({ series }) {
  if (series.length === 1) return h("span", { class: "soft" });
  return h(
    "span",
    { class: "legend" },
    series.map(({ label }, at) => h("span", {}, h("i", { class: at ? "two" : "" }), label)),
  );
}

/**
 * Add one step, or replace the newest one: a step is sent again while it fills.
 *
 * @param {Series} held
 * @param {SeriesStep} step
 */
export function add(held, step) {
  const again = held.t_ms.at(-1) === step.t_ms;
  for (const [key, values] of Object.entries(/** @type {Record<string, unknown>} */ (held))) {
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
