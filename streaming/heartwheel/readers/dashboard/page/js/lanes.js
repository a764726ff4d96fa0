// One group of brokers' logs in a stretch of time: its members as lanes, its rebalances and storms across them.

import { clock, count, counted, duration, utc } from "./format.js";
import { memberHref, tag, time } from "./cells.js";
import { h } from "./dom.js";
import { follows } from "./source.js";
import { TimeScale } from "./time_scale.js";
import { goesByEpochs, reasonWords, spaced } from "./words.js";

/** @import { GroupLanes, LaneMark, LanePage, LaneRebalance, LaneRemoval, LaneStorm, MemberLane } from "answers" */

/** The height of a rebalance or storm is no time, and it must still be seen: its least width is in timeline.css. */
const NARROW = "lane-band";

/** @type {{ [kind: string]: string }} */
const DID = { joined: "joined", returned: "came back", replaced: "came back under a new id", left: "left", removed: "removed" };

/**
 * Make the scale of a page's time. What its end is called decides what is said of members that are not back by then.
 *
 * @param {LanePage} page
 */
export function scaleOf({ from_ms: from, to_ms: to, is_now: isNow, newest_ms: newest }) {
  const isWhole = !follows && typeof newest === "number" && to > newest;
  return new TimeScale(from, to, isNow ? "" : isWhole ? "the end of the log" : "the end of this time");
}

/** @param {TimeScale} scale */
const atEnd = ({ end }) => (end ? `at ${end}` : "now");

/**
 * Draw a group's lanes, with the axis of time below them.
 *
 * @param {GroupLanes} group
 * @param {TimeScale} scale
 * @param {boolean} links whether removed members have a page; those of the history have none
 */
export function lanesOf(group, scale, links = true) {
  const same = new Map();
  for (const { name } of group.lanes) same.set(name, (same.get(name) ?? 0) + 1);
  return h(
    "div",
    { class: "lanes" },
    bands(group, scale),
    h(
      "ol",
      { class: "lane-rows", "aria-label": `Members of ${group.group_id}, those that were removed most often first` },
      group.rebalances_count ? rebalanceRow(group, scale) : null,
      group.lanes.map((lane) => memberRow(lane, scale, {
          href: links && lane.removed_id ? memberHref(group.group_id, lane.removed_id) : "",
          ambiguous: same.get(lane.name) > 1,
        })),
    ),
    scale.axis(),
  );
}

/**
 * Rebalances, as bands behind all lanes: who was waited for is darker in its own lane.
 *
 * @param {GroupLanes} group
 * @param {TimeScale} scale
 */
function bands({ rebalances, kind }, scale) {
  const element = h("div", { class: "lane-bands", "aria-hidden": "true" });
  for (const ms of scale.ticks) element.append(scale.place(h("span", { class: "lane-grid" }), ms, ms));
  if (!goesByEpochs(kind))
    for (const { started_ms: from, ended_ms: to, blocked_by: by } of rebalances)
      if (from !== null) element.append(scale.place(h("span", { class: `${NARROW} tone-${by.length ? "bad" : "warn"}` }), from, to ?? scale.to));
  return element;
}

/**
 * @param {GroupLanes} group
 * @param {TimeScale} scale
 */
function rebalanceRow({ rebalances, rebalances_count: all, rebalancing_ms: took, storms, kind }, scale) {
  const epochs = goesByEpochs(kind);
  const what = counted(all, epochs ? "epoch" : "rebalance");
  const track = h("div", {
    class: "lane-track",
    role: "img",
    "aria-label": `${what}${took ? `, ${duration(took)} in all` : ""}${storms.map((each) => `; ${stormWords(each)}`).join("")}`,
  });
  for (const storm of storms)
    track.append(scale.place(h("span", { class: "lane-storm", title: `${clock(storm.from_ms)}: ${stormWords(storm)}` }), storm.from_ms, storm.to_ms));
  for (const row of rebalances) track.append(rebalanceBar(row, scale, epochs));
  return h(
    "li",
    { class: "lane lane-head" },
    h("span", { class: "lane-name soft" }, what),
    track,
  );
}

