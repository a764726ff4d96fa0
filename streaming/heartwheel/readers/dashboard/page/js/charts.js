// Charts over time with uPlot: thin lines, few grid lines, the theme's colours, and a sentence for screen readers.

import { h, put } from "./dom.js";

/** @import UPlot from "uplot" */
/** @import { Line } from "./types.d.ts" */

/** @typedef {{ summary: (data: UPlot.AlignedData) => string, signal: AbortSignal }} Around */

/**
 * The content and the format of a chart.
 *
 * @typedef {object} Drawing
 * @property {Line[]} series
 * @property {(value: number) => string} format
 * @property {number[]} steps what two lines of the y axis may be apart
 * @property {number} height
 * @property {UPlot.Hooks.Arrays} hooks
 * @property {(ms: number, at: number, splits: number[]) => string} ticks
 * @property {boolean} spanGaps
 */

const HEIGHT = 150;

const DECADES = Array.from({ length: 13 }, (_, power) => 10 ** power);

/** Of things that are counted: a line at half a member would be written as the one above or below it. */
export const COUNTS = DECADES.flatMap((unit) => [unit, 2 * unit, 5 * unit]);

/** Of rates, which are written with one decimal. */
export const RATES = [0.1, 0.2, 0.5, ...COUNTS];

/** Of lengths of time, ms: as they are written, in whole units from a second on. */
export const TIMES = [
  ...COUNTS.filter((ms) => ms <= 20_000),
  ...[0.5, 1, 2, 5, 10, 20, 30, 60, 120, 360, 720, 1_440, 2_880, 7_200, 14_400].map((minutes) => minutes * 60_000),
];

const clocks = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const seconds = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

/**
 * Return the present colour of a custom property: canvases support neither properties nor light-dark().
 *
 * @param {string} name
 */
export function colour(name) {
  const probe = h("i", { hidden: true });
  document.body.append(probe);
  probe.style.color = `var(--${name})`;
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/**
 * Make a chart that fills its parent's width and follows the theme.
 *
 * `series`: `{label, colour, dash?, fill?, bars?}`; `format(value)` writes a value of the y axis, whose lines are `steps` apart;
 * `summary(data)` describes the data in words. Returns `{element, show([t_ms, ...values])}`.
 *
 * @param {Pick<Drawing, "series" | "format" | "steps"> & Partial<Drawing> & Around} wanted
 */
export function chart({
  series,
  format,
  steps,
  summary,
  signal,
  height = HEIGHT,
  hooks = {},
  ticks = clockTicks,
  spanGaps = false,
}) {
  const canvas = h("div", { class: "chart", role: "img" });
  /** @type {UPlot | null} */
  let plot = null;
  /** @type {UPlot.AlignedData | null} */
  let data = null;
  const draw = () => {
    plot?.destroy();
    plot = null;
    if (!data || !canvas.clientWidth) return;
    plot = new uPlot(
      options({ series, format, steps, height, width: canvas.clientWidth, hooks, ticks, spanGaps }),
      data,
      put(canvas),
    );
  };
  const resize = new ResizeObserver(() => (plot ? plot.setSize({ width: canvas.clientWidth, height }) : draw()));
  resize.observe(canvas);
  addEventListener("heartwheel-theme", draw, { signal });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw, { signal });
  signal.addEventListener("abort", () => {
    resize.disconnect();
    plot?.destroy();
  });
  const show = (/** @type {UPlot.AlignedData} */ fresh) => {
    data = fresh;
    canvas.setAttribute("aria-label", summary(fresh));
    if (plot) plot.setData(fresh);
    else draw();
  };
  return { element: canvas, show };
}

/**
 * @param {Drawing & { width: number }} drawing
 * @returns {UPlot.Options}
 */
function options({ series, format, steps, height, width, hooks, ticks, spanGaps }) {
  const faint = colour("ink-faint");
  const axis = {
    stroke: faint,
    font: `11px ${getComputedStyle(document.body).fontFamily}`,
    ticks: { show: false },
    grid: { stroke: colour("line"), width: 1 },
  };
  return {
    width,
    height,
    hooks,
    ms: 1,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    padding: [8, 20, 0, 0],
    scales: { y: { range: (_plot, _low, high) => [0, nice(high)] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 70,
        size: 26,
        // A range of about a second has several ticks in the same second, whose label is written once.
        values: (_plot, splits) =>
          splits.map((ms, at) => ticks(ms, at, splits)).map((text, at, all) => (text === all[at - 1] ? "" : text)),
      },
      {
        ...axis,
        size: 52,
        space: 28,
        incrs: steps,
        values: (_plot, splits) => splits.map((value) => (value ? format(value) : "0")),
      },
    ],
    series: [
      {},
      ...series.map((one) => ({
        label: one.label,
        stroke: colour(one.colour),
        width: 1.6,
        dash: one.dash,
        spanGaps,
        // A line needs two points: where only one value is known, it is drawn as a dot.
        points: { show: (/** @type {UPlot} */ { data }, /** @type {number} */ at) => !one.bars && isSingle(data[at]) },
        fill: one.fill ? colour(one.colour).replace(/^rgb\((.*)\)$/, "rgba($1, 0.14)") : undefined,
        paths: one.bars ? uPlot.paths.bars?.({ size: [0.7, 40, 1] }) : undefined,
      })),
    ],
  };
}

/** @param {ArrayLike<number | null | undefined>} values */
const isSingle = (values) => Array.from(values).filter((value) => value !== null && value !== undefined).length === 1;

/**
 * @param {number} ms
 * @param {number} _at
 * @param {number[]} splits
 */
function clockTicks(ms, _at, splits) {
  return (splits[1] - splits[0] < 60_000 ? seconds : clocks).format(new Date(ms));
}

/**
 * Round up to a possible end of an axis, which is above zero even if all values are zero.
 *
 * @param {number} high
 */
function nice(high) {
  if (!(high > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(high));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * unit).find((end) => end >= high * 1.02) ?? high * 1.2;
}
