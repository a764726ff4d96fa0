"""How often the job was started on one and the same unfinished batch: what dies there twice will die there again.

A batch that ends the process comes back at every start, as Spark has planned it. So each start writes down, beside the
manifest, which plan it stands on. Another plan or another amount of memory begins the count anew.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import Final

import msgspec

from heartwheel.engine.runtime.driver.checkpoint_store import CheckpointStore
from heartwheel.engine.runtime.driver.planned_batch import PlannedBatch
from heartwheel.kafka.bounded import OversizedBatch

STARTS: Final = "heartwheel-starts.json"
ENOUGH: Final = 2
"""Starts on an unfinished batch after which it is looked into: with the run that planned it, it has ended as many."""

_NAMED_MAX: Final = 5


class Starts(msgspec.Struct, kw_only=True, frozen=True):
    """What is known of the starts on a planned batch.

    Args:
        plan: which plan, with which memory.
        starts: how many starts found it unfinished.
        out_of_memory: how many runs are known to have ended on it as the JVM had no memory left.
    """

    plan: str
    starts: int = 0
    out_of_memory: int = 0


def with_this_start(store: CheckpointStore, batch: PlannedBatch, memory_bytes: int) -> Starts:
    """Add this start to those on an unfinished batch, without writing it down.

    Raises:
        OSError: the checkpoint cannot be read.
    """
    known = _read(store, batch, memory_bytes)
    return msgspec.structs.replace(known, starts=known.starts + 1)


def write_starts(store: CheckpointStore, starts: Starts) -> None:
    """Write down the starts on an unfinished batch.

    Raises:
        OSError: the checkpoint cannot be written.
    """
    store.replace(STARTS, msgspec.json.encode(starts))


def count_out_of_memory(store: CheckpointStore, batch: PlannedBatch, memory_bytes: int) -> None:
    """Write down that a run ended on a batch as the JVM had no memory left.

    Raises:
        OSError: the checkpoint cannot be read or written.
    """
    known = _read(store, batch, memory_bytes)
    write_starts(store, msgspec.structs.replace(known, out_of_memory=known.out_of_memory + 1))


def words_on(batch: PlannedBatch, starts: Starts, oversized: list[OversizedBatch]) -> str:
    """Return in one sentence which batch ends the job, and what in it."""
    message = f"the job has ended {starts.starts} times on the same {batch}"
    if starts.out_of_memory >= ENOUGH:
        message += f", {starts.out_of_memory} times out of memory"
    if oversized:
        named = "; ".join(map(str, oversized[:_NAMED_MAX]))
        more = len(oversized) - _NAMED_MAX
        message += f". In it: {named}" + (f"; and {more} more" if more > 0 else "")
    return message


def command_to_skip(batch: PlannedBatch, oversized: OversizedBatch, *, flags: str = "") -> str:
    """Return the command that gets past a record batch."""
    first = max(oversized.first_offset, batch.begin(oversized.partition))
    return (
        f"heartwheel skip{flags} --partition {oversized.partition} --offset {first} --to {oversized.last_offset} "
        '--reason ".."'
    )


def _read(store: CheckpointStore, batch: PlannedBatch, memory_bytes: int) -> Starts:
    plan = f"{batch.number} {memory_bytes} {hashlib.sha256(batch.text).hexdigest()}"
    known = None
    # A file that is cut off, or of another release, is a count that begins anew.
    with contextlib.suppress(msgspec.MsgspecError):
        known = msgspec.json.decode(store.read(STARTS) or b"null", type=Starts | None)
    return known if known is not None and known.plan == plan else Starts(plan=plan)