/** @param {LaneStorm} storm */
const stormWords = ({ from_ms: from, to_ms: to, count: n }) => `storm of ${counted(n, "rebalance")} in ${duration(to - from)}`;

/**
 * @param {LaneRebalance} row
 * @param {TimeScale} scale
 * @param {boolean} epochs
 */
function rebalanceBar(row, scale, epochs) {
  const { started_ms: from, ended_ms: to, blocked_by: by } = row;
  const title = rebalanceWords(row, scale, epochs);
  const bar = h("span", { class: `lane-rebalance tone-${by.length ? "bad" : epochs ? "calm" : "warn"}`, title });
  return scale.place(bar, from ?? to ?? scale.from, to ?? scale.to);
}

/**
 * @param {LaneRebalance} row
 * @param {TimeScale} scale
 * @param {boolean} epochs
 */
function rebalanceWords({ started_ms: from, ended_ms: to, number, cause, members, blocked_by: by }, scale, epochs) {
  const which = number === null || to === null ? "Rebalance" : `${epochs ? "Epoch" : "Rebalance to generation"} ${count(number)}`;
  const took = to === null ? ` runs ${atEnd(scale)}` : from === null || epochs ? "" : ` took ${duration(to - from)}`;
  const waited = by.length ? `\nwaited for ${by.slice(0, 3).join(", ")}${by.length > 3 ? ` and ${counted(by.length - 3, "other")}` : ""}` : "";
  const left = members === null ? "" : `\n${members ? counted(members, "member") : "no member"} after it`;
  return `${clock(from ?? to)}: ${which}${took}: ${spaced(cause)}${left}${waited}`;
}

/**
 * @param {MemberLane} lane
 * @param {TimeScale} scale
 * @param {{ href: string, ambiguous: boolean }} how its page, if it has one, and whether another lane has its name
 */
function memberRow(lane, scale, { href, ambiguous }) {
  const { name, member_id: member, ids, marks, spans } = lane;
  const track = h("div", { class: "lane-track", role: "img", "aria-label": laneWords(lane, scale) });
  spans.forEach(({ from_ms: from, to_ms: to }, at) => {
    const classes = `lane-span${from === null || from < scale.from ? " before" : ""}${to === null || to > scale.to ? " after" : ""}`;
    const title = `${from === null ? "a member since before" : `a member since ${clock(from)}`}${to === null ? ", and still" : `, until ${clock(to)}`}`;
    track.append(scale.place(h("span", { class: classes, title }), from ?? scale.from, to ?? scale.to));
    const next = spans[at + 1];
    if (to !== null && marks.some((mark) => mark.time_ms === to && mark.kind === "removed"))
      track.append(scale.place(h("span", { class: "lane-out", title: "out" }), to, next?.from_ms ?? scale.to));
  });
  for (const mark of marks) track.append(markOf(mark, scale));
  const second = ambiguous ? `…${member.slice(-6)}` : ids > 1 ? `${count(ids)} ids` : "";
  return h(
    "li",
    { class: "lane" },
    h(
      "span",
      { class: "lane-name" },
      named(href, name, member, "mono"),
      second ? h("span", { class: "soft small nowrap" }, second) : null,
    ),
    track,
  );
}

/**
 * A member's name, isolated from the direction of other texts; a link if it has a page.
 *
 * @param {string} href
 * @param {string} name
 * @param {string} member
 * @param {string} classes
 */
const named = (href, name, member, classes) =>
  h(href ? "a" : "span", { class: classes, href: href || null, title: name === member ? name : `${name}\n${member}` }, h("bdi", {}, name));

/**
 * @param {LaneMark} mark
 * @param {TimeScale} scale
 */
