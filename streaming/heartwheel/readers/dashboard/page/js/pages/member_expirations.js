// The expirations on the page of one member, and the way to older ones.

import { query } from "../api.js";
import { memberHref, time } from "../cells.js";
import { h } from "../dom.js";
import { COLUMNS_OF_A_MEMBER } from "../expiration_columns.js";
import { counted } from "../format.js";
import { LOGGED_OUT_OF_A_MEMBER } from "../log_columns.js";
import { fromLog } from "../source.js";
import { table } from "../table.js";
import { FROM_HISTORY } from "./detail_parts.js";

/** @import { MemberView } from "answers" */

/** Most expirations on one page. */
const SHOWN = 50;

/**
 * A link to its expirations before those that are shown; null if there are none.
 *
 * @param {MemberView} member
 */
export function olderLink({ group_id: group, member_id: member, expirations, older_until_ms: known }) {
  const more = expirations[SHOWN];
  const older = more ? more.append_ms + 1 : known;
  if (typeof older !== "number") return null;
  return h("a", { class: "small", href: `${memberHref(group, member)}${query({ until_ms: older })}` }, more ? "Older" : FROM_HISTORY);
}

/**
 * @param {MemberView} member
 * @param {string} untilMs the end of the time that is shown; empty for now
 */
export function before(member, untilMs) {
  const { expirations } = member;
  const list = table({ caption: "Its expirations", columns: fromLog ? LOGGED_OUT_OF_A_MEMBER : COLUMNS_OF_A_MEMBER, key: (row) => row.id });
  list.show(expirations.slice(0, SHOWN));
  return h(
    "section",
    { class: "panel flush" },
    h("div", { class: "panel-head" }, h("h2", {}, fromLog ? outTimes(member, untilMs) : `Expired ${counted(expirations.length, "time")} in the window`), olderLink(member)),
    list.element,
  );
}

/**
 * How often it was out, and in which time.
 *
 * @param {MemberView} member
 * @param {string} untilMs
 */
const outTimes = ({ expirations, older_until_ms: older }, untilMs) => [
  `Out ${counted(expirations.length, "time")}`,
  typeof older === "number" ? [" since ", time(older)] : untilMs ? null : " in this log",
  untilMs ? [" until ", time(Number(untilMs))] : null,
];
