// Page Timeline, of brokers' logs: a stretch of time, the worst groups first, their members as lanes, and what to change.

import { get, query } from "../api.js";
import { groupHref } from "../cells.js";
import { h, mark, put } from "../dom.js";
import { filterField } from "../filter_field.js";
import { clock, count, counted, duration } from "../format.js";
import { lanesOf, removalsOf, scaleOf, tagsOf } from "../lanes.js";
import { loader } from "../loader.js";
import { reportPanel } from "../log_report.js";
import { empty, head } from "../states.js";
import { throttled } from "../throttle.js";
import { asked, RANGE, rangeTools } from "../time_range.js";

/** @import { GroupLanes, LanePage, LaneSlot, Now } from "answers" */
/** @import { TimeScale } from "../time_scale.js" */
/** @import { Page, Visit } from "../types.d.ts" */

const FILTERS = [...RANGE, "text", "before"];

/** How often a range until now is drawn again though nothing happened, ms. */
const TICK_MS = 5_000;

/** After how long an answer is said to be on its way, ms. */
const SLOW_MS = 700;

/** @type {Page} */
export const timelinePage = {
  tab: "/timeline",
  title: () => "Timeline",
  mount(main, visit) {
    const view = new View(visit);
    const about = "Who was in which consumer group, who was removed and why, and for whom the others waited.";
    const log = h("p", { class: "soft small wrap log-words" });
    const report = reportPanel();
    const tell = (/** @type {Now} */ now) => {
      put(log, now.health.sentence);
      report.show(now.log);
    };
    main.append(head("Timeline", about), view.range.element, view.reading, view.figures, view.body, view.pager, report.element, log);
    visit.stream.addEventListener("now", ({ detail }) => tell(detail), { signal: visit.signal });
    if (visit.stream.now) tell(visit.stream.now);
    view.start();
  },
};

class View {
  /** @param {Pick<Visit, "router" | "stream" | "signal">} visit */
  constructor({ router, stream, signal }) {
    this.router = router;
    this.stream = stream;
    this.signal = signal;
    /** @type {Record<string, string>} */
    this.filters = Object.fromEntries(FILTERS.map((name) => [name, router.query.get(name) ?? ""]));
    this.body = h("div", { class: "stack" });
    this.figures = h("section", { class: "panel figures", "aria-label": "All groups in this time", hidden: true });
    this.pager = h("div", { class: "pager" });
    this.range = rangeTools(this.filters, (range) => this.change(range));
    this.range.element.append(
      filterField({ value: this.filters.text, placeholder: "Group", label: "Filter by group", changed: (text) => this.change({ text }), signal }),
    );
    this.live = false;
    this.reading = h("p", { class: "small soft", role: "status", hidden: true }, "Reading this time from the history ...");
    this.load = loader({
      ask: () => this.ask(),
      show: (page) => this.show(page),
      place: this.body,
    });
  }

  /** Ask for the page of the address; an old time is read from a file, which may take seconds. */
  async ask() {
    const { text, before } = this.filters;
    const timer = setTimeout(() => (this.reading.hidden = false), SLOW_MS);
    try {
      return await get("/api/lanes", { ...asked(this.filters), text, before }, { signal: this.signal });
    } finally {
      clearTimeout(timer);
      this.reading.hidden = true;
    }
  }

  start() {
    const again = throttled(() => this.live && !this.body.querySelector(":focus-visible") && this.load(), 2_500, this.signal);
    this.stream.addEventListener("groups", again, { signal: this.signal });
    this.stream.addEventListener("reload", again, { signal: this.signal });
    const timer = setInterval(again, TICK_MS);
    this.signal.addEventListener("abort", () => clearInterval(timer));
    this.load();
  }

  /** @param {Record<string, string>} changed */
  change(changed) {
    Object.assign(this.filters, { before: "" }, changed);
    this.router.keep(this.filters, { push: !("text" in changed) });
    this.load();
  }

  /** @param {LanePage} page */
  show(page) {
    const { groups, from_history: isOld } = page;
    const scale = scaleOf(page);
    this.live = !isOld && (page.is_now || !page.matched);
    this.range.show(page);
    this.figures.hidden = false;
    put(this.figures, this.summary(page, scale));
    put(this.body, groups.length ? groups.map((group) => this.group(group, scale, isOld)) : this.nothing(page));
    this.drawPager(page);
  }

  /**
   * @param {LanePage} page
   * @param {TimeScale} scale
   */
  summary(page, scale) {
    const { removals, matched, rebalances, storms, is_now: isNow, from_history: isOld, read_from_ms: readFrom } = page;
    const when = isNow ? `${clock(page.from_ms)} until now` : scale.words();
    return [
      h(
        "p",
        { class: "figures-words" },
        `${counted(matched, "group")}: `,
        h("strong", { class: removals ? "tone-bad" : "tone-good" }, counted(removals, "member"), " removed"),
        ", ",
        counted(rebalances, "rebalance"),
        storms ? [", ", h("strong", { class: "tone-bad" }, counted(storms, "storm"))] : null,
        h("span", { class: "soft" }, `, ${when} (${duration(page.to_ms - page.from_ms)})`),
      ),
      histogram(page, (slot) => this.zoom(page, slot)),
      scale.axis(),
      h(
        "p",
        { class: "lane-legend soft small" },
        [["span", "member"], ["joined", "joined, came back"], ["left", "left"], ["removed", "removed"], ["out", "out until back"], ["rebalance", "rebalance"], ["waited", "waited for a member"], ["storm", "storm"]].map(
          ([key, words]) => h("span", {}, h("i", { class: key }), words),
        ),
      ),
      isOld ? h("p", { class: "soft small" }, "Read from the history: it is older than what this page keeps in memory.") : null,
      readFrom !== null && readFrom !== undefined
        ? h("p", { class: "small tone-warn figures-cut" }, `The history has more lines of this time than are read at once. What is shown begins at ${clock(readFrom)}: choose a shorter time.`)
        : null,
    ];
  }

