// The lanes on the page of one group of brokers' logs, over the time that its address names.

import { get, query } from "../api.js";
import { h, put } from "../dom.js";
import { counted } from "../format.js";
import { lanesOf, removalsOf, scaleOf, tagsOf } from "../lanes.js";
import { loader } from "../loader.js";
import { empty, panel } from "../states.js";
import { asked, RANGE, rangeTools } from "../time_range.js";

/** @import { LanePage } from "answers" */
/** @import { Visit } from "../types.d.ts" */

/** Most members, and most removals with their advice, on one page. */
const MEMBERS = 100;
const REMOVALS = 20;

/**
 * Make the panel.
 *
 * @param {string} group
 * @param {Pick<Visit, "router" | "signal">} visit
 * @returns {{ element: HTMLElement, load: () => unknown }} `load` requests it, also to update it
 */
export function groupTimeline(group, { router, signal }) {
  const filters = Object.fromEntries(RANGE.map((name) => [name, router.query.get(name) ?? ""]));
  const body = h("div", { class: "group-lanes" });
  const range = rangeTools(filters, (chosen) => {
    Object.assign(filters, chosen);
    router.keep(filters, { push: true });
    load();
  });
  const show = (/** @type {LanePage} */ page) => {
    const scale = scaleOf(page);
    range.show(page);
    const [found] = page.groups;
    if (!found || !found.lanes.length) return put(body, empty("Nothing is known of its members in this time."));
    return put(
      body,
      h("div", { class: "group-head" }, tagsOf(found)),
      lanesOf(found, scale, !page.from_history),
      found.lanes_left_out ? h("p", { class: "soft small" }, `and ${counted(found.lanes_left_out, "more member")}`) : null,
      removalsOf(found, scale, page.from_history ? "" : `/expired${query({ group })}`),
    );
  };
  const load = loader({
    ask: () => get("/api/lanes", { ...asked(filters), group, members: MEMBERS, removals: REMOVALS, limit: 1 }, { signal }),
    show,
    place: body,
  });
  return { element: panel("Members", "those that were removed most often first", range.element, body), load };
}
