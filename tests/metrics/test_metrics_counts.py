"""What Prometheus reads is what the topics say: each verdict once, no member's name, and few series."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartwheel.readers.canary.judge import CanaryOutcome, JudgedOutcome
from heartwheel.readers.canary.members import CanaryMembers
from heartwheel.readers.canary.plan import plan_of
from heartwheel.readers.metrics import Metrics
from heartwheel.readers.metrics.groups import OTHER, GroupLabels
from heartwheel.settings import Settings
from heartwheel.wire.job import BatchFigures, Phase
from support.output_rows import T0, begun, expired, job, joined, status, topic_rows


def metrics(**sections: dict[str, Any]) -> Metrics:
    """Make the metrics of a process whose job has one shard."""
    return Metrics(Settings.model_validate({"engine": {"shards": 1}} | sections), since_ms=0)


def value(of: Metrics, name: str, **labels: str) -> float | None:
    """Look a sample up as Prometheus would find it; `None` if it is not there."""
    return of.registry.get_sample_value(name, labels)


def series(of: Metrics, name: str, label: str) -> dict[str, float]:
    """Look up all samples of a name, by the value of their one label."""
    samples = (sample for family in of.registry.collect() for sample in family.samples if sample.name == name)
    return {sample.labels[label]: sample.value for sample in samples}


def test_p3_a_verdict_counts_once() -> None:
    """P3: a batch that was repeated after a crash writes the same ids again, and nothing is counted twice."""
    of = metrics()
    rows = topic_rows(expired("orders", "a"), expired("orders", "b"), begun("orders"), joined("orders", "c"))
    of.apply(rows)
    of.apply(rows)
    assert value(of, "heartwheel_expirations_total", reason="session_timeout") == 2
    assert value(of, "heartwheel_group_expirations_total", group="orders") == 2
    assert value(of, "heartwheel_rebalances_total", cause="member_expired") == 1
    assert value(of, "heartwheel_group_rebalances_total", group="orders") == 1
    assert value(of, "heartwheel_rebalance_duration_seconds_count") == 1
    seconds = value(of, "heartwheel_group_rebalance_seconds_total", group="orders")
    assert seconds == value(of, "heartwheel_rebalance_duration_seconds_sum") != 0


def test_failures_are_counted_by_their_reason() -> None:
    """A worker that failed is counted apart from those that fell silent, and stands at zero before."""
    of = metrics()
    assert value(of, "heartwheel_expirations_total", reason="worker_failed") == 0
    of.apply(topic_rows(expired("orders", "a", reason="worker_failed", failure="exit code 3")))
    assert value(of, "heartwheel_expirations_total", reason="worker_failed") == 1


def test_what_was_before_the_start_is_not_counted() -> None:
    """A dashboard reads the last hour when it starts, which Prometheus must not take for the last second."""
    of = Metrics(Settings(), since_ms=T0 + 5_000)
    of.apply(topic_rows(expired("orders", "a", T0), begun("orders", at_ms=T0), expired("orders", "a", T0 + 5_000)))
    assert value(of, "heartwheel_expirations_total", reason="session_timeout") == 1
    assert value(of, "heartwheel_rebalances_total", cause="member_expired") == 0


def test_lateness_is_counted_to_the_append_of_the_expiration() -> None:
    """Lateness is from the deadline to the place in the log, in seconds, and the objective is a bound of a bucket."""
    of = metrics(engine={"shards": 1, "trigger_interval": "900ms"})
    of.apply(topic_rows(expired("g", "a", detected_ms=T0 + 2_025), expired("g", "b", detected_ms=T0 + 2_026)))
    assert value(of, "heartwheel_expiration_lateness_seconds_sum") == pytest.approx(4.051)
    assert value(of, "heartwheel_expiration_lateness_seconds_bucket", le="2.025") == 1


def test_what_may_happen_stands_at_zero_before_it_does() -> None:
    """To Prometheus a series that begins at one has not risen: causes, reasons and outcomes are there before."""
    of = metrics()
    assert value(of, "heartwheel_expirations_total", reason="sync_timeout") == 0
    assert value(of, "heartwheel_rebalances_total", cause="member_left") == 0
    assert value(of, "heartwheel_canary_probes_total", outcome="missed") == 0
    assert value(of, "heartwheel_canary_probes_total", outcome="false") == 0


def test_the_canary_is_no_member_of_anybody() -> None:
    """Expirations of the canary's own members are no news, and are not counted as verdicts."""
    of = metrics()
    of.apply(topic_rows(expired("heartwheel-canary-3", "canary-1"), begun("heartwheel-canary-3")))
    assert set(series(of, "heartwheel_expirations_total", "reason").values()) == {0}
    assert series(of, "heartwheel_group_rebalances_total", "group") == {}


def test_many_groups_share_a_label() -> None:
    """The first groups keep their labels for good, whatever comes later; no verdict is lost in the sum."""
    of = metrics(metrics={"groups_max": 2})
    for turn, group in enumerate(("a", "b", "c", "d", "a", "c")):
        of.apply(topic_rows(expired(group, "m1", T0 + turn), expired(group, "m2", T0 + turn)))
    assert series(of, "heartwheel_group_expirations_total", "group") == {"a": 4, "b": 2, OTHER: 6}


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=1)), st.integers(0, 4))
def test_labels_are_stable_and_few(groups: list[str], labels_max: int) -> None:
    """Whatever groups come in whatever order: a group has one label for ever, and there are few labels."""
    labels = GroupLabels(labels_max)
    given_out = [(group, labels[group]) for group in groups]
    assert len({label for _, label in given_out} - {OTHER}) <= labels_max
    assert len(set(given_out)) == len(set(groups))
    assert all(label in {group, OTHER} for group, label in given_out)


