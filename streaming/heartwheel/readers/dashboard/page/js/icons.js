// Line icons on a grid of 24. They accompany words, never replace them, and are hidden from screen readers.

import { svg } from "./dom.js";

/** @type {Record<string, string[]>} */
const PATHS = {
  check: ["M20 6 9 17l-5-5"],
  alert: ["M12 3 2 20h20L12 3Z", "M12 10v4", "M12 17v.01"],
  stop: ["M8 2h8l6 6v8l-6 6H8l-6-6V8l6-6Z", "M12 7v6", "M12 16.5v.01"],
  clock: ["M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Z", "M12 7v5l3 2"],
  hourglass: ["M6 3h12", "M6 21h12", "M7 3c0 5 5 6 5 9s-5 4-5 9", "M17 3c0 5-5 6-5 9s5 4 5 9"],
  heart: ["M3 12h4l2-5 4 10 2-5h6"],
  sync: ["M20 11a8 8 0 0 0-14-4L4 9", "M4 4v5h5", "M4 13a8 8 0 0 0 14 4l2-2", "M20 20v-5h-5"],
  door: ["M14 4H6v16h8", "M10 12h11", "m18 9 3 3-3 3"],
  enter: ["M10 4h8v16h-8", "M3 12h11", "m11 9 3 3-3 3"],
  storm: ["M13 2 5 13h6l-1 9 8-12h-6l1-8Z"],
  pause: ["M8 5v14", "M16 5v14"],
  play: ["M7 4v16l13-8L7 4Z"],
  download: ["M12 3v12", "m7 11 5 5 5-5", "M4 20h16"],
  sun: [
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8Z",
    "M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6 19 19M5 19l1.4-1.4M17.6 6.4 19 5",
  ],
  moon: ["M20 14A8 8 0 1 1 10 4a6.5 6.5 0 0 0 10 10Z"],
  plug: ["M9 3v5", "M15 3v5", "M6 8h12v4a6 6 0 0 1-12 0V8Z", "M12 18v3"],
  dot: ["M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8Z"],
  back: ["M20 12H4", "m10 6-6 6 6 6"],
};

/**
 * Draw an icon by its name.
 *
 * @param {string} name
 */
export function icon(name) {
  return svg(
    "svg",
    { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" },
    PATHS[name].map((d) => svg("path", { d })),
  );
}
