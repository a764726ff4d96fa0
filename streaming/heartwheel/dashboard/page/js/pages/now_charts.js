// The charts of page Now: the last while, step by step.

import { get } from "../api.js";
import { chart } from "../charts.js";
import { h } from "../dom.js";
import { count, duration, rate } from "../format.js";

const POINTS = 120;

/** Title, what it tells, the series by their names in /api/series, how a value is written. */
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

/** Make the charts; they load by themselves and then follow the stream. */
export function seriesCharts({ stream, signal }) {
  const made = CHARTS.map((spec) => ({
    spec,
    ...chart({
      series: spec.series,
      format: spec.format,
      signal,
      summary: (data) => summary(spec, data),
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
  let held = null;
  const draw = () => made.forEach(({ spec, show }) => show([held.t_ms, ...spec.series.map(({ key }) => held[key])]));
  const load = () =>
    get("/api/series", { points: POINTS }, { signal }).then(
      (series) => {
        held = series;
        draw();
      },
      () => {},
    ); // no answer: the banner says so
  stream.addEventListener("reload", load, { signal });
  stream.addEventListener("series", ({ detail }) => held && (add(held, detail), draw()), { signal });
  load();
  return { element };
}

function legend({ series, about }) {
  if (series.length === 1) return about ? h("span", { class: "soft" }, about) : null;
  return h(
    "span",
    { class: "legend" },
    series.map(({ label }, at) => h("span", {}, h("i", { class: at ? "two" : "" }), label)),
  );
}

/** Add one step, or write the newest anew: a step is told again while it fills. */
export function add(held, step) {
  const again = held.t_ms.at(-1) === step.t_ms;
  for (const [key, values] of Object.entries(held)) {
    if (!Array.isArray(values) || step[key] === undefined) continue;
    if (again) values[values.length - 1] = step[key];
    else values.push(step[key]);
    if (values.length > POINTS) values.shift();
  }
}

function summary({ title, series, format }, data) {
  const parts = series.map(({ label }, at) => {
    const known = data[at + 1].filter((value) => value !== null && value !== undefined);
    return known.length
      ? `${label}: now ${format(known.at(-1))}, at most ${format(Math.max(...known))}`
      : `${label}: nothing known yet`;
  });
  return `${title}. ${parts.join("; ")}.`;
}
