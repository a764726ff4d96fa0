"""The mutants: one small mistake each, where it is made, which promise it breaks, and the test that must see it."""

from __future__ import annotations

from typing import Final, NamedTuple


class Mutant(NamedTuple):
    """Hold one mistake.

    Args:
        name: what went wrong, in a few words.
        file: where, from the project's root.
        old: the code that is right; it is there exactly once.
        new: the code that is wrong.
        promise: what the mistake breaks.
        killer: the test that must fail, as pytest names it.
    """

    name: str
    file: str
    old: str
    new: str
    promise: str
    killer: str


_WHEEL: Final = "wheel/timing_wheel"
_ENGINE: Final = "streaming/heartwheel"

_GEOMETRY: Final = "tests/wheel/test_wheel_geometry.py"
_SCENARIOS: Final = "tests/wheel/test_wheel_scenarios.py"
_STATE_FUNCTION: Final = "tests/spark/test_state_function.py"
_ANSWERED: Final = "tests/replay/test_answered_logs.py"
_PATHS: Final = "tests/shard/test_shard_paths.py"
_HEARTBEATS: Final = "tests/shard/test_heartbeats.py"
_SHARD_TIES: Final = "tests/shard/test_shard_ties.py"
_SHARD_TIME: Final = "tests/shard/test_shard_time.py"
_HISTORY: Final = "tests/simulation/test_chosen_histories.py::test_chosen_history"


