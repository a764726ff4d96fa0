// What the API answers. Made by python -m heartwheel.dashboard.typescript from its OpenAPI document.

/** How things stand, in one document. */
export interface Now {
  at_ms: number;
  version: string;
  health: Health;
  members: number | null;
  groups: number | null;
  groups_by_state: Record<string, number>;
  groups_by_kind: Record<string, number>;
  shards: number;
  shards_held: number;
  expirations_per_minute: number | null;
  expirations_total: number;
  triggers_total: number;
  lateness_ms: Lateness;
  clock_ms: number;
  clock_behind_ms: number | null;
  last_batch: LastBatch | null;
  backlog: number | null;
  heartbeats_per_second: number | null;
  rejects_total: number;
  rejects_by_cause: Record<string, number>;
  strays: Record<string, number>;
  storms: StormLine[];
  trouble: GroupsInTrouble;
  canary: CanaryFigures | null;
  window: Window;
  job: JobRow | null;
  log: LogReport | null;
}

/** How far the engine can be trusted. */
export interface Health {
  state: HealthState;
  since_ms: number | null;
  sentence: string;
  hint: string;
  reasons: string[];
  as_of_ms?: number | null;
  topic?: string;
}

/** How far the engine can be trusted. */
export type HealthState = "catching_up" | "healthy" | "log" | "stalled" | "unreachable" | "waiting";

/** How long after its deadline an expiration was in Kafka, ms; all zero of none. */
export interface Lateness {
  p50: number;
  p99: number;
  max: number;
  count: number;
  objective: number | null;
}

/** The newest batch: Spark's number of it, when it ended (epoch ms), how long it took (ms), what it read. */
export interface LastBatch {
  batch_id: number;
  at_ms: number;
  duration_ms: number;
  records: number;
  behind: number;
}

/** A group that is in a storm; see `Storm`. */
export interface StormLine {
  group_id: string;
  count: number;
  window_ms: number;
  first_cause: string;
  offenders: Offender[];
}

/** A member, or the instance or client that it is, that was expired more than once: its name, how often. */
export interface Offender {
  member_id: string;
  count: number;
}

/** The groups in trouble. */
export interface GroupsInTrouble {
  known: boolean;
  count: number;
  sentence: string;
  groups: TroubledGroup[];
}

/** A group in trouble, and what is wrong with it, the worst first. */
export interface TroubledGroup {
  group_id: string;
  troubles: Trouble[];
}

/** One thing that is wrong with a group. */
export interface Trouble {
  kind: TroubleKind;
  words: string;
  count: number;
  since_ms?: number | null;
  offenders?: Offender[];
}

/** What is wrong with a group, the worst first. */
export type TroubleKind = "empty" | "flapping" | "late_polls" | "overdue" | "storm" | "too_few";

/** What a canary has measured; `expected` is the sum of `known`, `missed`, `void` and `pending`. */
export interface CanaryFigures {
  enabled: boolean;
  shards: number;
  expected: number;
  known: number;
  late: number;
  missed: number;
  false: number;
  void: number;
  void_reason: string | null;
  pending: number;
  lateness_ms: CanaryLateness;
  objective_ms: number;
  last_ms: number | null;
  beats: number;
  unknown: number;
}

/** How long after their deadlines the newest expirations were in Kafka, ms; `None` before the first. */
export interface CanaryLateness {
  p50: number | null;
  p99: number | null;
  max: number | null;
}

/** What stretch of time the picture shows. */
export interface Window {
  from_ms: number;
  kept_ms: number;
  expirations: number;
  expirations_max: number;
  dropped: number;
}

/** One row of the job topic; `conf/schemas/heartwheel-job.schema.json` describes it. */
export interface JobRow {
  at_ms: number;
  started_ms: number;
  phase: Phase;
  phase_since_ms: number;
  fault: string | null;
  faults: number;
  batches: number;
  records: number;
  last_batch: BatchFigures | null;
  trigger_interval_ms: number;
  tick_interval_ms: number;
  wheel_tick_ms: number;
  shards: number;
  version: string;
  behind_ms?: number;
  standing?: number;
  ticker?: TickerState | null;
  outages?: number;
  sessions_renewed?: number;
  last_outage?: OutageFigures | null;
  untimed?: number;
  untimed_at_ms?: number | null;
  stepped_back_ms?: number;
  topic_problems?: TopicProblem[];
}

