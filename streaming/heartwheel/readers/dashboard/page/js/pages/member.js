// One member: why it was expired, in words; its last heartbeats as a chart; whether it came back.

import { get, pathOf } from "../api.js";
import { groupHref, tag, time } from "../cells.js";
import { h, put, write } from "../dom.js";
import { ago, counted, duration } from "../format.js";
import { absence, isLogged, whoIs } from "../expiration_columns.js";
import { loader } from "../loader.js";
import { fromLog } from "../source.js";
import { empty, panel } from "../states.js";
import { animated, throttled } from "../throttle.js";
import { goesByEpochs, reasonWords } from "../words.js";
import { detailHead, facts } from "./detail_parts.js";
import { silenceChart } from "./member_chart.js";
import { before, olderLink } from "./member_expirations.js";

/** @import { Expiration, MemberHistory, MemberView } from "answers" */
/** @import { Child, Page } from "../types.d.ts" */

/** @type {Page} */
export const memberPage = {
  tab: "/expired",
  escape: "/expired",
  title: (_group, member) => member,
  mount(main, { args: [group, member], router, stream, signal }) {
    const body = h("div", { class: "stack" });
    main.append(
      detailHead({
        title: member,
        kind: "Member",
        back: "/expired",
        router,
        about: ["of group ", h("a", { class: "mono", href: groupHref(group) }, group)],
      }),
      body,
    );
    const untilMs = router.query.get("until_ms") ?? "";
    const chart = silenceChart({ signal });
    const now = () => stream.serverMs();
    const load = loader({
      ask: () => get(`/api/members${pathOf(group, member)}`, { until_ms: untilMs }, { signal }),
      show: (answer) => show(body, answer, { chart, now, signal, untilMs }),
      place: body,
    });
    const again = throttled(load, 2_000, signal);
    const concerns = (/** @type {Expiration[]} */ rows) => rows.some((row) => row.group_id === group);
    stream.addEventListener("expirations", ({ detail }) => concerns(detail.rows) && again(), { signal });
    stream.addEventListener("returned", again, { signal });
    stream.addEventListener("reload", again, { signal });
    again();
  },
};

/**
 * @param {HTMLElement} body
 * @param {MemberView} member
 * @param {{ chart: Chart, untilMs: string } & Clock} with_
 */
function show(body, member, { chart, untilMs, ...clock }) {
  const [last] = member.expirations;
  put(
    body,
    last ? verdict(last, member, clock) : notExpired(member, clock),
    isLogged(last) ? null : history(member, chart),
    last ? before(member, untilMs) : null,
  );
}

/**
 * @param {Expiration} last
 * @param {MemberView} member
 * @param {Clock} clock
 */
function verdict(last, { why, returned_ms: returned }, clock) {
  const words = reasonWords(last.reason);
  const failed = last.reason === "worker_failed";
  const back = returned
    ? tag({
        icon: "enter",
        label: `Came back ${duration(Math.max(0, returned - last.deadline_ms))} ${isLogged(last) ? "later" : "after its deadline"}`,
        tone: "good",
      })
    : tag({
        icon: "door",
        label: absence(last).label === "not known" ? "Has not come back under this id" : "Has not come back",
        tone: "calm",
        title: absence(last).title,
      });
  return h(
    "section",
    { class: "panel verdict" },
    h(
      "div",
      { class: "tags" },
      tag({
        ...words,
        label: failed ? words.label : `${fromLog ? "Out" : "Expired"}: ${words.label.toLowerCase()}`,
        tone: "bad",
        title: words.long,
      }),
      back,
    ),
    h(
      "div",
      { class: "why" },
      h("h2", {}, "Why"),
      failed ? sinceThen((since) => `It failed ${since}: ${last.failure || "no reason given"}.`, last.deadline_ms, clock) : null,
      // The first sentence about a failure says the same, without how long ago it was.
      (failed ? why.slice(1) : why).map((sentence) => h("p", {}, sentence)),
    ),
    isLogged(last) ? null : course(last, returned),
    facts([
      ["Who", whoIs(last)],
      [
        goesByEpochs(last.group_kind) ? "Group epoch" : "Generation",
        last.generation_id < 0 ? (isLogged(last) ? "not in the log" : "none (presence)") : last.generation_id,
      ],
      ["Member epoch", last.member_epoch ?? null],
      ...(isLogged(last) ? logged(last) : decided(last)),
    ]),
  );
}

/** @typedef {{ show: (history: MemberHistory) => void, element: HTMLElement }} Chart */
/** @typedef {{ now: () => number, signal: AbortSignal }} Clock */

/**
 * A sentence about a moment that stays true: it is updated with how long ago that was.
 *
 * @param {(since: string) => string} sentence
 * @param {number} ms
 * @param {Clock} clock
 */
function sinceThen(sentence, ms, { now, signal }) {
  const element = h("p", {});
  const tell = () => write(element, sentence(ago(Math.max(0, now() - ms))));
  tell();
  animated(tell, 1_000, signal);
  return element;
}

/**
 * @param {Expiration} last
 * @returns {[name: string, value: Child, width?: string][]}
 */
