"""Get a job past records that end it, and past nothing else.

`heartwheel skip` writes a request into the checkpoint; the job carries it out at its next start, before its query runs,
so that nobody else writes Spark's logs meanwhile. Let the planned and unfinished batch N read a partition from s up to
e, and first to last be the offsets to pass over, with s <= first < e. Then

1. `offsets/N` is written anew with first as the end of that partition, and batch N is run alone, under its number and
   timestamp: it reads what it was to read of all other partitions, and s up to first of this one;
2. once `commits/N` is there, a reject of each offset is written, under the id that a record rejected there has;
3. `offsets/N` is written anew with last + 1 as the end. Spark begins batch N+1 where `offsets/N` ends, and looks at
   nothing else of a finished batch (`MicroBatchExecution.populateStartOffsets`).

A record may also end the job from behind the planned end, as Kafka's consumer unpacks what follows in the same fetch:
then first >= e, and step 1 lengthens batch N up to first. As it was never finished, it may as well be planned so.

So each offset before first is read by batch N or earlier, each behind last by batch N+1 or later, and none twice. Batch
N has made nothing before: it needs all its records before a shard is called, and one of them ended it. The rest of it,
from last + 1 to e, is read later than planned, so batch N runs with its clock held, as all that is read in catching up.

A crash in between does no harm: what `offsets/N` and `commits/N` hold says what is still to be done, and a reject that
is written again has the same id.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.runtime.driver.checkpoint_store import CheckpointStore
from heartwheel.engine.runtime.driver.planned_batch import (
    READ_AHEAD_MAX,
    PlannedBatch,
    is_finished,
    plan_name,
    with_end,
)
from heartwheel.wire.rejects import Reject, make_reject

SKIP: Final = "heartwheel-skip.json"
SKIPPED: Final = "skipped"
"""The cause of the reject of an offset that was passed over."""

OFFSETS_MAX: Final = 10_000
"""Most offsets that one skip passes over: each becomes a reject."""

_log = logging.getLogger(__name__)


class SkipError(HeartwheelError):
    """Records cannot be passed over."""


class Skip(msgspec.Struct, kw_only=True, frozen=True):
    """The offsets of one partition to pass over.

    Args:
        append_ms: the append time of the first record, epoch ms.
        reason: why, in the words of whoever asked for it.
    """

    partition: int
    first: int
    last: int
    append_ms: int
    reason: str


class SkipRequest(msgspec.Struct, kw_only=True, frozen=True):
    """What is to be passed over of a planned batch.

    Args:
        plan: the file that planned it, as Spark wrote it.
        skips: the offsets, at most one stretch a partition.
    """

    topic: str
    batch: int
    plan: str
    skips: tuple[Skip, ...]

    def shortened(self) -> bytes:
        """Return the plan that ends where the offsets to pass over begin."""
        plan = self.plan.encode()
        for skip in self.skips:
            plan = with_end(plan, self.topic, skip.partition, skip.first)
        return plan

    def passed(self) -> bytes:
        """Return the plan that ends after them, so that the next batch begins there."""
        plan = self.plan.encode()
        for skip in self.skips:
            plan = with_end(plan, self.topic, skip.partition, skip.last + 1)
        return plan

    def rejects(self) -> Iterator[Reject]:
        """Return the reject of each offset, without key and value, as they were not read."""
        for skip in self.skips:
            for offset in range(skip.first, skip.last + 1):
                yield make_reject(
                    topic=self.topic,
                    partition=skip.partition,
                    offset=offset,
                    append_ms=skip.append_ms,
                    cause=SKIPPED,
                    detail=f"passed over by heartwheel skip, unread: {skip.reason}",
                    key=None,
                    value=None,
                )


def ask(store: CheckpointStore, batch: PlannedBatch | None, skip: Skip) -> SkipRequest:
    """Ask the job to pass over offsets of the batch that it cannot finish.

    Raises:
        SkipError: there is no such batch, or the offsets are not its.
        OSError: the checkpoint cannot be read or written.
    """
    pending = read_request(store)
    if batch is None:
        raise SkipError(
            "every planned batch is finished, so no record has ended the job",
            hint="start the job: it says what ends it at the third start on the same batch",
        )
    where = f"partition {skip.partition} offsets {skip.first} to {skip.last}"
    begin, end = batch.begin(skip.partition), batch.ends.get(skip.partition, 0)
    if not begin <= skip.first < end + READ_AHEAD_MAX:
        raise SkipError(f"{where} are not in what is planned and not finished: {batch}")
    if not skip.first <= skip.last < skip.first + OFFSETS_MAX:
        raise SkipError(f"{where} are not between 1 and {OFFSETS_MAX:,} offsets")
    plan, skips = batch.text, [skip]
    if pending is not None and pending.batch == batch.number:
        if any(other.partition == skip.partition for other in pending.skips):
            raise SkipError(f"a skip of partition {skip.partition} is asked for already", hint="start the job first")
        plan, skips = pending.plan.encode(), [*pending.skips, skip]
    request = SkipRequest(topic=batch.topic, batch=batch.number, plan=plan.decode(), skips=tuple(skips))
    store.replace(SKIP, msgspec.json.format(msgspec.json.encode(request)) + b"\n")
    return request


def read_request(store: CheckpointStore) -> SkipRequest | None:
    """Read what was asked for and is not done.

    Raises:
        SkipError: it cannot be decoded.
        OSError: the checkpoint cannot be read.
    """
    data = store.read(SKIP)
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=SkipRequest)
    except msgspec.MsgspecError as error:
        raise SkipError(
            f"{SKIP} in the checkpoint cannot be read: {error}", hint="delete it, and run heartwheel skip again"
        ) from None


def prepare(store: CheckpointStore) -> SkipRequest | None:
    """Shorten the planned batch that a request is about.

    Returns:
        The request, if there is something to do.

    Raises:
        SkipError: the request cannot be decoded.
        OSError: the checkpoint cannot be read or written.
    """
    request = read_request(store)
    if request is None:
        return None
    plan = store.read(plan_name(request.batch))
    if not is_finished(store, request.batch):
        if plan != request.shortened():
            store.replace(plan_name(request.batch), request.shortened())
        return request
    if plan == request.shortened():
        return request
    if plan != request.passed():
        _log.warning("batch %d was finished before anything was skipped: nothing is", request.batch)
    store.delete(SKIP)
    return None


def finish(store: CheckpointStore, request: SkipRequest) -> None:
    """Make the next batch begin after what was passed over, once batch and rejects are written.

    Raises:
        OSError: the checkpoint cannot be written.
    """
    store.replace(plan_name(request.batch), request.passed())
    store.delete(SKIP)
    for skip in request.skips:
        _log.warning(
            "passed over partition %d offsets %d to %d unread: %s", skip.partition, skip.first, skip.last, skip.reason
        )


@contextlib.contextmanager
def read_singly(job: Any) -> Iterator[None]:
    """Make a job that is started in the block read one record at a time.

    Kafka's consumer decodes what it returns from a poll, up to `READ_AHEAD_MAX` records: those behind the end of the
    batch would be among them. It costs about a millisecond a record, so it is done only where some are read before that
    end.
    """
    config = job.config
    options = {**config.kafka_options, "kafka.max.poll.records": "1"}
    job.config = dataclasses.replace(config, kafka_options=options)
    try:
        yield
    finally:
        job.config = config
