// Page Expired: all expired members, newest first, updated live. The filters are kept in the address.

import { query } from "../api.js";
import { h, mark, put, write } from "../dom.js";
import { Expirations } from "../expirations.js";
import { EXPIRATION_COLUMNS } from "../expiration_columns.js";
import { filterField, timeField } from "../filter_field.js";
import { count, counted } from "../format.js";
import { icon } from "../icons.js";
import { LOGGED_OUT } from "../log_columns.js";
import { reportPanel } from "../log_report.js";
import { fromLog } from "../source.js";
import { code, empty, failed, head, noneExpired } from "../states.js";
import { table } from "../table.js";
import { REASON_NAMES, reasonWords } from "../words.js";

/** @import { Expiration, Now } from "answers" */
/** @import { Page, Visit } from "../types.d.ts" */

/** Most rows on the page; a cursor leads to pages of older rows. */
const ROWS = 100;

const OUT = "Members that a coordinator threw out, or that took themselves out by a timeout; the newest first.";

const FILTERS = ["text", "reason", "group", "member", "since_ms", "until_ms", "order", "before"];

/**
 * A broker's log shows neither how long a member was silent, nor how late that was known.
 *
 * @type {[order: string, label: string][]}
 */
const ORDERS_OF_THE_ENGINE = fromLog
  ? []
  : [
      ["silent", "Silent for longest"],
      ["late", "Known latest"],
    ];

/** @type {[order: string, label: string][]} */
const ORDERS = [
  ["", "Newest first"],
  ["oldest", "Oldest first"],
  ...ORDERS_OF_THE_ENGINE,
  ["group", "By group"],
];

/** @type {Page} */
export const expiredPage = {
  tab: "/expired",
  title: () => "Expired members",
  mount(main, { router, stream, signal }) {
    const view = new View({ router, stream, signal });
    const report = reportPanel();
    let state = "";
    const tell = (/** @type {Now} */ now) => {
      about(main, now);
      report.show(now.log);
      if (now.health.state !== state && !view.list.rows.length) view.show();
      state = now.health.state;
    };
    main.append(
      head(
        "Expired members",
        fromLog
          ? OUT
          : "Members that missed a deadline, failed, or took themselves out as they did not poll in time. Newest first, as it happens.",
      ),
      report.element,
      view.tools(),
      view.body,
      view.pager,
    );
    stream.addEventListener("now", ({ detail }) => tell(detail), { signal });
    if (stream.now) tell(stream.now);
    view.start();
  },
};

/**
 * If the page shows a broker's log, the coordinator decided, not an engine.
 *
 * @param {HTMLElement} main
 * @param {Pick<Now, "health">} now
 */
function about(main, { health }) {
  const place = main.querySelector(".page-head p");
  if (health.state === "log" && place) write(place, `${OUT} ${health.sentence}`);
}

class View {
  /** @param {Pick<Visit, "router" | "stream" | "signal">} visit */
  constructor({ router, stream, signal }) {
    this.router = router;
    this.stream = stream;
    this.signal = signal;
    this.paused = false;
    this.shownOnce = false;
    this.arrivedBefore = 0;
    this.pauseButton = h("button", { type: "button", class: "button", onclick: () => this.pause(!this.paused) });
    this.downloads = ["csv", "json"].map((kind) =>
      h("a", { class: "button", download: true }, icon("download"), kind.toUpperCase()),
    );
    /** @type {HTMLSelectElement | null} */
    this.order = null;
    this.narrowed = h("span", { class: "tools-note small soft" });
    /** @type {Record<string, string>} */
    this.filters = Object.fromEntries(FILTERS.map((name) => [name, router.query.get(name) ?? ""]));
    this.table = table({
      caption: "Expired members, newest first",
      columns: fromLog ? LOGGED_OUT : EXPIRATION_COLUMNS,
      key: (/** @type {Expiration} */ row) => row.id,
      light: true,
      sort: (order) => this.filter({ order: this.filters.order === order ? "" : order }),
    });
    this.body = h("div", { class: "panel flush" });
    this.pager = h("div", { class: "pager" });
    this.list = new Expirations({
      stream,
      signal,
      limit: ROWS,
      changed: () => this.show(),
      failed: (error) => put(this.body, failed(error)),
    });
  }

