// Page Wheel: the engine's own timing wheel, drawn as it turns, for people who have never seen one.

import { ApiError, get, isAborted } from "../api.js";
import { h, put } from "../dom.js";
import { bytes, clock, count, counted, duration } from "../format.js";
import { code, empty, failed, head, panel } from "../states.js";
import { animated } from "../throttle.js";
import { facts } from "./detail_parts.js";
import { riskList } from "./risk_list.js";
import { explanation, legend } from "./wheel_words.js";
import { wheelRings } from "./wheel_rings.js";
import { wheelRows } from "./wheel_rows.js";

/** @import { WheelView } from "answers" */
/** @import { Page, Visit } from "../types.d.ts" */

const STILL = matchMedia("(prefers-reduced-motion: reduce)");

/** @type {Page} */
export const wheelPage = {
  tab: "/wheel",
  title: () => "Wheel",
  mount(main, { router, stream, signal }) {
    const shard = Math.max(0, Number.parseInt(router.query.get("shard") ?? "0", 10) || 0);
    const view = new View({ router, stream, signal, shard });
    const load = () =>
      get("/api/wheel", { shard }, { signal }).then(
        (wheel) => view.show(wheel),
        (error) => isAborted(error) || view.fail(error),
      );
    stream.addEventListener("wheel", ({ detail }) => detail.shard === shard && view.show(detail), { signal });
    stream.addEventListener("reload", load, { signal });
    signal.addEventListener("abort", () => stream.open({}));
    stream.open({ wheel: shard });
    animated(() => view.tick(), 50, signal);
    main.append(view.head(), view.body);
    load();
  },
};

class View {
  /** @param {Pick<Visit, "router" | "stream" | "signal"> & { shard: number }} visit */
  constructor({ router, stream, signal, shard }) {
    this.router = router;
    this.stream = stream;
    this.signal = signal;
    this.shard = shard;
    /** @type {WheelView | null} */
    this.wheel = null;
    /** @type {WheelView | null} */
    this.earlier = null;
    this.lastEventMs = 0;
    this.rings = wheelRings();
    this.rows = wheelRows();
    this.risk = riskList({ stream, rows: 10 });
    this.body = h("div", { class: "stack" });
    this.picker = h("div", { class: "shards" });
    this.figures = h("div");
    this.words = h("div");
  }

  head() {
    return head("Timing wheel", null, this.picker);
  }

  /** @param {WheelView} wheel */
  show(wheel) {
    const built = this.wheel !== null && this.body.contains(this.rings.element);
    const before = this.wheel;
    this.wheel = wheel;
    this.lastEventMs = Date.now();
    if (!built) this.build();
    if (before?.shards !== wheel.shards) this.pick(wheel);
    const moved = before?.batch_ms !== wheel.batch_ms;
    this.rings.show(wheel, { flash: built && moved && !STILL.matches });
    this.rows.show(wheel, { flash: built && moved && !STILL.matches });
    this.risk.show({ rows: wheel.at_risk.map((row) => ({ ...row, session_timeout_ms: row.session_timeout_ms || null, shard: wheel.shard })) });
    put(this.words, explanation(wheel));
    put(this.figures, figures(wheel, moved ? before : this.earlier));
    if (moved) this.earlier = before;
    this.tick();
  }

  build() {
    const next = panel("Next in this shard", "nearest to their deadline");
    next.classList.add("flush");
    next.append(this.risk.element);
    put(
      this.body,
      h(
        "div",
        { class: "wheel-top" },
        h("section", { class: "panel wheel-dial", "aria-label": "The wheel" }, this.rings.element, legend()),
        h("section", { class: "panel wheel-words" }, this.words, this.figures),
      ),
      h(
        "section",
        { class: "panel" },
        h(
          "div",
          { class: "panel-head" },
          h("h2", {}, "The same, level by level"),
          h("span", { class: "soft" }, "each box is a slot, with the number of timers in it"),
        ),
        this.rows.element,
      ),
      next,
    );
  }

  /** @param {WheelView} wheel */
  pick({ shards }) {
    /** @type {HTMLSelectElement} */
    const choice = h(
      "select",
      { id: "shard", onchange: () => this.router.go(`/wheel?shard=${choice.value}`) },
      Array.from({ length: Math.max(shards, this.shard + 1) }, (_, index) =>
        h("option", { value: index, selected: index === this.shard }, `${index} of ${shards}`),
      ),
    );
    put(
      this.picker,
      h(
        "label",
        { class: "field", title: "Groups are spread over shards; each shard has a wheel of its own" },
        h("span", {}, "Shard"),
        choice,
      ),
    );
  }

  /** @param {unknown} error */
  fail(error) {
    if (this.wheel) return;
    put(
      this.body,
      error instanceof ApiError && error.status === 404
        ? empty(
            `Shard ${this.shard} has written nothing yet.`,
            error.hint || "",
            " To start the engine, run ",
            code("heartwheel run"),
            " or ",
            code("heartwheel demo"),
            ".",
          )
        : failed(error),
    );
  }

  /** Between two updates the hand moves on with the clock, for at most the time between updates. */
  tick() {
    if (!this.wheel) return;
    const ahead = this.wheel.held || STILL.matches || this.stream.lost ? 0 : Math.min(Date.now() - this.lastEventMs, 2_500);
    this.rings.turn(this.wheel, this.wheel.clock_ms < 0 ? -1 : this.wheel.clock_ms + ahead);
    this.risk.tick();
  }
}

/** @param {number} more */
const gained = (more) => (more > 0 ? `, of these ${count(more)} in the last batch` : "");

/**
 * @param {WheelView} wheel
 * @param {WheelView | null} before
 */
function figures(wheel, before) {
  const since = before && before.shard === wheel.shard ? gained(wheel.moves - before.moves) : "";
  const fired = before && before.shard === wheel.shard ? gained(wheel.fires - before.fires) : "";
  return facts([
    ["Members of this shard", count(wheel.members)],
    [
      "Timers",
      counted(
        wheel.levels.reduce((sum, level) => sum + level.entries, 0),
        "timer",
      ),
    ],
    ["Clock", wheel.held ? `held at ${clock(wheel.clock_ms)}: a backlog is being read` : clock(wheel.clock_ms)],
    ["Resolution", wheel.tick_ms ? duration(wheel.tick_ms) : "–"],
    ["Filed again", h("span", {}, count(wheel.moves), h("span", { class: "faint" }, since))],
    ["Ran out", h("span", {}, count(wheel.fires), h("span", { class: "faint" }, fired))],
    ["State in Spark", bytes(wheel.state_bytes)],
  ]);
}
