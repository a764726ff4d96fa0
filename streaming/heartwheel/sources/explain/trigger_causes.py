"""Parse why a rebalance began, and because of which members: the words of GroupMetadataManager and GroupCoordinator."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final


def instance_in(text: str) -> str:
    """Return an instance id that may be printed as an Option of Scala, or as Java's null."""
    if text.startswith("Some(") and text.endswith(")"):
        text = text[5:-1]
    return "" if text in {"None", "null", ""} else text


_LISTED: Final = re.compile(r"^(?:\w{0,40}\((?P<round>.*)\)|\[(?P<square>.*)\])\.?$", re.DOTALL)
_REASON: Final = "; client reason: "


def _pattern(text: str) -> re.Pattern[str]:
    """Compile a sentence; `{}` is a member, which ends at the first occurrence of the words after it."""
    before, _, behind = text.partition("{}")
    return re.compile(f"{before}(?>(?P<member>.+?){behind})", re.DOTALL)


_REMOVED: Final = _pattern(r"[Rr]emoving member {} on (?P<why>heartbeat expiration|LeaveGroup)")
_SYNC: Final = re.compile(r"Removing (?P<listed>.+) on pending sync request expiration", re.DOTALL)
_EXPLICIT: Final = re.compile(r"explicit `LeaveGroup` request for \((?P<members>.*)\) members", re.DOTALL)
_WITH_INSTANCE: Final = (
    _pattern(r"Adding new member {} with group instance ?id "),
    _pattern(r"(?:Updating metadata for|[Ll]eader|Member) (?:static member )?(?:member )?{} "
             r"(?:with instance id |(?P<none>during |re-joining |joining |is joining ))"),
    re.compile(r"Updating metadata for member (?P<member>\S+)$"),
    _pattern(r"Group's selectedProtocol will change because static member {} with instance id "),
)  # fmt: skip
"""Where a reason names a member, and after that its instance id."""


def triggered_by(words: str) -> tuple[str, list[str], str]:
    """Parse the reason of a rebalance.

    Returns:
        Its cause, as in `heartwheel.wire.verdicts.Cause`; the members that it names; the client's own words.
    """
    client = words.partition(_REASON)[2]
    for cause, found in _CAUSES:
        match = found(words)
        if match is not None:
            return cause, match, client
    return "unknown", [], client


def instance_of(words: str) -> tuple[str, str]:
    """Return member and instance id from a rebalance's reason that names a static member; otherwise empty texts."""
    for pattern in _WITH_INSTANCE:
        match = pattern.match(words)
        if match is not None:
            behind = "" if match.groupdict().get("none") else words[match.end() :]
            instance = behind.partition(_REASON)[0]
            if pattern is _WITH_INSTANCE[-1]:
                instance = instance.partition(" joined")[0]
            return match["member"], instance_in(instance)
    return "", ""


def names_of(listed: str) -> list[str]:
    """Parse a list of members as Scala (`Set(a, b)`) or Java (`[a, b]`) prints it."""
    match = _LISTED.match(listed.strip())
    if match is None:
        return []
    inside = match["round"] if match["round"] is not None else match["square"]
    return [name for name in inside.split(", ") if name]


def _named(pattern: re.Pattern[str]) -> Callable[[str], list[str] | None]:
    def find(words: str) -> list[str] | None:
        match = pattern.match(words)
        return [match["member"]] if match else None

    return find


def _removed_on(why: str) -> Callable[[str], list[str] | None]:
    def find(words: str) -> list[str] | None:
        match = _REMOVED.match(words)
        return [match["member"]] if match and match["why"] == why else None

    return find


def _synced(words: str) -> list[str] | None:
    match = _SYNC.match(words)
    return names_of(match["listed"]) if match else None


def _explicit(words: str) -> list[str] | None:
    match = _EXPLICIT.match(words)
    return [name for name in match["members"].split(", ") if name] if match else None


def _starting(*starts: str) -> Callable[[str], list[str] | None]:
    return lambda words: [] if words.startswith(starts) else None


_CAUSES: Final[tuple[tuple[str, Callable[[str], list[str] | None]], ...]] = (
    ("member_expired", _removed_on("heartbeat expiration")),
    ("member_left", _removed_on("LeaveGroup")),
    ("member_left", _explicit),
    ("sync_expired", _synced),
    ("member_joined", _named(_WITH_INSTANCE[0])),
    ("leader_rejoined", _named(_pattern(r"[Ll]eader {} re-joining group"))),
    ("static_member_updated", _named(_pattern(r"Updating metadata for static member {} with instance id"))),
    ("static_member_updated", _named(_WITH_INSTANCE[-1])),
    ("member_updated", _named(_pattern(r"Updating metadata for member {}(?: during |$)"))),
    ("member_rejoined", _named(_pattern(r"Member {} (?:is )?joining group"))),
    ("over_capacity", _starting("Freshly-loaded group")),
    ("downgraded", _starting("Downgrade group")),
    ("storing_failed", _starting("Error ", "error ")),
)