def test_no_member_and_no_host_is_told() -> None:
    """No label holds a member, an instance, a client or a host: there may be a million of them."""
    of = metrics()
    of.apply(topic_rows(expired("orders", "secret-member", client_id="secret-client"), status(), job()))
    assert b"secret" not in of.text()[0]
    assert b"10.0.0.7" not in of.text()[0]


def test_odd_group_names_are_told_as_they_are() -> None:
    """Quotes, line ends and letters of any script in a group's name break nothing."""
    of = metrics()
    of.apply(topic_rows(expired('a"b\\c\nd ✓ 漢', "m")))
    assert 'group="a\\"b\\\\c\\nd ✓ 漢"' in of.text()[0].decode()


def test_sums_wait_for_all_shards() -> None:
    """A total that grew as one shard after the other is read would look like a burst of heartbeats."""
    of = metrics(engine={"shards": 2})
    first = msgspec.structs.replace(status(0), totals={"records": 500, "rejected_not_json": 3})
    of.apply(topic_rows(first))
    assert value(of, "heartwheel_members", shard="0") == 9
    assert value(of, "heartwheel_heartbeats_total") is None
    second = msgspec.structs.replace(status(1), totals={"records": 11, "answer_UNKNOWN_MEMBER_ID": 2})
    of.apply(topic_rows(second))
    assert value(of, "heartwheel_heartbeats_total") == 511
    assert value(of, "heartwheel_rejects_total", cause="not_json") == 3
    assert value(of, "heartwheel_request_errors_total", error="UNKNOWN_MEMBER_ID") == 2
    assert value(of, "heartwheel_groups", state="Stable") == 6
    assert value(of, "heartwheel_groups", state="Empty") == 0


def test_a_clock_that_never_ran_is_not_told() -> None:
    """Before its first live trigger a shard has no clock, and 1970 is not one; that it is held is exported."""
    of = metrics()
    of.apply(topic_rows(msgspec.structs.replace(status(), clock_ms=-1, held=True)))
    assert value(of, "heartwheel_clock_timestamp_seconds", shard="0") is None
    assert value(of, "heartwheel_clock_held", shard="0") == 1


def test_the_job_stands_as_its_newest_row_says() -> None:
    """Phase, pace and last batch come from the newest row; each batch is in the histogram once, however often read."""
    of = metrics()
    of.take_job(job())
    of.take_job(job(T0, phase=Phase.RETRYING, faults=1))
    later = BatchFigures(
        batch_id=8,
        ended_ms=T0 + 900,
        duration_ms=2_400,
        read_ms=1,
        records=4,
        behind=7,
        expired=0,
        triggers=0,
        rejected=0,
    )
    of.take_job(job(T0 + 1_000, last_batch=later))
    assert value(of, "heartwheel_batch_duration_seconds_count") == 2
    assert value(of, "heartwheel_batch_duration_seconds_sum") == pytest.approx(2.74)
    assert value(of, "heartwheel_last_batch_timestamp_seconds") == (T0 + 900) / 1000
    assert value(of, "heartwheel_backlog_records") == 7
    assert value(of, "heartwheel_lateness_objective_seconds") == 2.3
    assert series(of, "heartwheel_job_phase", "phase") == {phase.value: phase is Phase.LIVE for phase in Phase}


def test_before_the_first_row_there_is_no_job() -> None:
    """A dashboard that has seen no job tells nothing of it, and no batch of the year 1970."""
    of = metrics()
    assert series(of, "heartwheel_job_phase", "phase") == {}
    of.take_job(job(last_batch=None))
    assert value(of, "heartwheel_last_batch_timestamp_seconds") is None
    assert value(of, "heartwheel_job_start_timestamp_seconds") == (T0 - 60_000) / 1000


def test_kafka_is_up_or_down_or_not_asked_yet() -> None:
    """Whether the brokers answer is exported once it is known."""
    of = metrics()
    assert value(of, "heartwheel_kafka_up") is None
    of.link(False)
    assert value(of, "heartwheel_kafka_up") == 0
    of.link(True)
    assert value(of, "heartwheel_kafka_up") == 1


def test_outcomes_of_the_canary_are_counted() -> None:
    """Every outcome counts once; only silences that ended in an expiration have a lateness."""
    of = metrics()
    members = CanaryMembers(plan_of(Settings()), member_id="c", missed_after_ms=1, objective_ms=1)
    of.canary.watch(lambda: members.figures(enabled=True))
    for judged in (
        JudgedOutcome(CanaryOutcome.IN_TIME, T0, 900),
        JudgedOutcome(CanaryOutcome.LATE, T0, 9_000),
        JudgedOutcome(CanaryOutcome.MISSED, T0),
        JudgedOutcome(CanaryOutcome.FALSE, T0, -4_000, "alive"),
        JudgedOutcome(CanaryOutcome.VOID, T0, None, "Kafka did not answer"),
    ):
        of.canary.on_judged(members.plan.probes[0], judged)
    assert series(of, "heartwheel_canary_probes_total", "outcome") == dict.fromkeys(CanaryOutcome, 1)
    assert value(of, "heartwheel_canary_lateness_seconds_sum") == pytest.approx(9.9)
    assert value(of, "heartwheel_canary_pending") == 0
