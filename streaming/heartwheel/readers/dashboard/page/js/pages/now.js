// Page Now: can the engine be trusted right now, which groups are in trouble, and who was expired last.

import { get } from "../api.js";
import { beatLine } from "../beat_line.js";
import { groupHref, tag } from "../cells.js";
import { h, put } from "../dom.js";
import { ago, clock, counted } from "../format.js";
import { icon } from "../icons.js";
import { panel, readOn } from "../states.js";
import { healthWords, LINK_LOST, troubleKind, troubleWords } from "../words.js";
import { canaryWords } from "./now_canary.js";
import { latest } from "./now_latest.js";
import { seriesCharts } from "./now_charts.js";
import { tiles } from "./now_tiles.js";

/** @import { Now, TroubledGroup } from "answers" */
/** @import { Stream } from "../stream.js" */
/** @import { Page } from "../types.d.ts" */

/** @type {Page} */
export const nowPage = {
  tab: "/",
  title: () => "Now",
  mount(main, { router, stream, signal }) {
    const health = h("section", { class: "health", "aria-label": "Health of the engine" });
    const groups = h("section", { class: "health", "aria-label": "Groups in trouble" });
    const figures = tiles();
    const charts = seriesCharts({ router, stream, signal });
    const newest = latest({ stream, signal });
    const canary = panel("Canary", "synthetic members that go silent on schedule");
    const canaryBody = canary.appendChild(h("div"));
    main.append(
      h("h1", { class: "visually-hidden", tabindex: "-1" }, "Now"),
      h(
        "div",
        { class: "stack" },
        h("div", { class: "lights" }, health, groups),
        figures.element,
        newest.element,
        charts.element,
        canary,
        beatLine(),
      ),
    );
    const show = (/** @type {Now} */ now) => {
      showHealth(health, now, stream);
      showTrouble(groups, now, stream);
      figures.show(now, stream.asOfMs);
      charts.offer(now);
      put(canaryBody, canaryWords(now, stream.asOfMs));
    };
    stream.addEventListener("link", () => stream.now && show(stream.now), { signal });
    stream.addEventListener("now", ({ detail }) => show(detail), { signal });
    if (stream.now) show(stream.now);
    else get("/api/now", {}, { signal }).then(show, () => {}); // no answer: the banner says so
  },
};

/**
 * @param {HTMLElement} element
 * @param {Now} now
 * @param {Stream} stream
 */
function showHealth(element, { health, at_ms }, { lost, lastEventMs }) {
  const words = lost ? LINK_LOST : healthWords(health);
  element.className = `health tone-${words.tone}`;
  const since =
    lost || health.since_ms === null || health.since_ms === undefined
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
      h("p", { class: "light-name" }, "Engine"),
      h("h2", {}, lost ? "Not known: the dashboard's server does not answer." : health.sentence),
      lost ? h("p", { class: "soft" }, `At ${clock(lastEventMs)} it was: ${health.sentence}`) : since,
      !lost && health.hint ? h("p", { class: "soft" }, health.hint) : null,
      lost ? null : readOn(health.topic),
      !lost && health.reasons?.length
        ? h(
            "ul",
            {},
            health.reasons.map((reason) => h("li", {}, reason)),
          )
        : null,
    ),
  );
}

/** More than these are on page Groups. */
const TROUBLED = 6;

/**
 * @param {HTMLElement} element
 * @param {Now} now
 * @param {Stream} stream
 */
function showTrouble(element, { trouble, health }, { lost, asOfMs }) {
  const words = troubleWords(lost ? { ...trouble, known: false } : trouble);
  element.className = `health tone-${words.tone}`;
  const rest = trouble.count - TROUBLED;
  put(
    element,
    icon(words.icon),
    h(
      "div",
      {},
      h("p", { class: "light-name" }, "Groups"),
      h("h2", {}, lost ? "Not known: the dashboard's server does not answer." : `${trouble.sentence}.`),
      trouble.count && asOfMs !== null ? h("p", { class: "soft small" }, `As of ${clock(asOfMs)}:`) : null,
      trouble.count || !trouble.known || health.state === "log"
        ? null
        : h("p", { class: "soft" }, "No group lost its members, storms, flaps or polls too late."),
      h("ul", { class: "troubled" }, trouble.groups.slice(0, TROUBLED).map(troubled)),
      rest > 0
        ? h("p", {}, h("a", { class: "small", href: "/groups?trouble=true" }, `All ${counted(trouble.count, "group")}`))
        : null,
    ),
  );
}

/** @param {TroubledGroup} group */
function troubled({ group_id: id, troubles }) {
  return h(
    "li",
    {},
    h("a", { class: "mono wrap", href: groupHref(id) }, id),
    troubles.map((each) => h("span", {}, tag(troubleKind(each.kind)), " ", each.words)),
  );
}