/** What a job is doing, in the order of its life; `retrying` comes after a fault, and leads back. */
export type Phase = "catching up" | "live" | "retrying" | "starting" | "stopped";

/** The figures of one finished batch. */
export interface BatchFigures {
  batch_id: number;
  ended_ms: number;
  duration_ms: number;
  read_ms: number;
  records: number;
  behind: number;
  expired: number;
  triggers: number;
  rejected: number;
}

/** How the ticker does, which carries time to partitions in which nobody else writes. */
export interface TickerState {
  run: string;
  partitions: number;
  written: number;
  failed: number;
  lag_ms: number;
  silent_count: number;
  silent: SilentPartition[];
  reason: string;
  skew_ms?: number | null;
}

/** A partition that the ticker cannot write to. */
export interface SilentPartition {
  partition: number;
  since_ms: number;
  reason: string;
}

/** One outage of Kafka, as far as it concerned the groups. */
export interface OutageFigures {
  seen_ms: number;
  duration_ms: number;
  sessions_renewed: number;
}

/** A setting of the topic that is read that makes verdicts wrong, or heartbeats vanish. */
export interface TopicProblem {
  topic: string;
  setting: string;
  found: string;
  wanted: string;
}

/** What brokers' logs say of all groups together. */
export interface LogReport {
  zone_assumed: boolean;
  to_ms: number | null;
  empty: EmptyGroup[];
  empty_count: number;
  incidents: LogIncident[];
  brokers: BrokerLine[];
  doubts: string[];
}

/** A group without members at the end of a log, and since when, epoch ms. */
export interface EmptyGroup {
  group_id: string;
  since_ms: number;
}

/** Members that were out at once: when the first was, epoch ms, and what that suggests. */
export interface LogIncident {
  from_ms: number;
  words: string;
}

/** A broker that starts or shuts down: which, when (epoch ms), and what it does. */
export interface BrokerLine {
  broker_id: number | null;
  time_ms: number;
  words: string;
}

/** The figures of each step, in lists of one length; `null` where nothing is known. */
export interface Series {
  step_ms: number;
  t_ms: number[];
  expirations: number[];
  lateness_p50_ms: (number | null)[];
  lateness_p99_ms: (number | null)[];
  heartbeats_per_second: (number | null)[];
  batch_ms: (number | null)[];
}

/** A page of expirations. */
export interface ExpirationPage {
  rows: Expiration[];
  next: string | null;
  matched: number;
  total: number;
}

/** An expiration as the picture keeps and shows it: all fields of the topic's row, and these. */
export interface Expiration {
  id: string;
  group_id: string;
  member_id: string;
  group_instance_id: string | null;
  client_id: string | null;
  client_host: string | null;
  generation_id: number;
  reason: string;
  last_seen_ms: number | null;
  session_timeout_ms: number | null;
  deadline_ms: number;
  detected_ms: number;
  lateness_ms: number | null;
  group_state: string;
  shard: number;
  renewed_ms?: number | null;
  group_kind?: string | null;
  member_epoch?: number | null;
  failure?: string | null;
  seq: number;
  append_ms: number;
  known_late_ms: number | null;
  silent_ms: number | null;
  returned_ms?: number | null;
  partition: number;
  offset: number;
  explanation?: string[];
  evidence?: string | null;
  advice?: string;
}

/** An expiration with its explanation: all its fields, and these. */
export interface ExpirationDetail {
  id: string;
  group_id: string;
  member_id: string;
  group_instance_id: string | null;
  client_id: string | null;
  client_host: string | null;
  generation_id: number;
  reason: string;
  last_seen_ms: number | null;
  session_timeout_ms: number | null;
  deadline_ms: number;
  detected_ms: number;
  lateness_ms: number | null;
  group_state: string;
  shard: number;
  renewed_ms?: number | null;
  group_kind?: string | null;
  member_epoch?: number | null;
  failure?: string | null;
  seq: number;
  append_ms: number;
  known_late_ms: number | null;
  silent_ms: number | null;
  returned_ms?: number | null;
  partition: number;
  offset: number;
  explanation?: string[];
  evidence?: string | null;
  advice?: string;
  why: string[];
  trigger: TriggerRow | null;
  again: number;
}

