// One group: what its state means, which members block its rebalance now, whether it is in a storm, and its timeline.

import { get, pathOf, query } from "../api.js";
import { memberHref, tag, time } from "../cells.js";
import { h, put, write } from "../dom.js";
import { COLUMNS_OF_A_GROUP } from "../expiration_columns.js";
import { ago, count, countdown, counted, duration, membersOf, NOTHING } from "../format.js";
import { icon } from "../icons.js";
import { loader } from "../loader.js";
import { fromLog } from "../source.js";
import { empty, panel, readOn } from "../states.js";
import { animated, throttled } from "../throttle.js";
import { goesByEpochs, kindWords, spaced, troubleKind, troubleTopic, WHILE_IT_REBALANCES } from "../words.js";
import { detailHead, facts, happenedTo, newestOut } from "./detail_parts.js";
import { stateNow } from "./groups.js";
import { groupTimeline } from "./group_timeline.js";
import { loggedGroup } from "./logged_group.js";

/** @import { Blocked, GroupAnswer, MemberSeen, Offender, Storm, Trouble } from "answers" */
/** @import { Stream } from "../stream.js" */
/** @import { Page } from "../types.d.ts" */

/** @type {Page} */
export const groupPage = {
  tab: "/groups",
  escape: "/groups",
  title: (group) => group,
  mount(main, { args: [id], router, stream, signal }) {
    const body = h("div", { class: "stack" });
    main.append(detailHead({ title: id, kind: "Group", about: null, back: "/groups", router }), body);
    const happened = happenedTo(id, signal);
    const lanes = fromLog ? groupTimeline(id, { router, signal }) : null;
    const load = loader({
      ask: () => get(`/api/groups${pathOf(id)}`, {}, { signal }),
      show: (group) => (show(body, group, stream, happened.element, lanes?.element), happened.load(), lanes?.load()),
      place: body,
    });
    const again = throttled(load, 1_500, signal);
    stream.addEventListener(
      "groups",
      ({ detail }) => (detail.skipped || detail.rows.some((group) => group.group_id === id)) && again(),
      { signal },
    );
    stream.addEventListener("reload", again, { signal });
    let decided = stream.asOfMs === null;
    stream.addEventListener(
      "now",
      () => {
        if (decided !== (stream.asOfMs === null)) again();
        decided = stream.asOfMs === null;
      },
      { signal },
    );
    animated(() => tick(body, stream), 100, signal);
    again();
  },
};

/**
 * @param {HTMLElement} body
 * @param {GroupAnswer} group
 * @param {Stream} stream
 * @param {HTMLElement} happened
 * @param {HTMLElement} [lanes]
 */
function show(body, group, stream, happened, lanes) {
  if (lanes) return put(body, loggedGroup(group, lanes, happened));
  const open = body.querySelector("details")?.open;
  put(
    body,
    state(group, stream),
    group.blocked ? blocked(group.group_id, group.blocked) : null,
    group.storm ? storm(group.group_id, group.storm) : null,
    group.troubles.filter(({ kind }) => kind !== "storm").map((each) => trouble(group.group_id, each)),
    h("div", { class: "columns" }, happened, seen(group, stream.serverMs())),
    newestOut(group, { title: "Expired last", columns: COLUMNS_OF_A_GROUP }),
  );
  if (open) body.querySelector("details")?.setAttribute("open", "");
  tick(body, stream);
}

/**
 * @param {GroupAnswer} group
 * @param {Stream} stream
 */
function state(group, stream) {
  const { last } = group;
  return h(
    "section",
    { class: "panel" },
    h("div", { class: "tags" }, tag(stateNow(group, stream))),
    h("p", { class: "state-words" }, group.state_words),
    facts([
      ["Members", membersOf(group)],
      [goesByEpochs(group.kind) ? "Epoch" : "Generation", group.generation_id < 0 ? NOTHING : count(group.generation_id)],
      ["Kind", group.kind ? h("span", { title: kindWords(group.kind) }, group.kind) : "not known"],
      ["Shard", group.shard],
      ["Last change", last ? [last.words, ", ", time(last.began_ms)] : "none seen"],
      ["It took", last?.duration_ms === null || last?.duration_ms === undefined ? null : duration(last.duration_ms)],
      ["In Kafka's words", group.kind === "presence" ? null : last?.reason, "wide"],
      ["Expired in the window", count(group.expirations_count)],
    ]),
  );
}

/**
 * @param {string} group
 * @param {Blocked} rebalance
 */
