"""The plan of a tap, its figures, and the check that its job trusts it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from heartwheel.settings import Settings, SettingsError
from heartwheel.settings.problems import SettingProblem
from heartwheel.sources.explain.local_zone import LocalZone


class TapPlan(msgspec.Struct, frozen=True):
    """What one tap reads, and its name.

    Args:
        broker_log: the broker's own log, if it is read as well.
        zone: the zone of times that name none in both logs; UTC if absent.
        from_begin: whether a new tap starts at the start of the request log; otherwise at its end.
    """

    feed: str
    request_log: Path
    positions: Path
    broker_log: Path | None = None
    zone: LocalZone | None = None
    from_begin: bool = False


class TapFigures(msgspec.Struct):
    """Counts of a tap since its start.

    Args:
        relayed: events that were written.
        skipped: events that were not written again, because they are in the topic already.
        unreadable: lines about groups that could not be read.
        too_large: requests that were not relayed, because the job would reject them: ids, protocols or all of it too
            long.
        failed: lines that could not be handled, by an error that is the tap's own.
        left_out: lines that were left out because a client may have written them where the request log shares its
            stream.
        distrusted: messages in the broker's own log that were left out because a client may have written them.
        refused: records that Kafka will never accept; they are not tried again.
        gaps: how often lines were missing.
        retries: how often a write to Kafka failed.
        passed_ms: the time of the newest mark, epoch ms; -1 before the first.
        held: groups that are held now.
    """

    lines: int = 0
    relayed: int = 0
    skipped: int = 0
    unreadable: int = 0
    too_large: int = 0
    failed: int = 0
    left_out: int = 0
    distrusted: int = 0
    refused: int = 0
    gaps: int = 0
    retries: int = 0
    passed_ms: int = -1
    held: int = 0


def require_trusted(settings: Settings, feed: str) -> None:
    """Check that a job with these settings would accept a feed.

    Raises:
        SettingsError: `engine.feeds` does not name it.
    """
    feeds = settings.engine.feeds
    if feed not in feeds.split(","):
        hint = f"--set engine.feeds={feed}, for the job and for the tap, or engine.feeds in a file that both read"
        words = f"does not name the feed {feed}, so the job would reject what it passes on"
        raise SettingsError([SettingProblem("engine.feeds", words, value=feeds, hint=hint)])