/** One row of the triggers topic; `conf/schemas/rebalance-triggers.schema.json` describes it. */
export interface TriggerRow {
  id: string;
  type: string;
  group_id: string;
  generation_id: number;
  reason: string;
  cause: string | null;
  time_ms: number;
  deadline_ms: number | null;
  awaiting: string[];
  awaiting_count: number;
  leader: string | null;
  member_count: number;
  removed: string[];
  removed_count: number;
  joined?: string[];
  joined_count?: number;
  duration_ms: number | null;
  detected_ms: number;
  shard: number;
  group_kind?: string | null;
  loads?: number;
}

/** A page of groups. */
export interface GroupPage {
  rows: Group[];
  next: string | null;
  matched: number;
  total: number;
  known_total: number;
  note: string;
}

/** How a group stands. */
export interface Group {
  group_id: string;
  state: ShownState;
  state_words: string;
  kind: string | null;
  generation_id: number;
  members: number | null;
  unknown_sessions: number;
  expected: number | null;
  last: LastChange | null;
  blocked: Blocked | null;
  storm: Storm | null;
  troubles: Trouble[];
  verdict: string[];
  expirations: number;
  last_expired_ms: number | null;
  shard: number | null;
  version: number;
}

/** The state of a group as Kafka names it; `UNKNOWN` as long as only expirations of it were seen. */
export type ShownState = "Assigning" | "CompletingRebalance" | "Empty" | "PreparingRebalance" | "Reconciling" | "Stable" | "Unknown";

/** What the triggers topic says last of a group. */
export interface LastChange {
  type: string;
  cause: string | null;
  reason: string;
  words: string;
  time_ms: number;
  duration_ms: number | null;
}

/** Whom a rebalance waits for. */
export interface Blocked {
  since_ms: number | null;
  deadline_ms: number | null;
  awaiting: string[];
  awaiting_count: number;
  to?: string;
}

/** A storm of rebalances. */
export interface Storm {
  count: number;
  window_ms: number;
  first_cause: string;
  offenders: Offender[];
}

/** A part of what happened to a group. */
export interface TimelinePage {
  rows: TimelineLine[];
  next: string | null;
  total: number;
}

/** One line of a timeline: when (epoch ms), what kind, in words; the fields of the topic's row are beside them. */
export interface TimelineLine {
  kind: string;
  text: string;
  time_ms: number;
}

/** A group with its newest history and its members: all fields of the group, and these. */
export interface GroupAnswer {
  group_id: string;
  state: ShownState;
  state_words: string;
  kind: string | null;
  generation_id: number;
  members: number | null;
  unknown_sessions: number;
  expected: number | null;
  last: LastChange | null;
  blocked: Blocked | null;
  storm: Storm | null;
  troubles: Trouble[];
  verdict: string[];
  expirations: Expiration[];
  last_expired_ms: number | null;
  shard: number | null;
  version: number;
  timeline: TimelineLine[];
  expirations_count: number;
  members_seen: MemberSeen[];
  members_note: string;
}

/** A member that sent something lately: its id, when it did last (epoch ms), how many events were read. */
export interface MemberSeen {
  member_id: string;
  last_seen_ms: number;
  beats: number;
  left?: string | null;
  failed?: string | null;
}

/** What is known of one member. */
export interface MemberView {
  group_id: string;
  member_id: string;
  expirations: Expiration[];
  why: string[];
  returned_ms: number | null;
  history: MemberHistory;
}

/** The events of a member around its last silence, or lately. */
export interface MemberHistory {
  events: HistoryEvent[];
  gaps: Gap[];
  session_timeout_ms: number | null;
  deadline_ms: number | null;
  truncated: boolean;
  note: string;
}

/** An event of a member: when it was appended, epoch ms, its type, the generation that it names or -1. */
export interface HistoryEvent {
  at_ms: number;
  type: EventType;
  generation_id: number;
  reason?: string | null;
  failure?: string | null;
}

/** The request that an event stands for. */
export type EventType = "commit" | "expired" | "heartbeat" | "join" | "leave" | "load" | "sync" | "unload";

/** The time between two events, epoch ms and ms. */
export interface Gap {
  from_ms: number;
  to_ms: number;
  gap_ms: number;
}

/** Hold the groups that rebalanced. */
export interface RebalancePage {
  groups: GroupRebalances[];
  from_ms: number | null;
  to_ms: number | null;
  slot_ms: number;
  matched: number;
}

