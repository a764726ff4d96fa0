"""The texts of Kafka's log lines about groups, of every release that is read, as patterns."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from heartwheel.explain.facts import Said

_ID: Final = r"\[GroupId[ =](?P<group>.+?)\](?:\[MemberId (?P<by>.+?)\])?"


_TOPIC: Final = r"(?: \(__consumer_offsets-\d+\))?"


_INSTANCE: Final = r"(?:Some\((?P<some>.*?)\)|None|(?P<instance>.+?))"


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


BY_START: Final[dict[str, tuple[Text, ...]]] = {
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


NOTHING: Final = re.compile(
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
