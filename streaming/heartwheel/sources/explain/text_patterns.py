"""The texts of Kafka's log lines about groups, of every supported release."""

from __future__ import annotations

import re
from typing import Final

from heartwheel.sources.explain.facts import FactKind
from heartwheel.sources.explain.identified_texts import IDENTIFIED, IDENTIFIED_WITHOUT_FACT
from heartwheel.sources.explain.text_template import Text

_TOPIC: Final = r"(?: \(__consumer_offsets-\d{1,10}\))?"
_LEAVE: Final = "through explicit `LeaveGroup`"

_MEMBER: Final = (
    Text(
        FactKind.FAILED,
        r"Member {member} in group {group} has failed, removing it from the group",
        "classic",
        needle=" has failed, removing it",
    ),
    Text(
        FactKind.LEFT,
        r"Member MemberMetadata\(memberId={member}, groupInstanceId={instance}, clientId={client}, clientHost={host}, "
        r"sessionTimeoutMs={session}, rebalanceTimeoutMs={rebalance}, supportedProtocols={rest}\) has left group "
        r"{group} through explicit `LeaveGroup`(?: request)?{words}",
        "classic",
        needle="Member MemberMetadata(memberId=",
    ),
    Text(
        FactKind.LEFT,
        r"Member\[group\.instance\.id {instance}, member\.id {member}\] in group {group} has left, "
        r"removing it from the group",
        "classic",
        needle="Member[group.instance.id ",
    ),
    Text(FactKind.NOTHING, r"Member id {member} was not found in {rest}", needle=" was not found in "),
)

_PENDING: Final = (
    Text(
        FactKind.PENDING_EXPIRED,
        r"Pending member {member} in group {group} has been removed after session timeout expiration",
        "classic",
        needle=" has been removed after session timeout",
    ),
    Text(
        FactKind.PENDING_LEFT,
        r"Pending member with memberId={member} has left group {group} through explicit `LeaveGroup` request{words}",
        "classic",
        needle=_LEAVE,
    ),
    Text(
        FactKind.PENDING_LEFT,
        r"Pending member {member} is leaving group {group}\.?$",
        "classic",
        needle=" is leaving group ",
    ),
    Text(
        FactKind.JOINED,
        r"Pending dynamic member with id {member} joins group {group} in {state} state\. Adding to the group",
        "classic",
        needle=" state. Adding to the group",
    ),
)

_GROUP: Final = (
    Text(
        FactKind.REMOVED_AT_BARRIER,
        r"Group {group} removed dynamic members who haven't joined: {listed}",
        "classic",
        needle=" removed dynamic members who haven't joined: ",
    ),
    Text(
        FactKind.EMPTY,
        r"Group {group} with generation {number} is now empty",
        "classic",
        needle=" is now empty",
    ),
    Text(
        FactKind.NOTHING,
        r"Group {group} (?:is dead, skipping|could not complete rebalance|removed members who haven't sent"
        r"|transitioned to Dead|has moved away)",
    ),
    Text(FactKind.NOTHING, r"Group (?:leader \[|coordinator ){rest}"),
)

_STATIC: Final = (
    Text(
        FactKind.REPLACED,
        r"Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} state\. "
        r"Replacing previously mapped member {member} with this groupInstanceId",
        "classic",
        needle="Replacing previously mapped member ",
    ),
    Text(
        FactKind.JOINED,
        r"Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} state\. "
        r"Created a new member id {member} for this member and add(?:ed)?",
        "classic",
        needle=" for this member and add",
    ),
    Text(
        FactKind.REPLACED,
        r"Static member Some\({instance}\) of group {group} with unknown member id rejoins, assigning new "
        r"member id {new}, while old member (?:id )?{member} will be removed",
        "classic",
        needle=" with unknown member id rejoins, ",
    ),
    Text(
        FactKind.REPLACED,
        r"Static member Some\({instance}\) with unknown member id rejoins, assigning new "
        r"member id {new}, while old member (?:id )?{member} will be removed",
        "classic",
        needle=") with unknown member id rejoins, ",
    ),
    Text(
        FactKind.JOINED,
        r"Static [Mm]ember with unknown member id joins group {group} in (?:\w{1,40} state|state \w{1,40})\. "
        r"Created a new member id {member}(?: for this member)? and add(?:ed)?",
        "classic",
        needle=" and add",
    ),
    Text(FactKind.NOTHING, r"Static member (?:which )?joins during {rest}", needle=" joins during "),
)

