"""The texts that begin with the group's id in brackets: those of the newer group types, and of Kafka 4 about leaves."""

from __future__ import annotations

import re
from typing import Final

from heartwheel.sources.explain.facts import FactKind
from heartwheel.sources.explain.text_template import Text

_LEAVE: Final = "through explicit `LeaveGroup`"


def _named(kind: FactKind, sentence: str, protocol: str = "", *, needle: str, names_member: bool = False) -> Text:
    """Return a sentence that follows `[GroupId G]`, or `[Group G]`."""
    template = r"\[Group(?:Id)?[ =]{group}\] " + sentence
    return Text(kind, template, protocol, needle=needle, names_member=names_member)


IDENTIFIED: Final = (
    _named(
        FactKind.LEFT,
        r"(?:Dynamic )?[Mm]ember {member} has left group through explicit `LeaveGroup` request; client reason: {words}",
        "classic",
        needle=_LEAVE,
    ),
    _named(
        FactKind.LEFT,
        r"Static [Mm]ember {member} with instance id {instance} has left group through explicit `LeaveGroup` request; "
        r"client reason: {words}",
        "classic",
        needle=_LEAVE,
    ),
    _named(
        FactKind.PENDING_LEFT,
        r"Pending [Mm]ember {member} has left group through explicit `LeaveGroup` request; client reason: {words}",
        "classic",
        needle=_LEAVE,
    ),
    _named(
        FactKind.FENCED,
        r"Streams [Mm]ember {member} fenced from the group because {words}\.{0,2}$",
        "streams",
        needle=" fenced from the group because ",
    ),
    _named(
        FactKind.FENCED,
        r"Member {member} fenced from the group because {words}\.{0,2}$",
        needle=" fenced from the group because ",
    ),
    _named(
        FactKind.LEFT,
        r"Member {member} left the (?P<protocol>consumer|share) group",
        needle=" left the ",
    ),
    _named(
        FactKind.LEFT,
        r"Member {member} left the streams group",
        "streams",
        needle=" left the streams group",
        names_member=True,
    ),
    _named(
        FactKind.TEMPORARILY_LEFT,
        r"Static [Mm]ember {member} with instance id {instance} temporarily left the "
        r"(?P<protocol>consumer|share) group",
        needle=" temporarily left the ",
    ),
    _named(
        FactKind.TEMPORARILY_LEFT,
        r"Static member {member} with instance id {instance} temporarily left the streams group",
        "streams",
        needle=" temporarily left the streams group",
        names_member=True,
    ),
    _named(
        FactKind.LEFT,
        r"Static [Mm]ember {member} with instance id {instance}(?<! temporarily) left the "
        r"(?P<protocol>consumer|share) group",
        needle=" left the ",
    ),
    _named(
        FactKind.LEFT,
        r"Static member {member} with instance id {instance}(?<! temporarily) left the streams group",
        "streams",
        needle=" left the streams group",
        names_member=True,
    ),
    _named(
        FactKind.REPLACED,
        r"Static [Mm]ember with instance id {instance} re-joins the (?P<protocol>consumer|share) group using the "
        r"\w{1,20} protocol\. Created a new member {new} to replace the existing member {member}(?=\.?(?:\s|$))",
        needle=" to replace the existing member ",
    ),
    _named(
        FactKind.REPLACED,
        r"Static member with instance id {instance} re-joins the streams group using the streams protocol\. "
        r"Created a new member {new} to replace the existing member {member}(?=\.?(?:\s|$))",
        "streams",
        needle=" to replace the existing member ",
        names_member=True,
    ),
    _named(
        FactKind.JOINED,
        r"Static [Mm]ember {member} with instance id {instance} joins the {protocol} group using",
        needle=" group using",
    ),
    _named(
        FactKind.JOINED,
        r"Member {member} joins the (?P<protocol>consumer|share) group using",
        needle=" group using",
    ),
    _named(
        FactKind.JOINED,
        r"Static member {member} with instance id {instance} joins the streams group",
        "streams",
        needle=" joins the streams group",
        names_member=True,
    ),
    _named(
        FactKind.JOINED,
        r"Member joins the streams group",
        "streams",
        needle=" joins the streams group",
        names_member=True,
    ),
    _named(
        FactKind.NEW_ID,
        r"Dynamic [Mm]ember with unknown member id joins the {protocol} group\. Created a new member id {member} and "
        r"request(?:ing)?",
        needle=" and request",
    ),
    _named(
        FactKind.BUMPED,
        r"Bumped (?:(?P<protocol>share) )?group epoch to {number}",
        needle=" group epoch to ",
    ),
    _named(
        FactKind.BUMPED,
        r"Bumped streams group epoch to {number}",
        "streams",
        needle=" Bumped streams group epoch to ",
        names_member=True,
    ),
    _named(
        FactKind.REACHED,
        r"Member {member} new assignment state: epoch={number}(?:, \w{1,40}=-?\d{1,10}){0,4}, state={state}",
        needle=" new assignment state: ",
    ),
    _named(
        FactKind.REACHED,
        r"Member's new assignment state: epoch={number}(?:, \w{1,40}=-?\d{1,10}){0,4}, state={state}",
        "streams",
        needle=" new assignment state: ",
        names_member=True,
    ),
    _named(
        FactKind.REFUSED,
        r"Static [Mm]ember {member} with instance id {instance} (?:is fenced by existing member|cannot join the group)",
        needle=" with instance id ",
    ),
    _named(
        FactKind.UNLOADED,
        r"Unload(?:ed|ing) group metadata for (?:generation|group epoch) {number}",
        needle=" group metadata for ",
    ),
)

IDENTIFIED_WITHOUT_FACT: Final = (
    _named(FactKind.NOTHING, r"Member {member} updated {rest}", needle=" updated "),
    _named(
        FactKind.NOTHING,
        r"(?:Computed |Member (?:updated|initialized|joined) |Member's? |Converted |Configuring |Creating |Could "
        r"|Couldn't |Ignoring |Received |Skipping |Cannot |Group not found|Assignment configurations |Removing "
        r"|Expired |Committing |Topology |Topic configuration |Valid topic |The |Initializ|Setting |Downgrad|Upgrad"
        r"|Failed |Loaded |Scheduled |Shutdown requested |Clearing |Requested |Scanned |Refreshing |Size of ){rest}",
        needle="] ",
    ),
)

OTHER_SENTENCE: Final = re.compile(r"\] [A-Z][a-z]+ ")
"""Where a sentence after `[GroupId G]` may begin."""
