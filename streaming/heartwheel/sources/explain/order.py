"""Facts of several logs in the order of time, however many there are: sorted runs go to a temporary file."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

import msgspec

from heartwheel.sources.explain.facts import Fact

FACTS_MAX: Final = 200_000
"""Most facts that are in memory at once while they are sorted."""

_BATCH: Final = 500
_LENGTH_BYTES: Final = 4


def in_order(facts: Iterable[Fact], *, facts_max: int = FACTS_MAX) -> Iterator[Fact]:
    """Return facts sorted by time, then by their position in their file, without those that were given twice.

    Args:
        facts: in any order.
    """
    runs: list[BinaryIO] = []
    buffered: list[Fact] = []
    try:
        for fact in facts:
            buffered.append(fact)
            if len(buffered) >= facts_max:
                buffered.sort(key=_key)
                runs.append(_written(buffered))
                buffered = []
        buffered.sort(key=_key)
        merged = heapq.merge(*(_read(run) for run in runs), buffered, key=_key) if runs else iter(buffered)
        yield from _once(merged)
    finally:
        for run in runs:
            run.close()


def merged(parts: Iterable[Iterable[Fact]]) -> Iterator[Fact]:
    """Return what `in_order` does of parts that are in this order already; one fact of each is in memory at a time."""
    return _once(heapq.merge(*parts, key=_key))


def _key(fact: Fact) -> tuple[int, int, int]:
    return fact.order_ms, fact.file, fact.line


def _once(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Leave out facts that another line of the same time repeats, as in overlapping exports."""
    now_ms = -1
    seen: list[Fact] = []
    for fact in facts:
        if fact.order_ms != now_ms:
            now_ms, seen = fact.order_ms, []
        elif any(fact.same_as(other) for other in seen[-64:]):
            continue
        seen.append(fact)
        yield fact


def _written(facts: list[Fact]) -> BinaryIO:
    file = tempfile.TemporaryFile(prefix="heartwheel-explain-")  # noqa: SIM115 - closed by `in_order`
    encoder = msgspec.msgpack.Encoder()
    for start in range(0, len(facts), _BATCH):
        batch = encoder.encode(facts[start : start + _BATCH])
        file.write(len(batch).to_bytes(_LENGTH_BYTES, "big"))
        file.write(batch)
    file.seek(0)
    return file


def _read(file: BinaryIO) -> Iterator[Fact]:
    decoder = msgspec.msgpack.Decoder(list[Fact])
    while length := file.read(_LENGTH_BYTES):
        yield from decoder.decode(file.read(int.from_bytes(length, "big")))