const decided = (last) => [
  ["Group was", last.group_state || "unknown"],
  [
    ["session_timeout", "worker_failed"].includes(last.reason) ? "Session timeout" : "Its timer",
    duration(last.session_timeout_ms),
  ],
  ["Event id", h("span", { class: "mono" }, last.id), "wide"],
  ["Place in Kafka", `partition ${last.partition}, offset ${last.offset}`],
];

/**
 * A broker's log contains when and why, and little more.
 *
 * @param {Expiration} last
 * @returns {[name: string, value: Child, width?: string][]}
 */
const logged = (last) => [
  ["Out", time(last.deadline_ms, { tenths: true })],
  ["Its timeout", last.session_timeout_ms ? duration(last.session_timeout_ms) : "not in the log"],
  ["From", ["the log, ", h("span", { class: "mono wrap" }, last.evidence)], "wide"],
];

/**
 * The course of events, in order: last seen, deadline, known, back.
 *
 * @param {Expiration} last
 * @param {number | null} returned
 */
function course(last, returned) {
  const failed = last.reason === "worker_failed";
  const after = failed ? "after it failed" : "after the deadline";
  /** @type {([name: string, ms: number, note: string] | null)[]} */
  const steps = [
    last.last_seen_ms === null ? null : ["Last seen", last.last_seen_ms, ""],
    [
      failed ? "Failed" : "Deadline",
      last.deadline_ms,
      last.last_seen_ms === null ? "" : `${duration(last.deadline_ms - last.last_seen_ms)} later`,
    ],
    ["Decided", last.detected_ms, `${duration(last.lateness_ms)} ${after}`],
    ["In Kafka", last.append_ms, `${duration(last.known_late_ms)} ${after}`],
    returned ? ["Back", returned, `${duration(returned - last.deadline_ms)} ${after}`] : null,
  ];
  const taken = steps.filter((step) => step !== null).sort(([, one], [, other]) => one - other);
  return h(
    "ol",
    { class: "course" },
    taken.map(([name, ms, note]) =>
      h(
        "li",
        {},
        h("span", { class: "soft small" }, name),
        time(ms, { tenths: true }),
        h("span", { class: "faint small" }, note),
      ),
    ),
  );
}

/**
 * @param {MemberView} member
 * @param {Clock} clock
 */
function notExpired(member, clock) {
  const { group_id: group, history: recorded } = member;
  const last = recorded.events.at(-1);
  if (last?.type === "leave")
    return h(
      "section",
      { class: "panel verdict" },
      h("div", { class: "tags" }, tag({ icon: "door", label: "Left", tone: "calm" })),
      h(
        "div",
        { class: "why" },
        sinceThen((since) => `It left ${since}: ${last.reason || "no reason given"}.`, last.at_ms, clock),
        h("p", {}, h("a", { href: groupHref(group) }, "Look at its group.")),
      ),
    );
  return empty(
    fromLog ? "It was not out in what was read." : "Not expired in the window that is kept.",
    "It is alive, or unknown, or it was expired longer ago. ",
    h("a", { href: groupHref(group) }, "Look at its group."),
    " ",
    olderLink(member),
  );
}

/**
 * @param {MemberView} member
 * @param {Chart} chart
 */
function history({ history: recorded }, chart) {
  const beats = recorded?.events?.length ?? 0;
  const element = panel(
    "How long it was silent",
    beats ? `${counted(beats, "event")} around it, from the heartbeat topic` : null,
  );
  if (beats < 2) {
    const few = beats ? "The chart needs two." : "The heartbeat topic keeps none from that time.";
    element.append(empty(beats ? "There is one event." : "There are no events.", recorded?.note || few));
    if (beats) element.append(eventTable(recorded));
  } else {
    element.append(h("p", { class: "soft small legend-text" }, chartWords(recorded.session_timeout_ms)), chart.element);
    chart.show(recorded);
    element.append(eventTable(recorded));
    if (recorded.note) element.append(h("p", { class: "faint small" }, recorded.note));
  }
  return element;
}

/** @param {number | null | undefined} limit */
function chartWords(limit) {
  const words = "The line shows the time since its last event; each event brings it back to zero.";
  return limit ? `${words} Where it meets ${duration(limit)}, the session timeout, the member counts as gone.` : words;
}

/** @param {MemberHistory} history */
function eventTable({ events, truncated }) {
  const shown = events.slice(-20).reverse();
  return h(
    "details",
    {},
    h("summary", {}, `The last ${counted(shown.length, "event")}${truncated ? " of those that were read" : ""}`),
    h(
      "ul",
      { class: "lines mono small" },
      shown.map((event, at) => {
        const older = shown[at + 1];
        return h(
          "li",
          {},
          time(event.at_ms, { tenths: true }),
          ` ${event.type}${event.generation_id >= 0 ? `, generation ${event.generation_id}` : ""}`,
          event.reason ? `: ${event.reason}` : null,
          typeof event.failure === "string" ? `, failed: ${event.failure || "no reason given"}` : null,
          older ? h("span", { class: "faint" }, ` ${duration(event.at_ms - older.at_ms)} after the one before`) : null,
        );
      }),
    ),
  );
}
