// The columns of tables that show a broker's log: they contain what a coordinator logs, and no figure that only the
// engine has.

import { expiredAndTroubles, groupHref, linked, memberHref, tagged, twoLines } from "./cells.js";
import { whoIs } from "./expiration_columns.js";
import { clock, count, duration, NOTHING, utc } from "./format.js";
import { follows } from "./source.js";
import { goesByEpochs, kindWords, reasonWords, stateWords } from "./words.js";
import { h, mark, write } from "./dom.js";

/** @import { Expiration, Group } from "answers" */
/** @import { Cell, Column } from "./types.d.ts" */

/**
 * A text over several lines.
 *
 * @template Row
 * @param {(row: Row) => { text: string, title?: string }} read
 * @returns {Cell<Row>}
 */
function prose(read) {
  const element = h("span", { class: "prose" });
  return {
    element,
    fill: (row) => {
      const { text, title } = read(row);
      write(element, text);
      mark(element, "title", title ?? null);
    },
  };
}

/** @param {string | null | undefined} evidence */
const place = (evidence) => (evidence ?? "").replace(/^.*\//, "");

/** @type {Column<Expiration>} */
const out = {
  label: "Out",
  width: "14%",
  className: "c-time",
  about: "When its membership ended; below it the line of the log that says so",
  cell: () =>
    twoLines((row) => ({
      first: clock(row.deadline_ms),
      title: utc(row.deadline_ms),
      second: place(row.evidence),
      titleSecond: row.evidence ?? "",
    })),
};

/** @type {Column<Expiration>} */
const why = {
  label: "Why",
  width: "13%",
  className: "c-why",
  about: "What ended its membership",
  cell: () =>
    tagged((row) => ({
      ...reasonWords(row.reason),
      tone: row.reason === "poll_timeout" ? "warn" : "bad",
      title: `${reasonWords(row.reason).long} (${row.reason})`,
    })),
};

/** @type {Column<Expiration>} */
const group = {
  label: "Group",
  width: "14%",
  className: "c-group",
  order: "group",
  about: "Group, and its generation or epoch then",
  cell: () => linked((row) => ({ href: groupHref(row.group_id), first: row.group_id || "not named", second: numbered(row) })),
};

/** @type {Column<Expiration>} */
const member = {
  label: "Member",
  width: "23%",
  className: "wide c-member",
  about: "Member id; below it instance, client and host, as far as the log names them",
  cell: () =>
    linked((row) => ({ href: memberHref(row.group_id, row.member_id), first: row.member_id, second: whoIs(row) })),
};

/** @type {Column<Expiration>} */
const change = {
  label: "What to change",
  width: "24%",
  className: "wide",
  about: "What happened to its pod or machine, if that is known, else the setting to change, or where to look",
  cell: () => prose((row) => ({ text: row.cause || row.advice || NOTHING, title: row.explanation?.join("\n") })),
};

/** @type {Column<Expiration>} */
const back = {
  label: "Came back",
  width: "12%",
  className: "c-back",
  about: "Whether it joined again in this log, and how long after it was out",
  cell: () =>
    tagged((row) =>
      row.returned_ms
        ? {
            icon: "enter",
            label: `${duration(Math.max(0, row.returned_ms - row.deadline_ms))} later`,
            tone: "good",
            title: `came back ${utc(row.returned_ms)}`,
          }
        : { icon: "door", label: follows ? "not yet" : "no", tone: "calm", title: follows ? "not until now" : "not by the end of the log" },
    ),
};

/** @param {Pick<Expiration, "generation_id" | "group_kind">} row */
function numbered({ generation_id: number, group_kind: kind }) {
  if (number < 0) return "";
  return `${goesByEpochs(kind) ? "epoch" : "generation"} ${count(number)}`;
}

/** Who was out. */
export const LOGGED_OUT = [out, why, group, member, change, back];

/** The same for a page about one group. */
export const LOGGED_OUT_OF_A_GROUP = LOGGED_OUT.filter((column) => column !== group);

/** The same for a page about one member. */
export const LOGGED_OUT_OF_A_MEMBER = LOGGED_OUT_OF_A_GROUP.filter((column) => column !== member);

/**
 * The state of groups now, or at the end of the log.
 *
 * @type {Column<Group>[]}
 */
export const LOGGED_GROUPS = [
  {
    label: "Group",
    width: "17%",
    order: "name",
    className: "c-name",
    cell: () =>
      linked((row) => ({
        href: groupHref(row.group_id),
        first: row.group_id || "not named",
        second: row.kind ?? "kind not in the log",
        titleSecond: kindWords(row.kind),
      })),
  },
  {
    label: "State",
    width: "12%",
    className: "c-state",
    about: `${follows ? "Now" : "At the end of the log"}; hover over a state to read what it means`,
    cell: () => tagged((row) => ({ ...stateWords(row.state), title: row.state_words })),
  },
  {
    label: "Members",
    width: "11%",
    order: "members",
    className: "number",
    about: follows ? "Now" : "At the end of the log",
    cell: () =>
      twoLines((row) => ({
        first: row.members === null ? "not logged" : count(row.members),
        second: numbered({ generation_id: row.generation_id, group_kind: row.kind }),
      })),
  },
  {
    label: "Out",
    width: "13%",
    order: "expired",
    about: "How often a timeout ended a membership, and what else was wrong",
    cell: expiredAndTroubles,
  },
  {
    label: "Last change",
    width: "14%",
    order: "changed",
    className: "c-change",
    cell: () =>
      twoLines(({ last }) => ({
        first: last ? last.words : "none seen",
        second: last ? clock(last.began_ms) : "",
        title: last?.reason ?? "",
        titleSecond: last ? utc(last.began_ms) : "",
      })),
  },
  {
    label: "What the log says",
    width: "33%",
    className: "wide",
    cell: () => prose((row) => ({ text: row.verdict.join(" "), title: row.verdict.join("\n") })),
  },
];