function blocked(group, { since_ms: since, deadline_ms: deadline, awaiting, awaiting_count: all, to }) {
  return h(
    "section",
    { class: "panel callout tone-warn" },
    h(
      "h2",
      {},
      icon("hourglass"),
      all ? ` Waiting for ${counted(all, "member")} to ${TO_DO[to ?? ""] ?? "rejoin"}` : " A rebalance is under way",
    ),
    h(
      "p",
      {},
      since ? ["Since ", time(since), ". "] : null,
      deadline
        ? [to === "sync" ? "Who has not synced in " : "Who is not back in ", h("strong", { dataset: { until: deadline } }), " is taken out of the group."]
        : "",
    ),
    h(
      "ul",
      { class: "lines" },
      awaiting
        .slice(0, 20)
        .map((member) => h("li", {}, h("a", { class: "mono wrap", href: memberHref(group, member) }, member))),
      all > Math.min(20, awaiting.length)
        ? h("li", { class: "soft" }, `and ${counted(all - Math.min(20, awaiting.length), "other")}`)
        : null,
    ),
  );
}

/**
 * @param {string} group
 * @param {Storm} storm
 */
function storm(group, { count: rebalances, window_ms: length, first_cause: cause, offenders }) {
  return h(
    "section",
    { class: "panel callout tone-bad" },
    h("h2", {}, icon("storm"), ` Rebalance storm: ${counted(rebalances, "rebalance")} in ${duration(length)}`),
    h("p", {}, `The first of these: ${spaced(cause) || "cause not known"}. ${WHILE_IT_REBALANCES}`),
    offendersOf(group, offenders ?? []),
    readOn(troubleTopic("storm")),
  );
}

/**
 * @param {string} group
 * @param {readonly Offender[]} offenders
 */
function offendersOf(group, offenders) {
  if (!offenders.length) return null;
  return [
    h("p", { class: "soft" }, "Expired again and again:"),
    h(
      "ul",
      { class: "lines" },
      offenders.map((member) =>
        h(
          "li",
          {},
          h("a", { class: "mono wrap", href: offenderHref(group, member.member_id) }, member.member_id),
          ` ${counted(member.count, "time")}`,
        ),
      ),
    ),
  ];
}

/**
 * @param {string} group
 * @param {Trouble} each
 */
function trouble(group, { kind, words, offenders }) {
  const { icon: name, label, tone } = troubleKind(kind);
  return h(
    "section",
    { class: `panel callout tone-${tone}` },
    h("h2", {}, icon(name), ` In trouble, ${label}: ${words}`),
    offendersOf(group, offenders ?? []),
    readOn(troubleTopic(kind)),
  );
}

// An offender is identified by its instance, or by its client and host: its member id changes with each return.
/**
 * @param {string} group
 * @param {string} name
 */
const offenderHref = (group, name) => `/expired${query({ group, text: name.replace(" at ", " ") })}`;

/** @type {{ [to: string]: string | undefined }} */
const TO_DO = { sync: "sync", reconcile: "take over the new epoch" };

/**
 * @param {GroupAnswer} group
 * @param {number} now
 */
function seen({ group_id: group, members_seen: members, members_note: note }, now) {
  const element = panel("Members seen", "from the end of the heartbeat topic");
  element.append(
    members?.length
      ? h(
          "ul",
          { class: "lines members" },
          members
            .slice(0, 50)
            .map((member) =>
              h(
                "li",
                {},
                h(
                  "a",
                  { class: "mono line", href: memberHref(group, member.member_id), title: member.member_id },
                  member.member_id,
                ),
                seenWords(member, now),
              ),
            ),
        )
      : empty("None seen.", note || "No heartbeat of this group is among the newest records of its partition."),
  );
  return element;
}

/**
 * @param {MemberSeen} member
 * @param {number} now
 */
function seenWords({ beats, last_seen_ms: last, left, failed }, now) {
  const since = ago(Math.max(0, now - last));
  if (typeof failed === "string")
    return h("span", { class: "soft small" }, `failed ${since}: ${failed || "no reason given"}`);
  return typeof left === "string"
    ? h("span", { class: "soft small" }, `left ${since}: ${left || "no reason given"}`)
    : h("span", { class: "soft small nowrap" }, `${counted(beats, "event")}, last ${since}`);
}

/**
 * @param {HTMLElement} body
 * @param {Stream} stream
 */
function tick(body, stream) {
  const asOf = stream.asOfMs;
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (body.querySelectorAll("[data-until]")))
    write(element, countdown(Math.max(0, Number(element.dataset.until) - (asOf ?? stream.serverMs()))));
}
