"""Look at the topic that a job reads, at its start and about once a minute: whether it is still the one it was.

The topic's id tells whether it was deleted and made again under its name; offsets of a checkpoint mean nothing then.
The first start on a checkpoint writes the id down beside it. Settings that make verdicts wrong, or heartbeats vanish,
may be changed at any time; what is wrong stands on the job's row, and the page says it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Self

import msgspec
from pyspark.sql import SparkSession

from heartwheel.base.worker import Worker
from heartwheel.engine.runtime.driver.checkpoint import CheckpointError
from heartwheel.engine.runtime.driver.checkpoint_store import CheckpointStore, open_store
from heartwheel.engine.runtime.driver.planned_batch import OFFSETS
from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
from heartwheel.kafka.ends import find_untimed
from heartwheel.kafka.topic_specs import CLEANUP_POLICY, TIMESTAMP_TYPE
from heartwheel.kafka.topics import TopicState, describe_topics
from heartwheel.settings import Settings
from heartwheel.wire.job import TopicProblem

TOPIC: Final = "heartwheel-topic.json"
"""The file of a checkpoint that has the id of the topic that it reads."""

LOOK_S: Final = 60.0
"""From one look at the topic to the next, seconds."""

RETENTION_MS_MIN: Final = 3_600_000
"""Heartbeats that are kept for less than that are soon lost to a job that is down, ms."""

_CONNECT_TIMEOUT_MS: Final = 5_000

_log = logging.getLogger(__name__)


class _Known(msgspec.Struct, frozen=True):
    id: str


class TopicGuard:
    """A check of a job's topic against its checkpoint and against the settings it must have.

    Args:
        settings: the checked configuration, with the checkpoint of the job.
        on_recreated: called when the topic turns out to be another one while the job runs.
        describe: asks what the topic is like; `None` if it does not exist.
        look_s: from one look to the next, seconds.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        *,
        on_recreated: Callable[[CheckpointError], None],
        describe: Callable[[], TopicState | None] | None = None,
        look_s: float = LOOK_S,
    ) -> None:
        self._settings = settings
        self._topic = topic
        self._on_recreated = on_recreated
        self._describe = describe or self._ask
        self._look_s = look_s
        self._known = ""
        self._problems: tuple[TopicProblem, ...] = ()
        self._worker = Worker(self._run, "topic-guard", close_s=2)

    def problems(self) -> tuple[TopicProblem, ...]:
        """Return which of the topic's settings were wrong when it was last looked at."""
        return self._problems

    def check(self, spark: SparkSession | None) -> None:
        """Compare the topic with the one that the checkpoint has read, and write it down on a new checkpoint.

        Args:
            spark: a session, without which only a checkpoint that is a folder is looked at.

        Raises:
            CheckpointError: it is another topic, or a new checkpoint would begin with records whose time is unknown.
        """
        location = self._settings.checkpoint.location
        store = open_store(location, spark)
        if store is None:
            return
        try:
            state = self._describe()
            self._check(store, state)
        except (KafkaUnreachableError, KafkaRefusedError) as error:
            _log.warning("the topic %s was not looked at: %s", self._topic, error)
        except (OSError, msgspec.MsgspecError) as error:
            raise CheckpointError(
                f"checkpoint {location}: the id of its topic cannot be read or written down: {error}",
                hint="choose a place this user may write to, with space left",
            ) from None

    def __enter__(self) -> Self:
        self._worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.stop()

    def _check(self, store: CheckpointStore, state: TopicState | None) -> None:
        if state is None:
            return
        data = store.read(TOPIC)
        self._known = "" if data is None else msgspec.json.decode(data, type=_Known).id
        self._require_same(state)
        if store.highest(OFFSETS) is None and self._settings.kafka.starting_offsets == "earliest":
            self._require_append_times()
        if not self._known and state.id:
            store.write(TOPIC, msgspec.json.encode(_Known(state.id)))
            self._known = state.id

    def _require_same(self, state: TopicState) -> None:
        if not self._known or state.id in {"", self._known}:
            return
        raise CheckpointError(
            f"topic {self._topic} was deleted and made again: its id is {state.id}, and checkpoint "
            f"{self._settings.checkpoint.location} has read {self._known}",
            hint="start on a new checkpoint.location: the offsets of the old one mean nothing in the new topic",
        )

    def _require_append_times(self) -> None:
        kafka = self._settings.kafka
        begin = find_untimed(kafka.bootstrap_servers, self._topic, only_begin=True, properties=kafka.client).begin
        if begin:
            names = ", ".join(map(str, begin[:10]))
            raise CheckpointError(
                f"topic {self._topic} begins with records that carry their producers' times (CreateTime), in partition "
                f"{names}: when they were written is not known",
                hint="start at the end of the topic: --set kafka.starting_offsets=latest; "
                "docs/troubleshooting.md#wrong-timestamp-type",
            )

    def _run(self) -> None:
        while not self._worker.wait(self._look_s):
            try:
                state = self._describe()
            except (KafkaUnreachableError, KafkaRefusedError):
                continue  # whether Kafka answers is said elsewhere
            if state is None:
                continue
            self._problems = problems_of(state)
            try:
                self._require_same(state)
            except CheckpointError as error:
                self._on_recreated(error)
                return

    def _ask(self) -> TopicState | None:
        kafka = self._settings.kafka
        found = describe_topics(
            kafka.bootstrap_servers,
            [self._topic],
            properties=kafka.client,
            connect_timeout_ms=_CONNECT_TIMEOUT_MS,
        )
        return found.get(self._topic)


def problems_of(state: TopicState) -> tuple[TopicProblem, ...]:
    """Return which settings of a topic that is read make verdicts wrong or heartbeats vanish.

    Args:
        state: what the cluster says of it.
    """
    found = []
    kind, policy = state.settings.get(TIMESTAMP_TYPE, ""), state.settings.get(CLEANUP_POLICY, "")
    if kind not in {"", "LogAppendTime"}:
        found.append(TopicProblem(state.name, TIMESTAMP_TYPE, kind, "LogAppendTime"))
    if "compact" in policy:
        found.append(TopicProblem(state.name, CLEANUP_POLICY, policy, "delete"))
    retention = state.settings.get("retention.ms", "-1")
    if retention.isdecimal() and int(retention) < RETENTION_MS_MIN:
        found.append(TopicProblem(state.name, "retention.ms", retention, f"{RETENTION_MS_MIN} or more"))
    return tuple(found)
