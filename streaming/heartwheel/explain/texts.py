"""The coordinator's sentences, of Kafka 2.0 to 4.3, read into facts.

The texts are those of `kafka.coordinator.group.GroupCoordinator` (up to 3.9) and of
`org.apache.kafka.coordinator.group.GroupMetadataManager` (3.7 and newer, the only one from 4.0). Where versions differ
a pattern takes each of them; `tests/explain/test_texts.py` has a line of each.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from heartwheel.explain.facts import Fact, Said

_PREFIX: Final = re.compile(r"\[GroupCoordinator (?:id=)?(?P<broker>\d+)[^\]]*\]:? ?")
_START: Final = re.compile(r"^\[?\w*")
_ID: Final = r"\[GroupId[ =](?P<group>.+?)\](?:\[MemberId (?P<by>.+?)\])?"
_TOPIC: Final = r"(?: \(__consumer_offsets-\d+\))?"
_INSTANCE: Final = r"(?:Some\((?P<some>.*?)\)|None|(?P<instance>.+?))"
_LISTED: Final = re.compile(r"^(?:\w*\((?P<round>.*)\)|\[(?P<square>.*)\])\.?$")

_TRIGGER: Final = re.compile(
    r"Preparing to rebalance group (?P<group>.+?)(?: in state \w+)? with old generation (?P<number>-?\d+)"
    rf"{_TOPIC}(?: \(reason: (?P<words>.*)\))?\.?\s*$",
    re.DOTALL,
)


class Text(NamedTuple):
    """Say what a pattern means.

    Args:
        pattern: matched from the start of the message.
        said: what a line says that it matches.
        protocol: the group type that alone writes it; empty if several do.
    """

    pattern: re.Pattern[str]
    said: Said
    protocol: str = ""


def _text(said: Said, pattern: str, protocol: str = "") -> Text:
    return Text(re.compile(pattern, re.DOTALL), said, protocol)


_LEFT_BY: Final = r"has left group through explicit `LeaveGroup` request; client reason: (?P<words>.*)$"

_MEMBER: Final = (
    _text(
        Said.FAILED, r"Member (?P<member>.+?) in group (?P<group>.+) has failed, removing it from the group", "classic"
    ),
    _text(
        Said.LEFT,
        r"Member MemberMetadata\(memberId=(?P<member>.+?), groupInstanceId="
        + _INSTANCE
        + r", clientId=(?P<client>.*?), clientHost=(?P<host>.*?), sessionTimeoutMs=(?P<session>\d+), "
        r"rebalanceTimeoutMs=(?P<rebalance>\d+), supportedProtocols=.*?\) has left group (?P<group>.+?) through "
        r"explicit `LeaveGroup`(?: request)?(?:; client reason: (?P<words>.*))?$",
        "classic",
    ),
    _text(
        Said.LEFT,
        r"Member\[group\.instance\.id "
        + _INSTANCE
        + r", member\.id (?P<member>.+?)\] in group (?P<group>.+) has left, removing it from the group",
        "classic",
    ),
    _text(Said.NOTHING, r"Member id .+ was not found in "),
)
_PENDING: Final = (
    _text(
        Said.PENDING_EXPIRED,
        r"Pending member (?P<member>.+?) in group (?P<group>.+) has been removed after session timeout expiration",
        "classic",
    ),
    _text(
        Said.PENDING_LEFT,
        r"Pending member with memberId=(?P<member>.+?) has left group (?P<group>.+) through explicit "
        r"`LeaveGroup` request"
        r"(?:; client reason: (?P<words>.*))?",
        "classic",
    ),
    _text(
        Said.PENDING_LEFT,
        r"Pending member (?P<member>.+?) is leaving group (?P<group>.+?)\.?(?:\s+[(\[].*)?$",
        "classic",
    ),
    _text(
        Said.JOINED,
        r"Pending dynamic member with id (?P<member>.+?) joins group (?P<group>.+) in \w+ state\. Adding to the group",
        "classic",
    ),
)
_GROUP: Final = (
    _text(
        Said.REMOVED_AT_BARRIER,
        r"Group (?P<group>.+?) removed dynamic members who haven't joined: (?P<listed>\w*\([^()]*\)|\[[^\[\]]*\])",
        "classic",
    ),
    _text(Said.EMPTY, r"Group (?P<group>.+) with generation (?P<number>-?\d+) is now empty", "classic"),
    _text(
        Said.NOTHING,
        r"Group (?:leader \[|.+ is dead, skipping|.+ could not complete rebalance|.+ removed members who haven't sent"
        r"|.+ transitioned to Dead|.+ has moved away|coordinator )",
    ),
)
_JOINS: Final = r"(?:joins|with unknown member id joins)"
_STATIC: Final = (
    _text(
        Said.REPLACED,
        r"Static member with groupInstanceId=(?P<instance>.+?) and unknown member id joins group (?P<group>.+) in \w+ "
        r"state\. Replacing previously mapped member (?P<member>.+) with this groupInstanceId",
        "classic",
    ),
    _text(
        Said.JOINED,
        r"Static member with groupInstanceId=(?P<instance>.+?) and unknown member id joins group (?P<group>.+) in \w+ "
        r"state\. Created a new member id (?P<member>.+?) for this member and",
        "classic",
    ),
    _text(
        Said.REPLACED,
        r"Static member "
        + _INSTANCE
        + r"(?: of group (?P<group>.+?))? with unknown member id rejoins, assigning new member id (?P<new>.+?), "
        r"while old "
        r"member (?:id )?(?P<member>.+?) will be removed",
        "classic",
    ),
    _text(
        Said.JOINED,
        r"Static [Mm]ember with unknown member id joins group (?P<group>.+?) in (?:\w+ state|state \w+)\. "
        r"Created a new member id (?P<member>.+?) (?:for this member|and )",
        "classic",
    ),
    _text(Said.NOTHING, r"Static member (?:which )?joins during "),
)
_DYNAMIC: Final = (
    _text(
        Said.NEW_ID,
        r"Dynamic [Mm]ember with unknown member id joins group (?P<group>.+?) in (?:\w+ state|state \w+)\. "
        r"Created a new member id (?P<member>.+?) and request",
        "classic",
    ),
    _text(
        Said.JOINED,
        r"Dynamic [Mm]ember with unknown member id joins group (?P<group>.+?) in (?:\w+ state|state \w+)\. "
        r"Created a new member id (?P<member>.+?) (?:for this member|and added)",
        "classic",
    ),
)
_IDENTIFIED: Final = (
    _text(
        Said.LEFT,
        r"\[Group(?:Id)?[ =](?P<group>.+?)\] (?:Dynamic )?[Mm]ember (?P<member>\S+|.+?) " + _LEFT_BY,
        "classic",
    ),
    _text(
        Said.LEFT,
        r"\[Group(?:Id)?[ =](?P<group>.+?)\] Static [Mm]ember (?P<member>.+?) with instance id (?P<instance>.+?) "
        + _LEFT_BY,
        "classic",
    ),
    _text(
        Said.PENDING_LEFT,
        r"\[Group(?:Id)?[ =](?P<group>.+?)\] Pending [Mm]ember (?P<member>.+?) " + _LEFT_BY,
        "classic",
    ),
    _text(
        Said.FENCED,
        _ID + r" Streams [Mm]ember (?P<member>.+?) fenced from the group because (?P<words>.*?)\.*$",
        "streams",
    ),
    _text(Said.FENCED, _ID + r" Member (?P<member>.+?) fenced from the group because (?P<words>.*?)\.*$"),
    _text(Said.LEFT, _ID + r" Member (?P<member>.+?) left the (?P<protocol>consumer|share|streams) group"),
    _text(
        Said.TEMPORARILY_LEFT,
        _ID + r" Static [Mm]ember (?P<member>.+?) with instance id (?P<instance>.+?) temporarily left the "
        r"(?P<protocol>\w+) group",
    ),
    _text(
        Said.LEFT,
        _ID + r" Static [Mm]ember (?P<member>.+?) with instance id (?P<instance>.+?) left the (?P<protocol>\w+) group",
    ),
    _text(
        Said.REPLACED,
        _ID + r" Static [Mm]ember with instance id (?P<instance>.+?) re-joins the (?P<protocol>\w+) group using the "
        r"\w+ protocol\. "
        r"Created a new member (?P<new>.+) to replace the existing member (?P<member>\S+?)\.?(?:\s|$)",
    ),
    _text(
        Said.JOINED,
        _ID + r" Static [Mm]ember (?P<member>.+?) with instance id (?P<instance>.+?) joins the (?P<protocol>\w+) "
        r"group using",
    ),
    _text(Said.JOINED, _ID + r" Member (?P<member>.+?) joins the (?P<protocol>consumer|share) group using"),
    _text(Said.JOINED, _ID + r" Member joins the (?P<protocol>streams) group"),
    _text(
        Said.NEW_ID,
        _ID + r" Dynamic [Mm]ember with unknown member id joins the (?P<protocol>\w+) group\. Created a new member id "
        r"(?P<member>.+?) and request",
    ),
    _text(Said.BUMPED, _ID + r" Bumped (?P<protocol>streams|share)? ?group epoch to (?P<number>-?\d+)"),
    _text(
        Said.REACHED,
        _ID + r" Member (?P<member>.+?) new assignment state: epoch=(?P<number>-?\d+), .*?state=(?P<state>\w+)",
    ),
    _text(
        Said.REACHED,
        _ID + r" Member's new assignment state: epoch=(?P<number>-?\d+), .*?state=(?P<state>\w+)",
        "streams",
    ),
    _text(
        Said.REFUSED,
        _ID + r" Static [Mm]ember (?P<member>.+?) with instance id (?P<instance>.+?) (?:is fenced by existing "
        r"member|cannot join the group)",
    ),
    _text(Said.UNLOADED, _ID + r" Unload(?:ed|ing) group metadata for (?:generation|group epoch) (?P<number>-?\d+)"),
    _text(
        Said.NOTHING,
        _ID + r" (?:Computed |Member (?:.+? )?updated |Member's? |Converted |Configuring |Creating |Could |Couldn't "
        r"|Ignoring "
        r"|Received |Skipping |Cannot |Group not found|Assignment configurations |Removing |Expired |Committing "
        r"|Topology "
        r"|Initializ|Setting |Downgrad|Upgrad|Failed |Loaded |Scheduled )",
    ),
)
_WHOLE: Final = (
    _text(Said.LOADED, r"Loading group metadata for (?P<group>.+) with generation (?P<number>-?\d+)", "classic"),
    _text(
        Said.LOADED,
        r"Loaded (?P<protocol>classic|consumer|share|streams) group (?P<group>.+) with (?P<size>\d+) members",
    ),
    _text(Said.UNLOADED, r"Unloading group metadata for (?P<group>.+) with generation (?P<number>-?\d+)", "classic"),
)
_STABLE: Final = (
    _text(
        Said.STABILIZED,
        rf"Stabilized group (?P<group>.+) generation (?P<number>-?\d+){_TOPIC}(?: with (?P<size>\d+) members)?",
        "classic",
    ),
)
_ASSIGNED: Final = (
    _text(
        Said.ASSIGNED,
        r"Assignment received from leader (?:(?P<member>.+?) )?for group (?P<group>.+) for generation (?P<number>-?\d+)"
        r"(?:\. The group has (?P<size>\d+) members)?",
        "classic",
    ),
)
_ADDING: Final = (
    _text(
        Said.JOINED,
        r"Adding new static member "
        + _INSTANCE
        + r" to group (?P<group>.+) with member id (?P<member>.+?)\.?(?:\s+[(\[].*)?$",
        "classic",
    ),
)
_REFUSED: Final = (
    _text(
        Said.REFUSED,
        r"Request memberId=(?P<member>.+?) for static member with groupInstanceId=(?P<instance>.+?) is fenced by",
    ),
    _text(
        Said.REFUSED, r"[Gg]iven member\.id (?P<member>.+?) is identified as a known static member (?P<instance>.+?),"
    ),
)
_STARTS: Final = (_text(Said.STARTED, r"Starting up"), _text(Said.STOPPING, r"Shutting down"))

_BY_START: Final[dict[str, tuple[Text, ...]]] = {
    "Member": _MEMBER,
    "Pending": _PENDING,
    "Group": _GROUP,
    "Static": _STATIC,
    "Dynamic": _DYNAMIC,
    "[Group": _IDENTIFIED,
    "[GroupId": _IDENTIFIED,
    "Loading": _WHOLE,
    "Loaded": _WHOLE,
    "Unloading": _WHOLE,
    "Stabilized": _STABLE,
    "Assignment": _ASSIGNED,
    "Adding": _ADDING,
    "Request": _REFUSED,
    "given": _REFUSED,
    "Given": _REFUSED,
    "Starting": _STARTS,
    "Shutting": _STARTS,
}
_NOTHING: Final = re.compile(
    r"Elected as |Resigned as |Startup complete|Shutdown complete|Scheduling |Finished |Already |Not |Ignored |Started "
    r"|Setting empty assignment|Sending empty assignment|Received (?:unexpected )?notification|Attempt to "
    r"add|The following "
    r"|Creating (?:a )?simple|Removed \S+ |Removed group |Generated |Cannot |Skip|Could not |Failed to |The "
    r"coordinator |Closing "
    r"|Coordinator |Execution |Operation |Writing |Replay|Applying |Transition|High watermark|Updating "
    r"high|Loaded member "
    r"|Loaded group |Loaded \d|onUnloaded |Group coordinator |The write event|The state machine|The runtime|Populating "
    r"|Initializ|Processing |Thread|Draining |Exiting |Metadata |Received the |New metadata|Share group|Tried "
    r"to|Ignoring |Error "
)

_REMOVED: Final = re.compile(
    r"removing member (?P<member>.+) on (?P<why>heartbeat expiration|LeaveGroup)", re.IGNORECASE
)
_NAMES: Final = (
    re.compile(r"Adding new member (?P<member>.+?) with group instance ?id (?P<instance>.+?)(?:; client reason: |$)"),
    re.compile(r"(?:Updating metadata for|[Ll]eader|Member) (?:static member )?(?:member )?(?P<member>.+?) "
               r"(?:with instance id (?P<instance>.+?)(?:; client reason: |$)|during |re-joining |joining |is "
               r"joining )"),
    re.compile(r"Updating metadata for member (?P<member>\S+)$"),
    re.compile(r"Group's selectedProtocol will change because static member (?P<member>.+?) with instance id "
    r"(?P<instance>.+?) joined"),
)  # fmt: skip
_SYNC: Final = re.compile(r"Removing (?P<listed>.+) on pending sync request expiration")
_EXPLICIT: Final = re.compile(r"explicit `LeaveGroup` request for \((?P<members>.*)\) members")


def read(message: str) -> Fact | None:
    """Read a message into a fact.

    Args:
        message: from the coordinator's prefix on.

    Returns:
        The fact, `NOTHING` for what is about no member and no rebalance; `None` for a text that is not known.
    """
    prefix = _PREFIX.match(message)
    if prefix is None:
        return None
    broker_id, text = int(prefix["broker"]), message[prefix.end() :]
    start = _START.findall(text)[0]
    if start == "Preparing":
        return _trigger(broker_id, text)
    for each in _BY_START.get(start, ()):
        match = each.pattern.match(text)
        if match is not None:
            return _fact(broker_id, each, match)
    return Fact(broker_id=broker_id) if _NOTHING.match(text) else None


def triggered_by(words: str) -> tuple[str, list[str], str]:
    """Read the reason of a rebalance.

    Args:
        words: as the broker gave it.

    Returns:
        Its cause, as `heartwheel.wire.verdicts.Cause` names it; the members that it names; the client's own words.
    """
    client = words.partition("; client reason: ")[2]
    for cause, found in _CAUSES:
        match = found(words)
        if match is not None:
            return cause, match, client
    return "unknown", [], client


def instance_of(words: str) -> tuple[str, str]:
    """Read member and instance id from the reason of a rebalance that names a static member; else empty texts."""
    for pattern in _NAMES:
        match = pattern.match(words)
        if match is not None:
            instance = match.groupdict().get("instance") or ""
            return match["member"], _instance(instance)
    return "", ""


def names_of(listed: str) -> list[str]:
    """Read a list of members as Scala (`Set(a, b)`) or Java (`[a, b]`) prints it."""
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
    ("member_joined", _named(re.compile(r"Adding new member (?P<member>.+?) with group instance ?id "))),
    ("leader_rejoined", _named(re.compile(r"[Ll]eader (?P<member>.+?) re-joining group"))),
    (
        "static_member_updated",
        _named(re.compile(r"Updating metadata for static member (?P<member>.+?) with instance id")),
    ),
    (
        "static_member_updated",
        _named(
            re.compile(r"Group's selectedProtocol will change because static member (?P<member>.+?) with instance id")
        ),
    ),
    ("member_updated", _named(re.compile(r"Updating metadata for member (?P<member>.+?)(?: during |$)"))),
    ("member_rejoined", _named(re.compile(r"Member (?P<member>.+?) (?:is )?joining group"))),
    ("over_capacity", _starting("Freshly-loaded group")),
    ("downgraded", _starting("Downgrade group")),
    ("storing_failed", _starting("Error ", "error ")),
)


def _trigger(broker_id: int, text: str) -> Fact | None:
    match = _TRIGGER.match(text)
    if match is None:
        return None
    words = match["words"] or ""
    return Fact(
        broker_id=broker_id,
        said=Said.TRIGGER,
        group_id=match["group"],
        number=int(match["number"]),
        words=words,
        protocol="classic",
    )


def _fact(broker_id: int, text: Text, match: re.Match[str]) -> Fact:
    found = match.groupdict()
    instance = _instance(found.get("some") or found.get("instance") or "")
    return Fact(
        broker_id=broker_id,
        said=text.said,
        group_id=found.get("group") or "",
        member_id=found.get("member") or found.get("by") or "",
        new_member_id=found.get("new") or "",
        members=names_of(found["listed"]) if found.get("listed") else [],
        group_instance_id=instance,
        client_id=found.get("client") or "",
        client_host=found.get("host") or "",
        session_timeout_ms=_number(found.get("session")),
        rebalance_timeout_ms=_number(found.get("rebalance")),
        number=_number(found.get("number")),
        size=_number(found.get("size")),
        protocol=text.protocol or found.get("protocol") or "",
        words=(found.get("words") or "").strip(),
        static=bool(instance),
        state=found.get("state") or "",
    )


def _instance(text: str) -> str:
    """Read an instance id that may be an Option of Scala, or Java's null."""
    if text.startswith("Some(") and text.endswith(")"):
        text = text[5:-1]
    return "" if text in {"None", "null", ""} else text


def _number(text: str | None) -> int | None:
    return int(text) if text else None