/** Hold the rebalances of a group. */
export interface GroupRebalances {
  group_id: string;
  rebalances: number;
  lost_ms: number | null;
  longest_ms: number | null;
  unmeasured: number;
  days: Day[];
  longest: Rebalance[];
  strip: Slot[];
}

/** What a day has cost: the day in UTC as `2026-11-22`, how many rebalances, and their time, ms, if it is known. */
export interface Day {
  day: string;
  rebalances: number;
  lost_ms: number | null;
}

/** Hold one rebalance. */
export interface Rebalance {
  started_ms: number;
  ended_ms: number | null;
  duration_ms: number | null;
  generation_id: number;
  cause: string;
  reason: string;
  blocked_by: string[];
  members: number | null;
  empty: boolean;
}

/** What a stretch of time has cost: its place from 0 to `SLOTS` - 1, and what of the rebalances lies in it. */
export interface Slot {
  at: number;
  rebalances: number;
  lost_ms: number | null;
  blocked: boolean;
}

/** The members nearest to their expiry, nearest first, and the wall clock of the answer, epoch ms. */
export interface AtRiskList {
  at_ms: number;
  rows: AtRisk[];
}

/** A member that is near its expiry. */
export interface AtRisk {
  group_id: string;
  member_id: string;
  deadline_ms: number;
  session_timeout_ms: number | null;
  shard: number;
  clock_ms: number;
}

/** The wheel of a shard. */
export interface WheelView {
  shard: number;
  shards: number;
  clock_ms: number;
  batch_ms: number;
  held: boolean;
  tick_ms: number;
  size: number;
  moves: number;
  fires: number;
  members: number;
  levels: WheelLevelView[];
  at_risk: AtRiskMember[];
  state_bytes: number;
}

/** One level of a wheel. */
export interface WheelLevelView {
  tick_ms: number;
  span_ms: number;
  entries: number;
  slots: number[];
  hand: number | null;
}

/** One of the members nearest to expiry; the length of its session is `null` in rows of earlier releases. */
export interface AtRiskMember {
  group_id: string;
  member_id: string;
  deadline_ms: number;
  session_timeout_ms?: number | null;
}

/** The first event of a stream. */
export interface Hello {
  epoch: string;
  now: Now;
  from_seq: number;
  resumed: boolean;
}

/** The newest expirations, newest first, and how many were left out. */
export interface NewExpirations {
  rows: Expiration[];
  skipped: number;
}

/** The member of an expiration is back: the expiration's id, and since when, epoch ms. */
export interface NewReturn {
  id: string;
  returned_ms: number | null;
}

/** Groups that changed, and how many were left out. */
export interface NewGroups {
  rows: Group[];
  skipped: number;
}

/** The figures of the newest step, which is not over yet; the fields are those of `Series`, for one step. */
export interface SeriesStep {
  step_ms: number;
  t_ms: number;
  expirations: number;
  lateness_p50_ms: number | null;
  lateness_p99_ms: number | null;
  heartbeats_per_second: number | null;
  batch_ms: number | null;
}

/** Why something was left out. What is shown must be loaded anew. */
export interface StreamGap {
  reason: string;
}

/** What is wrong with a request. */
export interface Problem {
  error: string;
  hint: string;
}

/** The data of each event of /api/stream, by the event's name. */
export interface StreamEvents {
  hello: Hello;
  now: Now;
  expirations: NewExpirations;
  returned: NewReturn[];
  groups: NewGroups;
  at_risk: AtRiskList;
  wheel: WheelView;
  series: SeriesStep;
  gap: StreamGap;
}

/** What a path answers with as JSON. */
export type Answer<Path extends string> =
  Path extends `/api/now` ? Now :
  Path extends `/api/series` ? Series :
  Path extends `/api/expirations` ? ExpirationPage :
  Path extends `/api/expirations.json` ? Expiration[] :
  Path extends `/api/expirations/${string}` ? ExpirationDetail :
  Path extends `/api/groups` ? GroupPage :
  Path extends `/api/timeline/${string}` ? TimelinePage :
  Path extends `/api/groups/${string}` ? GroupAnswer :
  Path extends `/api/members/${string}` ? MemberView :
  Path extends `/api/rebalances` ? RebalancePage :
  Path extends `/api/at-risk` ? AtRiskList :
  Path extends `/api/wheel` ? WheelView :
  never;
