"""Messages that a client has broken into several lines.

Kafka logs the ids and reasons of its clients unchanged. One with a line break ends the line, and what the client has
written after the break is at the start of the next one, where it may look like a message about any other group.

A message that does not end on its line continues until the coordinator's logger is named after it, if this log names
it, and until its sentence is complete. Everything before that is the client's. A client that also writes the end of the
sentence, the logger and the head of the next line cannot be told from the broker: only a layout that encodes line
breaks prevents that.
"""

from __future__ import annotations

import re
from typing import Final

from heartwheel.sources.explain.layouts import has_logger
from heartwheel.sources.explain.texts import end_of_sentence

WINDOW_BYTES: Final = 192 << 10
"""How far a message is followed beyond its line, bytes: Kafka accepts ids of 32 KiB, and a line has up to five."""

STRANGER_BYTES: Final = 64 << 10
"""How far the text of a client that has not logged in is followed beyond its line, bytes: Kafka accepts 32 KiB of it,
and a container's runtime adds to each line."""

_STRANGER: Final = b"SASL mechanism"
_QUOTED: Final = re.compile(rb"Unsupported SASL mechanism |SASL mechanism '")
_SELECTOR: Final = b"Selector)"
_LINES_MAX: Final = 4_096
_LOGGER_BYTES: Final = 600


def end_of_line(block: bytes, at: int) -> int:
    """Return where the line that contains a position ends: at its line break, or at the end of the block."""
    end = block.find(b"\n", at)
    return len(block) if end < 0 else end


def end_by_logger(window: bytes) -> int:
    """Return the end of the first line that names the coordinator's logger; 0 if none does."""
    at = 0
    for _ in range(_LINES_MAX):
        end = end_of_line(window, at)
        if has_logger(window[max(at, end - _LOGGER_BYTES) : end].decode("utf-8", "replace")):
            return end
        if end == len(window):
            return 0
        at = end + 1
    return 0


def end_by_sentence(text: str, window: bytes, needle: bytes) -> int:
    """Return the end of the line that completes a sentence; 0 if none does.

    A line with the coordinator's prefix completes none: an unknown sentence would seem to continue there.

    Args:
        text: the part of the message on its own line.
        window: what follows that line.
        needle: the coordinator's prefix.
    """
    whole = window.decode("latin-1")  # one character per byte, so that positions stay those of the bytes
    found = len(whole[: max(0, end_of_sentence(f"{text}\n{whole}") - len(text) - 1)].rstrip())
    if not found:
        return 0
    begin = window.rfind(b"\n", 0, found) + 1
    end = end_of_line(window, found)
    return 0 if needle in window[begin:end] else end


def quotes_a_stranger(line: bytes) -> bool:
    """Return whether a line quotes a client that has not logged in: the SASL mechanism that it asks for is free text.

    Kafka logs it unchanged at INFO (`SaslServerAuthenticator`, `Selector`), and the request log has no line of it. A
    client may end the first line and begin the last one as the broker does. So every such line may be broken.
    """
    return next_stranger(line, 0) >= 0


def next_stranger(block: bytes, at: int) -> int:
    """Return where the next line that quotes a client that has not logged in begins; -1 if there is none."""
    while (at := block.find(_STRANGER, at)) >= 0:
        if _QUOTED.match(block, at) or _QUOTED.match(block, max(0, at - len(b"Unsupported "))):
            return at
        at += 1
    return -1


def end_of_stranger(block: bytes, begin: int, at: int) -> int:
    """Return the end of the lines that may be a stranger's: the last line that may be the end of the message.

    The message ends with what follows the mechanism, a bracket and the logger. Lines between two messages of the broker
    that look like this may be the broker's or the client's; nothing shows which.

    Args:
        begin: where the line begins that quotes the client.
        at: where it ends.
    """
    mark = _SELECTOR if _SELECTOR in block[begin:at] else b")"
    last = block.rfind(mark, at, at + STRANGER_BYTES)
    return end_of_line(block, last) if last >= 0 else at
