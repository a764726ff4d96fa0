// The words and icons for the engine's enums. A value of a newer engine is shown unchanged.

import { counted } from "./format.js";
import { follows } from "./source.js";

/** @import { GroupsInTrouble, Health } from "answers" */

/** @type {{ [name: string]: { label: string, icon: string, long: string } | undefined }} */
const REASONS = {
  session_timeout: { label: "Silent", icon: "heart", long: "Session timeout: no heartbeat came in time." },
  rebalance_timeout: {
    label: "Did not rejoin",
    icon: "sync",
    long: "Rebalance timeout: it did not rejoin before the join window ended.",
  },
  sync_timeout: {
    label: "Did not sync",
    icon: "hourglass",
    long: "Sync timeout: it joined, and never fetched its assignment.",
  },
  pending_timeout: {
    label: "Never joined",
    icon: "enter",
    long: "Pending timeout: it was given an id, and never joined with it.",
  },
  poll_timeout: {
    label: "Took itself out",
    icon: "pause",
    long: "Poll timeout: it did not poll within max.poll.interval.ms, and left by itself; it said so, or came back under the same id.",
  },
  worker_failed: {
    label: "Failed",
    icon: "stop",
    long: "The worker failed: its process ended with an error or by a signal, or a check of it failed.",
  },
  revocation_timeout: {
    label: "Did not revoke",
    icon: "hourglass",
    long: "Revocation timeout: it did not give up partitions in time.",
  },
  not_a_member: {
    label: "Not accepted",
    icon: "door",
    long: "Not accepted: the coordinator did not know this consumer any more, or knew it in another generation. Why is in the broker's log.",
  },
  no_answer: {
    label: "No answer",
    icon: "heart",
    long: "No answer: its heartbeats were not answered for its session timeout, so it was likely removed. Whether it was is in the broker's log.",
  },
  new_member_timeout: {
    label: "Gave up joining",
    icon: "clock",
    long: "New member timeout: it was new, and waited in a join phase for too long, five minutes by default.",
  },
};

/** @type {{ [name: string]: { label?: string, icon: string, tone: string } | undefined }} */
const STATES = {
  Empty: { icon: "dot", tone: "calm" },
  PreparingRebalance: { label: "Preparing rebalance", icon: "hourglass", tone: "warn" },
  Assigning: { label: "Assigning", icon: "sync", tone: "warn" },
  Reconciling: { label: "Reconciling", icon: "sync", tone: "warn" },
  CompletingRebalance: { label: "Completing rebalance", icon: "sync", tone: "warn" },
  Stable: { icon: "check", tone: "good" },
  Unknown: { icon: "dot", tone: "calm" },
};

/** @type {{ [name: string]: { label: string, icon: string, tone: string } | undefined }} */
const HEALTH = {
  healthy: { label: "Healthy", icon: "check", tone: "good" },
  catching_up: { label: "Catching up", icon: "hourglass", tone: "warn" },
  stalled: { label: "Stalled", icon: "stop", tone: "bad" },
  waiting: { label: "Waiting", icon: "clock", tone: "calm" },
  log: { label: follows ? "Following" : "From a log", icon: "check", tone: "calm" },
  unreachable: { label: "Unreachable", icon: "plug", tone: "bad" },
};

/** The engine's health while the dashboard's own server does not answer. */
export const LINK_LOST = { label: "Not known", icon: "plug", tone: "calm" };

/**
 * Return label, icon and tone of the light about the groups.
 *
 * @param {GroupsInTrouble} trouble
 */
export function troubleWords({ known, count: number }) {
  if (!known) return { label: "Groups: not known", icon: "dot", tone: "calm" };
  if (!number) return { label: "Groups: fine", icon: "check", tone: "good" };
  return { label: `${counted(number, "group")} in trouble`, icon: "alert", tone: "bad" };
}

/** @type {{ [kind: string]: { label: string, icon: string, tone: string } | undefined }} */
const TROUBLES = {
  empty: { label: "no members", icon: "door", tone: "bad" },
  overdue: { label: "overdue", icon: "clock", tone: "bad" },
  storm: { label: "storm", icon: "storm", tone: "bad" },
  too_few: { label: "too few members", icon: "door", tone: "bad" },
  flapping: { label: "flapping", icon: "sync", tone: "warn" },
  late_polls: { label: "late polls", icon: "pause", tone: "warn" },
};

/**
 * Return label, icon and tone of one trouble of a group.
 *
 * @param {string} kind
 */
export const troubleKind = (kind) => ({ label: spaced(kind), icon: "alert", tone: "warn", ...TROUBLES[kind] });

/** Sections of docs/troubleshooting.md about troubles of groups; tests/docs checks them. */
const TROUBLE_TOPICS = new Set(["group-empty", "group-overdue", "group-too-few", "group-storm", "group-flapping", "group-late-polls"]);

/**
 * Return the section of the documentation about one trouble of a group.
 *
 * @param {string} kind
 */
export function troubleTopic(kind) {
  const topic = `group-${kind.replaceAll("_", "-")}`;
  return TROUBLE_TOPICS.has(topic) ? topic : null;
}

/** What a rebalance means for the members of a classic group: it depends on their assignor. */
export const WHILE_IT_REBALANCES =
  "While a group rebalances, eager consumers stop, and cooperative ones continue with the partitions that they keep.";

/** The filter of page Expired offers these. */
export const REASON_NAMES = Object.keys(REASONS);

/** The filter of page Groups offers these. */
export const STATE_NAMES = Object.keys(STATES);

/** @param {string | null | undefined} name */
export const spaced = (name) => (name ?? "").replaceAll("_", " ");

/**
 * Return label, icon and sentence of a reason.
 *
 * @param {string} name
 */
export const reasonWords = (name) => ({ label: spaced(name), icon: "dot", long: spaced(name), ...REASONS[name] });

/**
 * Return label, icon and tone of a group's state.
 *
 * @param {string} name
 */
export const stateWords = (name) => ({ label: name || "Unknown", icon: "dot", tone: "calm", ...STATES[name] });

/**
 * Return label, icon and tone of a state that is no longer updated.
 *
 * @param {string} name
 */
export const formerStateWords = (name) => ({ label: `was ${stateWords(name).label}`, icon: "clock", tone: "calm" });

/**
 * Return label, icon and tone of the engine's health: with a warning below it, it is not green.
 *
 * @param {Pick<Health, "state" | "reasons">} health
 */
export function healthWords({ state, reasons }) {
  const words = { label: spaced(state), icon: "alert", tone: "warn", ...HEALTH[state] };
  if (words.tone !== "good" || !reasons.length) return words;
  return { label: counted(reasons.length, "warning"), icon: "alert", tone: "warn" };
}

/** @type {{ [name: string]: string | undefined }} */
const KINDS = {
  classic: "members join, sync and carry a generation, by Kafka's classic protocol",
  loaded: "taken over in the middle of its life, at the generation its heartbeats carry",
  presence: "plain workers that only send heartbeats",
  consumer: "Kafka's consumer protocol (KIP-848): it goes by member epochs, and the broker sets the session",
  share: "a share group (KIP-932): it goes by member epochs, and the broker sets the session",
  streams: "a streams group (KIP-1071): it goes by member epochs, and the broker sets the session",
};

/**
 * Return what a kind of group is.
 *
 * @param {string | null} name
 */
export const kindWords = (name) => KINDS[name ?? ""] ?? "";

/**
 * Return whether a kind of group has member epochs, so that its generation is its epoch.
 *
 * @param {string | null} [name]
 */
export const goesByEpochs = (name) => name === "consumer" || name === "share" || name === "streams";