  tools() {
    const reason = h(
      "select",
      { "aria-label": "Filter by reason" },
      h("option", { value: "" }, "Every reason"),
      REASON_NAMES.map((name) =>
        h("option", { value: name, selected: name === this.filters.reason }, `${reasonWords(name).label} (${name})`),
      ),
    );
    reason.addEventListener("change", () => this.filter({ reason: reason.value }));
    this.order = h(
      "select",
      { "aria-label": "Order" },
      ORDERS.map(([value, label]) => h("option", { value, selected: value === this.filters.order }, label)),
    );
    this.order.addEventListener("change", () => this.filter({ order: this.order?.value ?? "" }));
    return h(
      "div",
      { class: "tools" },
      filterField({
        value: this.filters.text,
        placeholder: "Group, member, instance, client or host",
        label: "Filter by text",
        changed: (text) => this.filter({ text }),
        signal: this.signal,
      }),
      h("span", { class: "field" }, reason),
      h("span", { class: "field" }, this.order),
      h(
        "span",
        { class: "moments" },
        timeField("From", this.filters.since_ms, (since_ms) => this.filter({ since_ms })),
        timeField("to", this.filters.until_ms, (until_ms) => this.filter({ until_ms })),
      ),
      this.narrowed,
      h("div", { class: "end" }, this.pauseButton, this.downloads),
    );
  }

  start() {
    this.table.body.addEventListener("focusin", () => this.drawPause());
    this.table.body.addEventListener("focusout", () => setTimeout(() => this.show()));
    this.apply();
  }

  /** @param {Record<string, string>} change */
  filter(change) {
    Object.assign(this.filters, { before: "" }, change);
    this.router.keep(this.filters);
    this.apply();
  }

  apply() {
    const { before: _cursor, order, ...shown } = this.filters;
    this.table.order(order);
    if (this.order) this.order.value = order;
    this.downloads.forEach((link, at) => mark(link, "href", `/api/expirations.${["csv", "json"][at]}${query(shown)}`));
    const narrowed = ["group", "member"].filter((name) => this.filters[name]);
    put(
      this.narrowed,
      narrowed.map((name) => [`${name}: `, h("span", { class: "mono" }, this.filters[name]), " "]),
      narrowed.length
        ? h(
            "button",
            { type: "button", class: "button quiet", onclick: () => this.filter({ group: "", member: "" }) },
            "Show all",
          )
        : null,
    );
    this.pause(false);
    this.list.choose(this.filters);
  }

  /** @param {boolean} paused */
  pause(paused) {
    this.paused = paused;
    this.arrivedBefore = this.list.arrived;
    this.drawPause();
    this.show();
  }

  /** While the keyboard focus is in the table, the rows must not move away. */
  get held() {
    return this.paused || this.table.body.contains(document.activeElement);
  }

  drawPause() {
    const waiting = this.list.arrived - this.arrivedBefore;
    mark(this.pauseButton, "aria-pressed", String(this.paused));
    put(
      this.pauseButton,
      icon(this.paused ? "play" : "pause"),
      this.paused ? `Go on${waiting ? `, ${count(waiting)} new` : ""}` : "Pause",
    );
    this.pauseButton.disabled = Boolean(this.filters.before);
  }

  show() {
    if (this.held && this.shownOnce) return this.drawPause();
    const { rows } = this.list;
    if (rows.length) {
      if (this.table.element.parentNode !== this.body) put(this.body, this.table.element);
      this.table.show(rows);
      this.shownOnce = true;
    } else if (this.list.loaded) put(this.body, this.nothing());
    return this.drawPager();
  }

  nothing() {
    if (FILTERS.some((name) => name !== "order" && this.filters[name])) {
      return empty(
        "No member matches these filters.",
        h("button", { type: "button", class: "button", onclick: () => this.clear() }, "Clear the filters"),
      );
    }
    if (fromLog) return empty("No timeout has ended a membership in what was read of the log.");
    return noneExpired(this.stream.now, " To see some, run ", code("heartwheel demo"), ".");
  }

  clear() {
    this.router.go("/expired");
  }

  drawPager() {
    const { rows, matched, total, next, olderUntil, skipped } = this.list;
    const of = matched === total ? count(total) : `${count(matched)} that match, of ${count(total)}`;
    const more = skipped
      ? ` ${counted(skipped, "row")} came faster than could be sent one by one; the download has them.`
      : "";
    put(
      this.pager,
      h("span", {}, rows.length ? `${count(rows.length)} shown of ${of}.${more}` : ""),
      h(
        "span",
        { class: "tools-note" },
        this.filters.before
          ? h("button", { type: "button", class: "button", onclick: () => this.turn("") }, this.filters.order ? "First" : "Newest")
          : null,
        " ",
        next ? h("button", { type: "button", class: "button", onclick: () => this.turn(next) }, this.filters.order ? "More" : "Older") : null,
        !next && olderUntil !== null ? h("button", { type: "button", class: "button", onclick: () => this.goBack(olderUntil) }, "Older, from the history") : null,
      ),
    );
  }

  /** @param {number} untilMs */
  goBack(untilMs) {
    const { before: _cursor, ...shown } = this.filters;
    this.router.go(`/expired${query({ ...shown, until_ms: String(untilMs) })}`);
  }

  /** @param {string} before */
  turn(before) {
    this.filters.before = before;
    this.router.keep(this.filters, { push: true });
    this.apply();
    scrollTo(0, 0);
  }
}
