// Page Now: can the engine be trusted right now, how much is going on, and who was expired last.

import { get } from "../api.js";
import { beatLine } from "../beat_line.js";
import { groupHref } from "../cells.js";
import { h, put } from "../dom.js";
import { ago, clock, counted, duration } from "../format.js";
import { icon } from "../icons.js";
import { empty, panel } from "../states.js";
import { healthWords, spaced } from "../words.js";
import { canaryWords } from "./now_canary.js";
import { latest } from "./now_latest.js";
import { seriesCharts } from "./now_charts.js";
import { tiles } from "./now_tiles.js";

/** @import { Now } from "../answers.d.ts" */
/** @import { Page } from "../types.d.ts" */

/** @type {Page} */
export const nowPage = {
  tab: "/",
  title: () => "Now",
  mount(main, { stream, signal }) {
    const health = h("section", { class: "health", "aria-label": "Health of the engine" });
    const figures = tiles();
    const charts = seriesCharts({ stream, signal });
    const newest = latest({ stream, signal });
    const canary = panel("Canary", "synthetic members that go silent on schedule");
    const storms = panel("Rebalance storms", null);
    const canaryBody = canary.appendChild(h("div"));
    const stormBody = storms.appendChild(h("div"));
    main.append(
      h("h1", { class: "visually-hidden", tabindex: "-1" }, "Now"),
      h(
        "div",
        { class: "stack" },
        health,
        figures.element,
        newest.element,
        charts.element,
        h("div", { class: "columns" }, canary, storms),
        beatLine(),
      ),
    );
    const show = (/** @type {Now} */ now) => {
      showHealth(health, now);
      figures.show(now);
      put(canaryBody, canaryWords(now));
      put(stormBody, stormWords(now));
    };
    stream.addEventListener("now", ({ detail }) => show(detail), { signal });
    if (stream.now) show(stream.now);
    else get("/api/now", {}, { signal }).then(show, () => {}); // no answer: the banner says so
  },
};

/**
 * @param {HTMLElement} element
 * @param {Now} now
 */
function showHealth(element, { health, at_ms }) {
  const words = healthWords(health.state);
  element.className = `health tone-${words.tone}`;
  const since =
    health.since_ms === null || health.since_ms === undefined
      ? null
      : h(
          "p",
          { class: "soft small" },
          `Since ${clock(health.since_ms)}, ${ago(Math.max(0, at_ms - health.since_ms))}.`,
        );
  put(
    element,
    icon(words.icon),
    h(
      "div",
      {},
      h("h2", {}, health.sentence),
      since,
      health.hint ? h("p", { class: "soft" }, health.hint) : null,
      health.reasons?.length
        ? h(
            "ul",
            {},
            health.reasons.map((reason) => h("li", {}, reason)),
          )
        : null,
    ),
  );
}

/** @param {Now} now */
function stormWords({ storms, strays }) {
  const rows = (storms ?? []).map((storm) =>
    h(
      "li",
      {},
      h("span", { class: "tag tone-bad" }, icon("storm"), counted(storm.count, "rebalance")),
      " ",
      h("a", { class: "mono wrap", href: groupHref(storm.group_id) }, storm.group_id),
      h("span", { class: "soft" }, ` in ${duration(storm.window_ms)}; it began with: ${spaced(storm.first_cause)}`),
    ),
  );
  const lost = Object.entries(strays ?? {}).map(([group, records]) =>
    h(
      "li",
      {},
      h("span", { class: "tag tone-warn" }, icon("alert"), "two partitions"),
      " ",
      h("a", { class: "mono wrap", href: groupHref(group) }, group),
      h(
        "span",
        { class: "soft" },
        ` ${counted(records, "record")} in a second partition: give all records of a group one key and one partitioner`,
      ),
    ),
  );
  if (!rows.length && !lost.length) return empty("No storms.", "No group rebalances again and again.");
  return h("ul", { class: "lines" }, rows, lost);
}
