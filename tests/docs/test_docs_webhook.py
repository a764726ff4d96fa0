"""The page about the webhook: its message is one that is really sent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec

from heartwheel.readers.live.trouble import TroubleKind
from heartwheel.readers.notify.incidents import Incidents, Rules
from heartwheel.readers.notify.message import Body, Message, message_of
from heartwheel.readers.notify.payload import incident_payload
from heartwheel.readers.notify.troubles import GroupTrouble
from support.output_rows import T0, expired

PAGE = (Path(__file__).parents[2] / "docs" / "webhook.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """Give the one block of the page in a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def message(*, trouble: bool = False) -> Message:
    """Make a message about one expiration."""
    incidents = Incidents(Rules(gather_ms=0, min_interval_ms=0, close_after_ms=1_000, incidents_max=1))
    incidents.expired(expired("orders", "orders-1"), now_ms=T0)
    if trouble:
        incidents.troubled({"orders": [GroupTrouble(kind=TroubleKind.EMPTY, words="no members", count=1)]}, now_ms=T0)
    (incident,) = incidents.due(T0)
    step, closed_by = incidents.report(incident, T0)
    return message_of([incident_payload(incident, step, closed_by, expired_before=0)], now_ms=T0, waited_ms=0)


def test_the_message_on_the_page_is_one() -> None:
    """It has exactly the fields that are sent, all of them described."""
    body = block("json")
    shown = msgspec.json.decode(body, type=Body, strict=True)
    assert json.loads(body) == json.loads(msgspec.json.encode(shown))
    fields = _fields(json.loads(body))
    assert fields == _fields(json.loads(message(trouble=True).body))
    tables = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
    of_the_topic = set(json.loads(body)["incidents"][0]["members"][0])
    assert fields - of_the_topic - set(re.findall(r"`([a-z_]+)`", tables)) == set()


def _fields(value: object) -> set[str]:
    if isinstance(value, dict):
        names = {name for name in value if not name.endswith("_timeout")}
        return names.union(*(_fields(each) for each in value.values()))
    return set().union(*(_fields(each) for each in value)) if isinstance(value, list) else set()
