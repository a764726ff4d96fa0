"""Messages that a client has broken into several lines.

Kafka logs the ids and reasons of its clients as they are. One with a line break ends the line, and what the client has
written behind the break stands at the begin of the next one, where it may look like a message about any other group.

A message that does not end on its line goes on until the coordinator's logger is named behind it, if this log names
it, and until its sentence is complete. All that is before is the client's. A client that writes the end of the
sentence, the logger and the next head of a line, too, cannot be told from the broker: only a layout that encodes line
breaks prevents that.
"""

from __future__ import annotations

from typing import Final

from heartwheel.explain.layouts import has_logger
from heartwheel.explain.texts import end_of_sentence

WINDOW_BYTES: Final = 192 << 10
"""How far a message is followed behind its line, bytes: Kafka takes ids of 32 KiB, and a line has up to five."""

_LINES_MAX: Final = 4_096
_LOGGER_BYTES: Final = 600


def end_by_logger(window: bytes) -> int:
    """Return the end of the first line that names the coordinator's logger; 0 if none does."""
    at = 0
    for _ in range(_LINES_MAX):
        end = window.find(b"\n", at)
        end = len(window) if end < 0 else end
        if has_logger(window[max(at, end - _LOGGER_BYTES) : end].decode("utf-8", "replace")):
            return end
        if end == len(window):
            return 0
        at = end + 1
    return 0


def end_by_sentence(text: str, window: bytes, needle: bytes) -> int:
    """Return the end of the line that completes a sentence; 0 if none does.

    A line with the coordinator's prefix completes none: a sentence that is not known looks as if it went on there.

    Args:
        text: the message as far as it is on its line.
        window: what is behind that line.
        needle: the coordinator's prefix.
    """
    whole = window.decode("latin-1")  # a character a byte, so that places stay those of the bytes
    found = len(whole[: max(0, end_of_sentence(f"{text}\n{whole}") - len(text) - 1)].rstrip())
    if not found:
        return 0
    begin = window.rfind(b"\n", 0, found) + 1
    end = window.find(b"\n", found)
    end = len(window) if end < 0 else end
    return 0 if needle in window[begin:end] else end