_DYNAMIC: Final = (
    Text(
        FactKind.NEW_ID,
        r"Dynamic [Mm]ember with unknown member id joins group {group} in (?:\w{1,40} state|state \w{1,40})\. "
        r"Created a new member id {member} and request(?:ing)?",
        "classic",
        needle=" and request",
    ),
    Text(
        FactKind.JOINED,
        r"Dynamic [Mm]ember with unknown member id joins group {group} in (?:\w{1,40} state|state \w{1,40})\. "
        r"Created a new member id {member}(?: for this member)? and add(?:ed)?",
        "classic",
        needle=" and add",
    ),
)


_WHOLE: Final = (
    Text(
        FactKind.LOADED,
        r"Loading group metadata for {group} with generation {number}",
        "classic",
        needle="Loading group metadata for ",
    ),
    Text(
        FactKind.LOADED,
        r"Loaded (?P<protocol>classic|consumer|share|streams) group {group} with {size} members",
        needle=" members",
    ),
    Text(
        FactKind.UNLOADED,
        r"Unloading group metadata for {group} with generation {number}",
        "classic",
        needle="Unloading group metadata for ",
    ),
)

_STABLE: Final = (
    Text(
        FactKind.STABILIZED,
        rf"Stabilized group {{group}} generation {{number}}{_TOPIC}(?: with {{size}} members)?",
        "classic",
        needle=" generation ",
    ),
)

_ASSIGNED: Final = tuple(
    Text(
        FactKind.ASSIGNED,
        rf"Assignment received from leader {who}for group {{group}} for generation {{number}}"
        r"(?:\. The group has {size} members)?",
        "classic",
        needle=" for generation ",
    )
    for who in ("", "{member} ")
)

_ADDING: Final = (
    Text(
        FactKind.JOINED,
        r"Adding new static member {instance} to group {group} with member id {member}\.?(?=$|\s{1,8}[(\[])",
        "classic",
        needle=" with member id ",
    ),
)

_PREPARING: Final = (
    Text(
        FactKind.TRIGGER,
        r"Preparing to rebalance group {group}(?: in state \w{1,40})? with old generation {number}{words}",
        "classic",
        needle=" with old generation ",
    ),
)

_REFUSED: Final = (
    Text(
        FactKind.REFUSED,
        r"Request memberId={member} for static member with groupInstanceId={instance} is fenced by{rest}",
    ),
    Text(
        FactKind.REFUSED,
        r"[Gg]iven member\.id {member} is identified as a known static member {instance}, but not matching",
    ),
)

_STARTS: Final = (Text(FactKind.STARTED, r"Starting up"), Text(FactKind.STOPPING, r"Shutting down"))

BY_START: Final[dict[str, tuple[Text, ...]]] = {
    "Member": _MEMBER,
    "Pending": _PENDING,
    "Group": _GROUP,
    "Static": _STATIC,
    "Dynamic": _DYNAMIC,
    "[Group": IDENTIFIED,
    "[GroupId": IDENTIFIED,
    "Loading": _WHOLE,
    "Loaded": _WHOLE,
    "Unloading": _WHOLE,
    "Stabilized": _STABLE,
    "Assignment": _ASSIGNED,
    "Adding": _ADDING,
    "Preparing": _PREPARING,
    "Request": _REFUSED,
    "given": _REFUSED,
    "Given": _REFUSED,
    "Starting": _STARTS,
    "Shutting": _STARTS,
}
"""The sentences by their first word."""

WITHOUT_FACT: Final[dict[str, tuple[Text, ...]]] = {
    "[Group": IDENTIFIED_WITHOUT_FACT,
    "[GroupId": IDENTIFIED_WITHOUT_FACT,
}
"""Sentences that are tried last, about no member and no rebalance."""

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
