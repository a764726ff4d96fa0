"""Kafka's word and the engine's on the same groups: the logs of all brokers beside the topics of a job."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

import msgspec

from heartwheel.front.demo.beside import Agreement, Beside
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scan import Scanned
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow
from support.job import Job


class BothSides:
    """Read what both sides have decided of some groups.

    Args:
        brokers: all that may coordinate them.
        job: the engine.
        groups: whose removals count.
        since_ms: removals before that time do not count, epoch ms: the engine may not have known the members yet.
    """

    def __init__(self, brokers: Sequence[EmbeddedKafka], job: Job, groups: Iterable[str], *, since_ms: int = 0) -> None:
        self._logs = [str(broker.log_file) for broker in brokers]
        self._job, self._groups, self._since_ms = job, frozenset(groups), since_ms

    def removed_by_kafka(self) -> set[str]:
        """Name the members whom a coordinator has thrown out, or who left."""
        return {pair.either.member_id for pair in self._read().pairs if pair.there is not None}

    def removed_by_engine(self) -> set[str]:
        """Name the members whom the engine has thrown out, or who left."""
        return {pair.either.member_id for pair in self._read().pairs if pair.here is not None}

    def removed_by_both(self) -> set[str]:
        """Name the members of whom both say so."""
        return {pair.either.member_id for pair in self._read().pairs if pair.apart_ms is not None}

    def agreement(self) -> Agreement:
        """Hold both sides against each other."""
        return self._read().agreement()

    def relayed_ms(self) -> int:
        """Tell up to when the job knows everything of every feed, epoch ms; -1 before it does."""
        newest = {row["shard"]: row["feeds"] for row in self._job.topics.rows("status")}
        return min((passed_ms for feeds in newest.values() for passed_ms in feeds.values()), default=-1)

    def _read(self) -> Beside:
        beside = Beside(self._groups)
        for event in explain_logs(self._logs, Scanned(), stdin=io.BytesIO()):
            if event.time_ms >= self._since_ms:
                beside.add_event(event)
        topics = self._job.topics
        for record in topics.read("expirations"):
            expiration = msgspec.json.decode(record.value or b"", type=ExpirationRow)
            if expiration.out_ms >= self._since_ms:
                beside.add_expiration(expiration, record.append_ms)
        for record in topics.read("triggers"):
            trigger = msgspec.json.decode(record.value or b"", type=TriggerRow)
            if trigger.time_ms >= self._since_ms:
                beside.add_trigger(trigger, record.append_ms)
        return beside
