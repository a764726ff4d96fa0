// The report of a broker's log on all groups: which have no members now, what failed at once, which brokers started.

import { groupHref, time } from "./cells.js";
import { h, put } from "./dom.js";
import { count } from "./format.js";
import { AT_END } from "./source.js";

/** @import { LogReport } from "answers" */
/** @import { Child } from "./types.d.ts" */

const SHOWN = 8;

/** A panel that is filled as the log is read, and stays hidden while it is empty. */
export function reportPanel() {
  const element = h("section", { class: "panel report", hidden: true, "aria-label": "What the log says of all groups" });
  let shown = "";
  const show = (/** @type {LogReport | null | undefined} */ report) => {
    const key = JSON.stringify(report ?? null);
    if (key === shown) return;
    shown = key;
    const parts = report ? partsOf(report) : [];
    element.hidden = !parts.length;
    put(element, parts);
  };
  return { element, show };
}

/** @param {LogReport} report */
function partsOf({ empty, empty_count: all, incidents, brokers, doubts }) {
  return [
    empty.length
      ? part(
          `No members ${AT_END}`,
          empty.slice(0, SHOWN).map(({ group_id: group, since_ms: since }) => [
            h("a", { class: "mono", href: groupHref(group) }, group),
            " since ",
            time(since),
          ]),
          all - Math.min(SHOWN, empty.length),
        )
      : null,
    incidents.length
      ? part(
          "Out at the same time",
          incidents.slice(0, SHOWN).map(({ from_ms: from, words }) => [time(from), ` ${words}`]),
          incidents.length - SHOWN,
        )
      : null,
    brokers.length
      ? part(
          "Brokers",
          brokers.slice(-SHOWN).map(({ broker_id: broker, time_ms: at, words }) => [time(at), ` broker ${broker ?? "?"}: ${words}`]),
          brokers.length - SHOWN,
        )
      : null,
    doubts.length ? part("Lines that were left out", doubts.map((words) => [words]), 0) : null,
  ].filter((each) => each !== null);
}

/**
 * @param {string} title
 * @param {Child[][]} lines
 * @param {number} more
 */
function part(title, lines, more) {
  return h(
    "div",
    {},
    h("h2", {}, title),
    h("ul", { class: "lines" }, lines.map((line) => h("li", {}, line)), more > 0 ? h("li", { class: "soft" }, `and ${count(more)} more`) : null),
  );
}