MUTANTS: Final = (
    # -- the wheel
    Mutant(
        "a deadline is rounded down to its tick",
        f"{_WHEEL}/geometry.py",
        "return (deadlines_ms + (self.tick_ms - 1)) // self.tick_ms",
        "return deadlines_ms // self.tick_ms",
        "P1",
        f"{_GEOMETRY}::test_rounding_is_up_and_by_less_than_a_tick",
    ),
    Mutant(
        "what is not due is not filed again when its bucket is flushed",
        f"{_WHEEL}/wheel.py",
        "        self._filing.place(moved, tick, overdue_until=due_until)\n",
        "",
        "P2",
        f"{_SCENARIOS}::test_never_early_and_late_by_less_than_a_tick",
    ),
    Mutant(
        "an advance stops short of the bucket that begins now",
        f"{_WHEEL}/filing.py",
        "while self.queue and self.queue[0][0] <= now:",
        "while self.queue and self.queue[0][0] < now:",
        "P2",
        f"{_SCENARIOS}::test_alive_before_the_deadline_and_expired_at_it",
    ),
    Mutant(
        "all that is flushed is taken for due",
        f"{_WHEEL}/wheel.py",
        "        due = deadlines <= due_until\n",
        "        due = np.ones(len(deadlines), np.bool_)\n",
        "P1",
        f"{_SCENARIOS}::test_a_return_in_the_firing_slot_keeps_a_member",
    ),
    Mutant(
        "the wheel's clock may go back",
        f"{_WHEEL}/wheel.py",
        "        if clock_ms < self._clock_ms:\n",
        "        if clock_ms < 0:\n",
        "P1",
        f"{_SCENARIOS}::test_a_clock_that_goes_back_is_ignored_and_counted",
    ),
    Mutant(
        "a restored wheel has lost its clock",
        f"{_WHEEL}/wheel.py",
        "        wheel._clock_ms = snapshot.clock_ms\n",
        "",
        "P3",
        "tests/wheel/test_wheel_snapshot.py::test_a_restored_wheel_goes_on_exactly_as_the_first",
    ),
    Mutant(
        "a shorter timeout leaves its entry in the later bucket",
        f"{_WHEEL}/filing.py",
        "        moves = deadlines <= self.floor[handles]\n",
        "        moves = self.floor[handles] == NEVER\n",
        "P2",
        f"{_SCENARIOS}::test_a_shorter_timeout_moves_a_member_at_once",
    ),
    # -- time from the log
    Mutant(
        "effective time begins anew with every batch",
        f"{_ENGINE}/shard/log.py",
        "    return pack._replace(append_ms=np.maximum(pack.append_ms, floor_ms))\n",
        "    return pack\n",
        "P3",
        f"{_HISTORY}[effective time]",
    ),
    Mutant(
        "a group does not wait for the partition that its id names",
        f"{_ENGINE}/shard/group_times.py",
        "            times = np.minimum(times, decided[home])\n",
        "            pass\n",
        "P1",
        f"{_HISTORY}[home of a group]",
    ),
    Mutant(
        "a group does not wait for another partition that it was seen in",
        f"{_ENGINE}/shard/group_times.py",
        "if sources[0] < 0 else min(times[row], decided[found].min())\n",
        "if sources[0] < 0 else times[row]\n",
        "P1",
        f"{_SHARD_TIME}::test_p3_groups_in_several_partitions_are_merged_however_they_are_read",
    ),
    Mutant(
        "a record is applied before what the group's first partition may still hold at its time",
        f"{_ENGINE}/shard/group_times.py",
        "decided[first] - (first < mine))",
        "decided[first])",
        "P3",
        f"{_SHARD_TIES}::test_p3_a_record_waits_for_what_a_lower_partition_may_still_hold_at_its_time[first]",
    ),
    Mutant(
        "a record is applied before what the partition of the group's id may still hold at its time",
        f"{_ENGINE}/shard/group_times.py",
        "decided[home] - (home < mine))",
        "decided[home])",
        "P3",
        f"{_SHARD_TIES}::test_p3_a_record_waits_for_what_a_lower_partition_may_still_hold_at_its_time[home]",
    ),
    Mutant(
        "a record is applied before what another lower partition may still hold at its time",
        f"{_ENGINE}/shard/group_times.py",
        "decided[other] - (other < own[entry]))",
        "decided[other])",
        "P3",
        f"{_SHARD_TIES}::test_p3_a_record_waits_for_what_a_lower_partition_may_still_hold_at_its_time[other]",
    ),
    Mutant(
        "a batch that is done again after a growth knows only the new count of partitions",
        f"{_ENGINE}/log_time/log_time.py",
        "for each in (*former, partitions) if",
        "for each in () if",
        "P3",
        f"{_SHARD_TIME}::test_a_growth_in_the_first_batch_is_known_by_the_starts_before",
    ),
    Mutant(
        "after a growth the partition that was read furthest says when nobody moves any more",
        f"{_ENGINE}/log_time/log_time.py",
        "self.watermarks().min() > self.grown_ms",
        "newest_ms > self.grown_ms",
        "P3",
        f"{_SHARD_TIME}::test_former_partitions_are_waited_for_until_the_last_partition_is_read_beyond_the_growth",
    ),
    Mutant(
        "a gap as long as the least outage is one",
        f"{_ENGINE}/log_time/outage.py",
        "gap.after_ms - gap.before_ms <= outage_min_ms",
        "gap.after_ms - gap.before_ms < outage_min_ms",
        "P2",
        f"{_SHARD_TIES}::test_a_gap_as_long_as_the_least_outage_is_none",
    ),
    Mutant(
        "records that wait for their time are lost",
        f"{_ENGINE}/shard/shard.py",
        "        self._waiting = self._step(packs, decided, batch)\n",
        "        self._step(packs, decided, batch)\n        self._waiting = []\n",
        "P1",
        f"{_HISTORY}[waiting]",
    ),
    Mutant(
        "timers fire by the time of the furthest partition",
        f"{_ENGINE}/shard/shard.py",
        "        self._runner.fire(int(reached.max(initial=0)), self._times(reached), batch)\n",
        "        self._runner.fire(int(reached.max()), np.full(self._groups.rows, reached.max()), batch)\n",
        "P1",
        f"{_SHARD_TIME}::test_a_partition_without_time_holds_its_own_groups_only",
    ),
    Mutant(
        "a gap that may be an outage is decided at once",
        f"{_ENGINE}/log_time/log_time.py",
        "        return self.watermark_ms if self.gap is None else self.gap.before_ms\n",
        "        return self.watermark_ms\n",
        "P1",
        f"{_SHARD_TIME}::test_nothing_in_a_gap_is_decided_before_its_tick_is_read",
    ),
    Mutant(
        "a restart renews sessions",
        f"{_ENGINE}/log_time/outage.py",
        "        and before.run == after.run\n",
        "",
        "P5",
        f"{_SHARD_TIME}::test_p5_a_restart_is_no_outage",
    ),
    Mutant(
        "a ticker that had died before a gap counts as alive",
        f"{_ENGINE}/log_time/outage.py",
        "    return gap.last_append_ms - tick.append_ms <= 2 * tick.interval_ms\n",
        "    return True\n",
        "P5",
        f"{_HISTORY}[dead ticker]",
    ),
    Mutant(
        "ticks of anybody are evidence",
        f"{_ENGINE}/log_time/reading.py",
        "            if tick.run in self._runs\n",
        "            if tick.run\n",
        "P5",
        f"{_SHARD_TIME}::test_a_forged_tick_renews_nothing_and_hides_nothing",
    ),
    Mutant(
        "what had ended before an outage is renewed too",
        f"{_ENGINE}/coordinator/machine.py",
        "        self.advance(before_ms)\n",
        "",
        "P2",
        "tests/coordinator/test_renewal.py::test_what_ended_before_an_outage_fires_first",
    ),
    Mutant(
        "a renewal shortens what another has put off further",
        f"{_ENGINE}/coordinator/context.py",
        "if member.deadline_ms < now_ms + member.timer_ms]",
        "if member.deadline_ms != NEVER]",
        "P1",
        "tests/coordinator/test_renewal.py::test_a_renewal_shortens_nothing",
    ),
    Mutant(
        "a phase that starts anew keeps its old place among timers of one end",
        f"{_ENGINE}/coordinator/context.py",
        "            group.join_deadline_ms, group.join_armed_ms = now_ms + length_ms, now_ms\n",
        "            group.join_deadline_ms = now_ms + length_ms\n",
        "P4",
        f"{_HISTORY}[place of a phase]",
    ),
    # -- what survives a crash
    Mutant(
        "verdicts are emitted, and the state before them is kept",
        f"{_ENGINE}/spark/state_function.py",
        "        state.update(row)\n",
        "        state.update(before)\n",
        "P3",
        f"{_HISTORY}[emit before state]",
    ),
    Mutant(
        "an id depends on the batch that decided",
        f"{_ENGINE}/spark/state_function.py",
        "detected_ms=status.batch_ms)\n",
        "detected_ms=status.batch_ms)\n        row.id += str(status.batch_ms)\n",
        "P3",
        f"{_HISTORY}[id of the batch]",
    ),
    Mutant(
        "an id forgets when",
        f"{_ENGINE}/wire/verdicts.py",
        "        verdict.time_ms,\n    )\n",
        "    )\n",
        "P3",
        "tests/shard/test_verdict_rows.py::test_p3_different_verdicts_have_different_ids",
    ),
    Mutant(
        "an id forgets the loads of its millisecond",
        f"{_ENGINE}/wire/verdicts.py",
        "        parts = (*parts, verdict.loads)\n",
        "        pass\n",
        "P3",
        "tests/coordinator/test_loading.py::test_p3_what_begins_again_after_a_load_in_the_same_millisecond_has_another_id",
    ),
    Mutant(
        "the codec forgets who is pending",
        f"{_ENGINE}/shard/rules_path.py",
        "(group.pending if member.pending else group.members)[member.member_id] = member",
        "group.members[member.member_id] = member",
        "P3",
        f"{_HISTORY}[pending]",
    ),
    Mutant(
        "the codec forgets who is static",
        f"{_ENGINE}/shard/rules_path.py",
        '    member.member_id = ""\n',
        '    member.member_id = ""\n    member.group_instance_id = None\n',
        "P3",
        f"{_HISTORY}[static]",
    ),
    Mutant(
        "the codec forgets when the join phase ends",
        f"{_ENGINE}/shard/rules_path.py",
        "            min(group.join_deadline_ms, group.sync_deadline_ms, ",
        "            min(group.sync_deadline_ms, ",
        "P2",
        f"{_HISTORY}[join phase]",
    ),
    Mutant(
        "the codec mixes up members of groups",
        f"{_ENGINE}/shard/rules_path.py",
        '        rows = rows[np.argsort(owner[rows], kind="stable")]\n',
        "",
        "P1",
        f"{_HISTORY}[owners]",
    ),
    Mutant(
        "a due timer that the rules did not take is lost",
        f"{_ENGINE}/shard/group_runner.py",
        "        self._wheel.file(due, deadlines[due])\n",
        "",
        "P2",
        f"{_STATE_FUNCTION}::test_p2_a_silence_is_known_by_the_first_tick_after_it",
    ),
    # -- the two paths
    Mutant(
        "a heartbeat on the fast path does not re-arm",
        f"{_ENGINE}/shard/shard.py",
        "self._wheel.file(member_handle(alive.rows), alive.seen_ms + ",
        "(member_handle(alive.rows), alive.seen_ms + ",
        "P1",
        f"{_HISTORY}[fast path]",
    ),
    Mutant(
        "the fast path is taken at a member's very deadline",
        f"{_ENGINE}/shard/fast_path.py",
        "    due = member_deadline <= limit\n",
        "    due = member_deadline < limit\n",
        "P2",
        f"{_HISTORY}[fast path at the deadline]",
    ),
    Mutant(
        "the fast path is taken although a timer of the group is due",
        f"{_ENGINE}/shard/fast_path.py",
        "    route.busy[:-1] |= group_deadline <= newest[:-1]\n",
        "",
        "P3",
        f"{_SHARD_TIES}::test_p3_no_heartbeat_overtakes_a_timer_of_its_group",
    ),
    Mutant(
        "the fast path overlooks a silence within the batch",
        f"{_ENGINE}/shard/fast_path.py",
        "    silent[member[late]] = True\n",
        "",
        "P3",
        f"{_HISTORY}[silence in a batch]",
    ),
    Mutant(
        "a request that has no fingerprint is taken for somebody's heartbeat",
        f"{_ENGINE}/shard/fingerprints.py",
        "np.flatnonzero(fingerprints != NONE).astype(np.int32)",
        "np.arange(len(fingerprints), dtype=np.int32)",
        "P1",
        f"{_HISTORY}[fingerprints]",
    ),
    # -- the map side
    Mutant(
        "a pack loses the last record of its shard",
        f"{_ENGINE}/spark/packer.py",
        "records = slice(*entry_cuts[s : s + 2]), slice(*record_cuts[s : s + 2])\n",
        "records = slice(*entry_cuts[s : s + 2]), slice(record_cuts[s], record_cuts[s + 1] - 1)\n",
        "P1",
        "tests/spark/test_packer.py::test_a_value_is_sent_once",
    ),
    Mutant(
        "values that share a hash are taken for one",
        f"{_ENGINE}/spark/decoder.py",
        "        if not pc.all(same).as_py():",
        "        if False:",
        "P1",
        "tests/spark/test_decoder.py::test_a_frame_is_decoded_as_its_values_are",
    ),
    Mutant(
        "what the table finds by its hash is not compared",
        f"{_ENGINE}/spark/value_table.py",
        "        codes[hits[~same]] = UNKNOWN\n",
        "",
        "P1",
        "tests/spark/test_value_table.py::test_what_is_found_is_what_was_remembered_whatever_the_hashes",
    ),
    # -- heartbeats without bytes
    Mutant(
        "what a worker has packed in the running batch counts as sent",
        f"{_ENGINE}/spark/repeats.py",
        "(batch < self._now)",
        "(batch <= self._now)",
        "P1",
        f"{_HEARTBEATS}::test_a_batch_that_is_packed_again_has_the_bytes_of_what_is_new",
    ),
    Mutant(
        "bytes are left out for longer than a shard remembers",
        f"{_ENGINE}/spark/repeats.py",
        "self._now - batch <= REMEMBERED_BATCHES",
        "self._now - batch <= REMEMBERED_BATCHES + 1",
        "P1",
        f"{_HEARTBEATS}::test_who_is_gone_comes_back_without_bytes_for_as_long_as_the_shard_remembers",
    ),
    Mutant(
        "what was sent in another query counts as sent",
        f"{_ENGINE}/spark/repeats.py",
        "            stamps[:] = NEVER_PACKED\n",
        "",
        "P1",
        f"{_HEARTBEATS}::test_another_query_and_another_worker_send_all_bytes",
    ),
    Mutant(
        "requests that are no heartbeats come without their bytes",
        f"{_ENGINE}/spark/decoder.py",
        " & (self._table.marks[distinct] != 0)",
        "",
        "P1",
        f"{_HEARTBEATS}::test_only_heartbeats_come_without_bytes",
    ),
    Mutant(
        "what a row has lost is not kept",
        f"{_ENGINE}/shard/group_runner.py",
        "            self._heartbeats.keep_lost(one.said, one.kept_fingerprints())\n",
        "            pass\n",
        "P1",
        f"{_HEARTBEATS}::test_who_is_gone_comes_back_without_bytes_for_as_long_as_the_shard_remembers",
    ),
    Mutant(
        "a heartbeat that no rule accepts is not kept",
        f"{_ENGINE}/shard/group_runner.py",
        "        self._keep_unknown(log, route)\n",
        "",
        "P6",
        f"{_HEARTBEATS}::test_refused_heartbeats_are_refused_again_without_bytes",
    ),
    Mutant(
        "records wait without their bytes",
        f"{_ENGINE}/shard/shard.py",
        "        self._waiting = [self._whole(pack) for pack in self._waiting]\n",
        "",
        "P1",
        f"{_HEARTBEATS}::test_records_that_wait_have_all_their_bytes",
    ),
    Mutant(
        "a row keeps what another heartbeat said",
        f"{_ENGINE}/shard/rules_path.py",
        "    event = loaded.heard.get(fingerprint)\n",
        "    event = next(iter(loaded.heard.values()), None)\n",
        "P1",
        f"{_HEARTBEATS}::test_each_row_says_what_its_own_heartbeat_says",
    ),
    Mutant(
        "packs are taken in the order in which they come",
        f"{_ENGINE}/shard/log.py",
        "        ordered = sorted(packs, key=lambda pack: (pack.partition, int(pack.offset[0])))\n",
        "        ordered = list(packs)\n",
        "P3",
        f"{_HISTORY}[order of packs]",
    ),
    Mutant(
        "partitions of a batch are not told apart",
        f"{_ENGINE}/spark/packer.py",
        "    cuts = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]\n",
        "    cuts = [0, len(partitions)]\n",
        "P6",
        f"{_HISTORY}[seams of partitions]",
    ),
    Mutant(
        "a group in two partitions is taken partition by partition",
        f"{_ENGINE}/shard/log.py",
        "np.lexsort((self.offset[records], partitions, self.append_ms[records]))",
        "np.lexsort((self.offset[records], partitions))",
        "P1",
        "tests/shard/test_shard_order.py::test_a_group_in_two_partitions_is_ordered_by_append_time_and_named",
    ),
    Mutant(
        "rejects are dropped",
        f"{_ENGINE}/spark/state_function.py",
        "    records += (reject_row(reject)[:_RECORD_COLUMNS] for reject in rejects)\n",
        "",
        "P6",
        f"{_STATE_FUNCTION}::test_p6_a_full_shard_refuses_by_name",
    ),
    # -- the rules
    Mutant(
        "a change in an unfinished rebalance is taken for written down",
        f"{_ENGINE}/coordinator/classic_update.py",
        "    keep_recorded(ctx.group, member)\n",
        "",
        "P1",
        "tests/coordinator/test_loading.py::test_what_a_member_asked_in_an_unfinished_rebalance_is_forgotten",
    ),
    Mutant(
        "a timer fires after its deadline, not at it",
        f"{_ENGINE}/coordinator/timers.py",
        "        if deadline > clock_ms:\n",
        "        if deadline >= clock_ms:\n",
        "P1",
        "tests/coordinator/test_session_timer.py::test_heartbeat_at_exactly_its_deadline_is_late",
    ),
    Mutant(
        "of equal deadlines the group's comes first, whenever it was armed",
        f"{_ENGINE}/coordinator/timers.py",
        "return deadline, deadline - member.timer_ms, int(",
        "return deadline, deadline, int(",
        "P1",
        f"{_ANSWERED}::test_ties_are_kafkas[1a]",
    ),
    Mutant(
        "members that were armed together end in the order in which they joined",
        f"{_ENGINE}/coordinator/timers.py",
        "elif bucket == _UNPLACED and self._ties(rank):",
        "elif bucket == _UNPLACED and not rank:",
        "P4",
        f"{_ANSWERED}::test_ties_are_kafkas[1c]",
    ),
    Mutant(
        "the audit has a phase end before the members that were armed with it",
        f"{_ENGINE}/audit/rules/ties.py",
        "    started = deadline - member.timer_ms\n",
        "    started = deadline\n",
        "P1",
        "tests/audit/test_audit_ties.py::test_ties_are_derived_as_kafka_decides_them[1a]",
    ),
    Mutant(
        "a join that is logged after what it explains is not looked for",
        f"{_ENGINE}/replay/evidence.py",
        "return (first, first.evidence.t_ms) if late is None else late",
        "return first, first.evidence.t_ms",
        "P1",
        f"{_ANSWERED}::test_sync_proves_the_join_phase_over_before_its_last_join_is_logged",
    ),
    Mutant(
        "a timer acts when it is noticed, not at its deadline",
        f"{_ENGINE}/coordinator/machine.py",
        "            ctx.now_ms = group.last_event_ms = max(deadline_ms, group.last_event_ms)\n",
        "            ctx.now_ms = group.last_event_ms = max(clock_ms, group.last_event_ms)\n",
        "P3",
        f"{_HISTORY}[true deadline]",
    ),
    Mutant(
        "effective time goes back with the append time",
        f"{_ENGINE}/coordinator/machine.py",
        "            now_ms = group.last_event_ms\n",
        "",
        "P4",
        "tests/coordinator/test_session_timer.py::test_p4_time_never_goes_back_within_a_group",
    ),
    Mutant(
        "the fence by generation is dropped",
        f"{_ENGINE}/coordinator/classic_heartbeat.py",
        "event.generation_id not in (UNCHECKED_GENERATION, group.generation)",
        "event.generation_id < UNCHECKED_GENERATION",
        "P1",
        "tests/coordinator/test_upstream_sessions.py::test_sessions_as_upstream",
    ),
    Mutant(
        "a member that waits for the others is expired",
        f"{_ENGINE}/coordinator/classic_expiry.py",
        "    elif member.is_new or not (member.awaiting_join or member.awaiting_sync):\n",
        "    else:\n",
        "P1",
        "tests/coordinator/test_session_timer.py::test_expiry_of_a_member_that_waits_is_ignored_and_not_re_armed",
    ),
    Mutant(
        "the silence of a worker makes no new generation",
        f"{_ENGINE}/coordinator/presence.py",
        "    group = ctx.group\n    group.generation += 1\n    group.rebalance_started_ms = ctx.now_ms\n    ctx.say(\n",
        "    group = ctx.group\n    group.rebalance_started_ms = ctx.now_ms\n    ctx.say(\n",
        "P4",
        "tests/coordinator/test_group_kinds.py::test_silence_of_a_worker_is_its_departure",
    ),
    Mutant(
        "a rebalance comes before the expiry that causes it",
        f"{_ENGINE}/coordinator/presence.py",
        "    say_expired(ctx, member)\n    _depart(",
        '    _depart(ctx, "", Cause.MEMBER_EXPIRED, ())\n    say_expired(ctx, member)\n    return\n    _depart(',
        "P4",
        f"{_PATHS}::test_p4_a_groups_expiry_comes_before_its_rebalance",
    ),
)