  /**
   * @param {LanePage} page
   * @param {LaneSlot} slot
   */
  zoom({ from_ms: from, slot_ms: size, to_ms: to }, { at }) {
    const middle = from + (at + 0.5) * size;
    const half = Math.max((to - from) / 12, 1_000);
    this.change({ last: "", since_ms: String(Math.round(middle - half)), until_ms: String(Math.round(middle + half)) });
  }

  /**
   * @param {GroupLanes} group
   * @param {TimeScale} scale
   * @param {boolean} isOld
   */
  group(group, scale, isOld) {
    const { group_id: id, kind, members, lanes_left_out: more } = group;
    const href = groupHref(id) + query(this.here());
    return h(
      "section",
      { class: "panel group-lanes", "aria-label": `Group ${id}` },
      h(
        "div",
        { class: "group-head" },
        h("h2", {}, h("a", { class: "mono wrap", href }, h("bdi", {}, id))),
        tagsOf(group),
        h("span", { class: "soft small end" }, [kind, members === null ? "" : members ? counted(members, "member") : "no members"].filter(Boolean).join(", ")),
      ),
      lanesOf(group, scale, !isOld),
      more ? h("p", { class: "small" }, h("a", { href }, `${counted(more, "more member")}`)) : null,
      removalsOf(group, scale, isOld ? "" : `/expired${query({ group: id })}`),
    );
  }

  /** The range as the page of a group takes it. */
  here() {
    return Object.fromEntries(RANGE.map((name) => [name, this.filters[name]]));
  }

  /** @param {LanePage} page */
  nothing({ newest_ms: newest }) {
    if (this.filters.text) {
      return empty("No group of this name had anything happen in this time.", h("button", { type: "button", class: "button", onclick: () => this.router.go("/timeline") }, "Clear the filters"));
    }
    const last = newest === null || newest === undefined ? "Nothing about any group was read yet." : `The newest thing that a log says of a group is of ${clock(newest)}.`;
    const around = newest === null || newest === undefined ? null : h("button", { type: "button", class: "button", onclick: () => this.around(newest) }, "Show the hour before that");
    return empty("Nothing happened in any group in this time.", last, " ", around);
  }

  /** @param {number} newest */
  around(newest) {
    this.change({ last: "", since_ms: String(newest - 3_600_000), until_ms: String(newest + 1_000) });
  }

  /** @param {LanePage} page */
  drawPager({ groups, matched, next }) {
    const begin = Number(this.filters.before || 0);
    const turn = (/** @type {string} */ before) => {
      this.filters.before = before;
      this.router.keep(this.filters, { push: true });
      this.load();
      scrollTo(0, 0);
    };
    put(
      this.pager,
      h("span", {}, groups.length ? `Groups ${count(begin + 1)} to ${count(begin + groups.length)} of ${count(matched)} in which something happened, the worst first.` : ""),
      h(
        "span",
        { class: "tools-note" },
        begin ? h("button", { type: "button", class: "button", onclick: () => turn("") }, "Worst") : null,
        " ",
        next ? h("button", { type: "button", class: "button", onclick: () => turn(next) }, "More") : null,
      ),
    );
    mark(this.pager, "hidden", groups.length ? null : "");
  }
}

/**
 * Draw how many were removed, and how many rebalances there were, over the time; a click goes closer.
 *
 * @param {LanePage} page
 * @param {(slot: LaneSlot) => unknown} zoom
 */
function histogram({ slots, slot_ms: size, from_ms: from, to_ms: to, removals, rebalances }, zoom) {
  const element = h("div", { class: "histogram", role: "img", "aria-label": `${counted(removals, "removal")} and ${counted(rebalances, "rebalance")} over this time` });
  const most = Math.max(1, ...slots.map((slot) => slot.rebalances));
  const worst = Math.max(1, ...slots.map((slot) => slot.removals));
  const width = (100 * size) / (to - from);
  for (const slot of slots) {
    const title = `${clock(from + slot.at * size)}: ${counted(slot.removals, "removal")}, ${counted(slot.rebalances, "rebalance")}`;
    const bar = h(
      "span",
      { class: "histogram-slot", title, onclick: () => zoom(slot) },
      share(slot.removals / worst, "tone-bad"),
      share(slot.rebalances / most, "tone-warn"),
    );
    bar.style.left = `${(slot.at * width).toFixed(3)}%`;
    bar.style.width = `${width.toFixed(3)}%`;
    element.append(bar);
  }
  return element;
}

/**
 * @param {number} part
 * @param {string} tone
 */
function share(part, tone) {
  const element = h("i", { class: tone });
  element.style.height = part ? `${Math.max(14, 100 * part).toFixed(1)}%` : "0";
  return element;
}
