"""The lines of logs that events name as their evidence."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from heartwheel.base.errors import HeartwheelError
from heartwheel.sources.explain.opened_log import BLOCK_BYTES, OpenedLog, open_log

READ_BYTES_MAX: Final = 2 << 30
"""Most bytes of a log that are read to find lines: a compressed file may be larger than any disk."""

_KEPT_BYTES: Final = 4_096


def lines_of(name: str, numbers: Collection[int]) -> dict[int, str]:
    """Read lines of a log, each cut to its first 4 KiB.

    Args:
        name: of the file, which may be gzipped.
        numbers: of the lines, from 1.

    Returns:
        The lines by their numbers; without those that the file does not have any more.
    """
    try:
        log = open_log(name)
    except HeartwheelError:
        return {}
    try:
        return _found(log, sorted(numbers))
    except HeartwheelError:  # a compressed file that is damaged
        return {}
    finally:
        log.close()


def _found(log: OpenedLog, wanted: list[int]) -> dict[int, str]:
    found: dict[int, bytes] = {}
    number, size = 1, 0
    while wanted and size < READ_BYTES_MAX and (block := log.read(BLOCK_BYTES)):
        size += len(block)
        ends = block.count(b"\n")
        if number + ends >= wanted[0]:
            for offset, part in enumerate(block.split(b"\n")):
                if number + offset in wanted:
                    before = found.get(number + offset, b"")
                    found[number + offset] = (before + part[: _KEPT_BYTES - len(before)])[:_KEPT_BYTES]
        number += ends
        wanted = [each for each in wanted if each >= number]
    return {each: line.decode("utf-8", "replace").rstrip("\r") for each, line in found.items()}