function markOf({ time_ms: ms, kind, words }, scale) {
  const element = h("span", { class: `lane-mark ${kind}`, title: `${utc(ms)}: ${markWords(kind, words)}` });
  element.style.left = `${scale.at(ms).toFixed(3)}%`;
  return element;
}

/**
 * @param {string} kind
 * @param {string} words
 */
function markWords(kind, words) {
  if (kind === "removed") return `removed: ${reasonWords(words).long}`;
  return `${DID[kind] ?? kind}${words && kind === "left" ? `: ${spaced(words)}` : ""}`;
}

/**
 * @param {MemberLane} lane
 * @param {TimeScale} scale
 */
function laneWords({ name, removals, blocked, marks, spans }, scale) {
  const shown = marks.slice(-8).map(({ time_ms: ms, kind, words }) => `${markWords(kind, words)} ${clock(ms)}`);
  const now = spans.length && spans[spans.length - 1].to_ms === null ? "a member" : "not a member";
  const bad = [removals ? `removed ${counted(removals, "time")}` : "", blocked ? `held up ${counted(blocked, "rebalance")}` : ""];
  return [name, ...bad.filter(Boolean), ...shown, `${now} ${atEnd(scale)}`].join("; ");
}

/**
 * List removals, each with what to change.
 *
 * @param {GroupLanes} group
 * @param {TimeScale} scale
 * @param {string} more the address of all of them; empty if they are of the history, and have no pages
 */
export function removalsOf({ group_id: group, removals, removals_count: all }, scale, more) {
  if (!removals.length) return null;
  return h(
    "div",
    { class: "removals" },
    h("h3", {}, all > removals.length ? `The newest ${count(removals.length)} of ${counted(all, "removal")}` : counted(all, "removal")),
    h("ul", {}, removals.map((each) => removal(more ? memberHref(group, each.member_id) : "", each, scale))),
    more && all > removals.length ? h("a", { class: "small", href: more }, "All of them") : null,
  );
}

/**
 * @param {string} href
 * @param {LaneRemoval} row
 * @param {TimeScale} scale
 */
function removal(href, { time_ms: ms, member_id: member, name, reason, why, advice, evidence, returned_ms: back }, { end }) {
  const words = reasonWords(reason);
  const returned = back === null ? `not back ${end ? `by ${end}` : "until now"}` : `back ${duration(Math.max(0, back - ms))} later`;
  return h(
    "li",
    {},
    h(
      "p",
      { class: "removal-head" },
      time(ms),
      tag({ icon: "door", label: words.label, tone: reason === "poll_timeout" ? "warn" : "bad", title: words.long }),
      named(href, name, member, "mono wrap"),
      h("span", { class: "soft nowrap" }, returned),
      h("span", { class: "faint small wrap", title: evidence }, evidence.replace(/^.*\//, "")),
    ),
    h("p", { class: "wrap" }, why.filter((each) => each !== advice).join(" ")),
    advice ? h("p", { class: "removal-advice wrap" }, h("strong", {}, "What to change: "), advice) : null,
  );
}

/**
 * Say in tags what a group went through.
 *
 * @param {GroupLanes} group
 */
export function tagsOf({ removals_count: removed, storms, rebalances, rebalances_count: all, rebalancing_ms: took, kind }) {
  const by = new Set(rebalances.flatMap((each) => each.blocked_by));
  const word = goesByEpochs(kind) ? "epoch" : "rebalance";
  return [
    removed ? tag({ icon: "door", label: `${count(removed)} removed`, tone: "bad", title: "how often a timeout ended a membership" }) : null,
    storms.length ? tag({ icon: "storm", label: counted(storms.length, "storm"), tone: "bad", title: storms.map(stormWords).join("\n") }) : null,
    by.size ? tag({ icon: "hourglass", label: `waited for ${counted(by.size, "member")}`, tone: "warn", title: [...by].slice(0, 5).join("\n") }) : null,
    all ? h("span", { class: "soft small" }, `${counted(all, word)}${took ? `, ${duration(took)} in all` : ""}`) : null,
  ];
}

