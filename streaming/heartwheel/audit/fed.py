"""Records of feeds in the heartbeat topic: events that somebody passes on, and the marks between them.

Read here by a decoder of the audit's own. Their times are those of the feed, so groups that a feed passes on are known
by name alone here, and not judged.
"""

from __future__ import annotations

from typing import Final

import msgspec

MARK: Final = "mark"
"""The type of a mark."""

UNTRUSTED: Final = "untrusted_feed"
"""The cause that the job rejects an event with whose feed it does not believe."""


class Fed(msgspec.Struct, frozen=True):
    """What a record of a feed says.

    Args:
        feed: the feed's name.
        type: of the record; empty for a heartbeat.
        group_id: of an event.
    """

    feed: str
    type: str = ""
    group_id: str = ""


_decode: Final = msgspec.json.Decoder(Fed).decode


def read_fed(value: bytes) -> Fed | None:
    """Read a value as a record of a feed; `None` if it names none."""
    if b'"feed"' not in value:
        return None
    try:
        return _decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
