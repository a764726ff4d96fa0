"""What a history has from before the time of a picture: pictures of a stretch of time, made when they are asked for."""

from __future__ import annotations

from typing import Final

from heartwheel.readers.live.picture import Picture

LINES_READ_MAX: Final = 15_000
"""Most lines of a history that are read for one answer: about a second's work."""


def older_picture(
    picture: Picture, from_ms: int, to_ms: int, *, known_ms: int | None, group_id: str = ""
) -> Picture | None:
    """Return a picture of a time that begins before another one has all; `None` if it does not, or has no history.

    Args:
        from_ms: epoch ms.
        to_ms: the time after the last, epoch ms.
        known_ms: from when on the picture has all that is asked for, epoch ms; `None`: from the first on.
        group_id: the only group that is read, if it is named.

    Raises:
        LanesBusyError: another time is being read at the moment.
    """
    if picture.lanes is None:
        return None
    found: Picture | None = picture.lanes.older(
        from_ms, to_ms, known_from_ms=known_ms, lines_max=LINES_READ_MAX, group_id=group_id
    )
    return found


def older_until_ms(picture: Picture, known_ms: int | None, *, from_ms: int = 0) -> int | None:
    """Return up to when a history has more of a time than a picture, epoch ms; `None` if it has no more.

    Args:
        known_ms: from when on the picture has all that is asked for, epoch ms; `None`: from the first on.
        from_ms: the begin of the time, epoch ms.
    """
    has_older = picture.lanes is not None and picture.lanes.has_older
    return known_ms if has_older and known_ms is not None and from_ms < known_ms else None


def picture_with(picture: Picture, group_id: str, *, member_id: str = "", until_ms: int | None = None) -> Picture:
    """Return the picture that shows a group: the present one or, if that has nothing of it, one from the history.

    Args:
        member_id: a member that must have been out, if it is named.
        until_ms: the end of the time that is shown, epoch ms; `None`: the newest.

    Raises:
        LanesBusyError: another time is being read at the moment.
    """
    with picture.lock:
        entry = picture.groups.entries.get(group_id)
        is_shown = entry is not None and (not member_id or any(row.member_id == member_id for row in entry.expirations))
        known_ms = picture.known_from_ms
    if known_ms is None or (until_ms is None and is_shown):
        return picture
    to_ms = known_ms if until_ms is None else until_ms
    older = older_picture(picture, 0, to_ms, known_ms=known_ms, group_id=group_id)
    return picture if older is None else older
