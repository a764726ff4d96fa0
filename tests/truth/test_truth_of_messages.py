"""What the webhook is told of a scripted world is what happened in it, word by word."""

from __future__ import annotations

import json
from collections import defaultdict

from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.readers.notify.incidents import Incidents, Rules
from heartwheel.readers.notify.message import message_of
from heartwheel.readers.notify.payload import incident_payload
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow
from support.told_world import STORIES, T, history

RULES = Rules(gather_ms=5_000, min_interval_ms=60_000, close_after_ms=600_000, incidents_max=50)


def messages_of(rows: list[TopicRow]) -> dict[str, list[str]]:
    """Play rows second by second, and return the text of each message, by group."""
    incidents, found, left = Incidents(RULES), defaultdict[str, list[str]](list), list(rows)
    for now_ms in range(left[0].append_ms // 1_000 * 1_000, T, 1_000):
        while left and left[0].append_ms <= now_ms:
            match left.pop(0).row:
                case ExpirationRow() as row:
                    incidents.expired(row, now_ms=now_ms)
                case TriggerRow() as row:
                    incidents.triggered(row, now_ms=now_ms)
        for incident in incidents.due(now_ms):
            before, group = incident.reported_expired, incident.group_id or ""
            step, closed_by = incidents.report(incident, now_ms)
            payload = incident_payload(incident, step, closed_by, expired_before=before)
            found[group].append(json.loads(message_of([payload], now_ms=now_ms, waited_ms=0).body)["text"])
    return found


def test_messages_are_those_of_the_script() -> None:
    """Who was expired, and who came back: each group has its messages, and who left by itself has none."""
    rows = [row for row in history() if isinstance(row.row, ExpirationRow | TriggerRow)]
    expected = {story.group_id: list(story.messages) for story in STORIES if story.messages}
    assert messages_of(rows) == expected
