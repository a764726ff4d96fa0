// The columns of a table of expirations: every field of the event, in eight columns of two lines.

import { groupHref, linked, memberHref, tagged, twoLines } from "./cells.js";
import { clock, count, duration, NOTHING, timeOfDay, utc } from "./format.js";
import { formerStateWords, goesByEpochs, reasonWords } from "./words.js";

/** @import { Expiration } from "answers" */
/** @import { Column } from "./types.d.ts" */

/**
 * Whether the row is from a broker's log, not from the engine.
 *
 * @param {Expiration | undefined} row
 */
export const isLogged = (row) => row?.evidence !== null && row?.evidence !== undefined;

/** @type {Column<Expiration>} */
const expired = {
  label: "Expired",
  width: "13.5%",
  className: "c-time",
  about: "The deadline it missed, or when it failed or took itself out; below it when it was last seen",
  cell: () =>
    twoLines((row) => ({
      first: clock(row.deadline_ms),
      title: `deadline ${utc(row.deadline_ms)}`,
      second: isLogged(row) ? "the log" : row.last_seen_ms === null ? "never beat" : `seen ${timeOfDay(row.last_seen_ms)}`,
      titleSecond: isLogged(row) ? row.evidence : row.last_seen_ms === null ? null : `last seen ${utc(row.last_seen_ms)}`,
    })),
};

/** @type {Column<Expiration>} */
const why = {
  label: "Why",
  width: "13%",
  className: "c-why",
  about: "The timer that ended it",
  cell: () =>
    tagged((row) => ({
      ...reasonWords(row.reason),
      tone: row.reason === "session_timeout" ? "bad" : "warn",
      title: `${row.failure ? `${row.failure}. ` : ""}${reasonWords(row.reason).long} (${row.reason})`,
    })),
};

/** @type {Column<Expiration>} */
const group = {
  label: "Group",
  width: "15%",
  className: "c-group",
  order: "group",
  about: "Group, and its state just before the expiration",
  cell: () => linked((row) => ({ href: groupHref(row.group_id), first: row.group_id, second: row.group_state && formerStateWords(row.group_state).label })),
};

/** @type {Column<Expiration>} */
const member = {
  label: "Member",
  width: "23.5%",
  className: "wide c-member",
  about: "Member id; below it instance, client and host",
  cell: () =>
    linked((row) => ({
      href: memberHref(row.group_id, row.member_id),
      first: row.member_id,
      second: row.failure ? `${row.failure} · ${whoIs(row)}` : whoIs(row),
    })),
};

/** @param {Expiration} row */
const isOfSilence = ({ reason }) => reason === "session_timeout";

/** @type {Column<Expiration>} */
const silent = {
  label: "Silent for",
  width: "9%",
  className: "number c-silent",
  order: "silent",
  about: "From its last sign of life until its expiration was decided; a failure is reported, and not found by silence",
  cell: () =>
    twoLines((row) => ({
      first: duration(row.silent_ms),
      second: row.silent_ms !== null && row.session_timeout_ms ? `${isOfSilence(row) ? "of" : "timer:"} ${duration(row.session_timeout_ms)}` : "",
      titleSecond: isOfSilence(row)
        ? "its session timeout"
        : "the timer that ended it, which does not count silence: heartbeats may come while it runs",
    })),
};

/** @type {Column<Expiration>} */
const known = {
  label: "Known after",
  width: "10%",
  className: "number c-late",
  order: "late",
  about: "From the deadline until its expiration was in Kafka, where anybody can know it; below it when that was",
  cell: () =>
    twoLines((row) => ({
      first: duration(row.known_late_ms),
      title: isLogged(row) ? "the coordinator itself decided it" : `decided ${duration(row.lateness_ms)} after the deadline`,
      second: `at ${timeOfDay(row.append_ms)}`,
      titleSecond: `in Kafka ${utc(row.append_ms)}`,
    })),
};

/** @type {Column<Expiration>} */
const generation = {
  label: "Gen.",
  width: "5%",
  className: "number c-gen",
  about: "Generation of the group",
  cell: () => twoLines((row) => ({ first: row.generation_id < 0 ? NOTHING : count(row.generation_id), second: "" })),
};

/** @type {Column<Expiration>} */
const back = {
  label: "Came back",
  className: "c-back",
  width: "11%",
  about: "Whether it joined again, and how long after its deadline",
  cell: () =>
    tagged((row) =>
      row.returned_ms
        ? {
            icon: "enter",
            label: duration(Math.max(0, row.returned_ms - row.deadline_ms)),
            tone: "good",
            title: `came back ${utc(row.returned_ms)}`,
          }
        : { icon: "door", tone: "calm", ...absence(row) },
    ),
};

/**
 * Return how certain it is that a member is not back: in groups with member epochs a restarted client chooses a new id,
 * and looks like another member.
 *
 * @param {Expiration} row
 */
export const absence = ({ group_kind: kind, group_instance_id: instance }) =>
  goesByEpochs(kind) && !instance
    ? { label: "not known", title: "not back under its id; a client that was started again has another one" }
    : { label: "not yet", title: "not seen since" };

/**
 * Return what is known of a member besides its id.
 *
 * @param {Expiration} row
 */
export function whoIs({ group_instance_id: instance, client_id: client, client_host: host }) {
  return (
    [instance && `instance ${instance}`, client, host && host.replace(/^\//, "")].filter(Boolean).join(" · ") ||
    "no client named"
  );
}

export const EXPIRATION_COLUMNS = [expired, why, group, member, silent, known, generation, back];

/** The same for a page about one group. */
export const COLUMNS_OF_A_GROUP = EXPIRATION_COLUMNS.filter((column) => column !== group);

/** The same for a page about one member. */
export const COLUMNS_OF_A_MEMBER = COLUMNS_OF_A_GROUP.filter((column) => column !== member);
