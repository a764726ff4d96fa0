"""Messages about groups as a whole: storms, lost groups and flapping members, each reported once; time is passed in."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.trouble import WINDOW_MS, TroubleKind
from heartwheel.readers.notify.delivery import DeliveryResult, DeliveryStatus
from heartwheel.readers.notify.dispatcher import Dispatcher
from heartwheel.readers.notify.message import Body, Message
from heartwheel.readers.notify.store import NotifierState
from heartwheel.settings import NotifySettings
from support.output_rows import T0, begun, emptied, expired, joined, topic_rows

S, MINUTE = 1_000, 60_000
RULE = StormRule(3, 5 * MINUTE)


class Scene:
    """A dispatcher that posts to a list, and a clock."""

    def __init__(self, **settings: Any) -> None:
        self.now_ms, self.offset = T0, 0
        self.state, self.got = NotifierState(), list[Body]()
        self.settings = NotifySettings(**settings)
        self.restart()

    def restart(self) -> None:
        """Start another process with the state that the last one saved."""
        state = msgspec.json.decode(msgspec.json.encode(self.state), type=NotifierState)
        self.dispatcher = Dispatcher(
            self.settings,
            state,
            canary_prefix="canary",
            on_dead_letter=lambda _: None,
            rng=random.Random(1),
            storm=RULE,
            expected_members={"sized": 50},
        )

    def take(self, *rows: Any) -> None:
        """Take rows in."""
        self.dispatcher.take(topic_rows(*rows, offset=self.offset), now_ms=self.now_ms)
        self.offset += len(rows)

    def run(self, for_ms: int) -> list[str]:
        """Let seconds pass; return the texts that were posted, each with its step."""
        first, end_ms = len(self.got), self.now_ms + for_ms
        while self.now_ms < end_ms:
            self.now_ms += S
            self.dispatcher.compose(self.now_ms)
            while self.dispatcher.post(self._post, self.now_ms):
                pass
            self.state = self.dispatcher.state()
        return [f"{body.incidents[0].step}: {body.text}" for body in self.got[first:]]

    def _post(self, message: Message) -> DeliveryResult:
        self.got.append(msgspec.json.decode(message.body, type=Body))
        return DeliveryResult(DeliveryStatus.DELIVERED, "")


def sized(there: int, at_ms: int) -> Any:
    """Make the row of a group that should have 50 members."""
    return msgspec.structs.replace(joined("sized", "m", at_ms=at_ms), id=f"sized/{at_ms}", member_count=there)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_group_with_too_few_members_is_reported(restarted: bool) -> None:  # noqa: FBT001 - a parameter
    """It is told how many there are of how many there should be, once, and that it has them again."""
    scene = Scene()
    scene.take(sized(47, T0))
    assert scene.run(2 * MINUTE) == ["opened: sized: 47 of 50 members"]
    if restarted:
        scene.restart()
        assert scene.run(2 * MINUTE) == []
    scene.take(sized(50, scene.now_ms))
    assert scene.run(2 * MINUTE) == ["closed: sized: in order again"]


def storm(scene: Scene, group: str = "deploys") -> None:
    """Begin three rebalances, which nobody was expired for."""
    scene.take(*(begun(group, at_ms=scene.now_ms - i * S, deadline_ms=None) for i in range(3)))


def test_a_storm_without_expirations_is_reported_once_and_its_end() -> None:
    """A group that only rebalances makes a message, however long the storm is, and one when it is over."""
    scene = Scene()
    storm(scene)
    assert scene.run(MINUTE) == ["opened: deploys: 3 rebalances in 5 min, the first by: member expired"]
    for _ in range(4):
        storm(scene)
        assert scene.run(MINUTE) == []
    assert scene.run(6 * MINUTE) == ["closed: deploys: in order again"]
    assert scene.run(60 * MINUTE) == []


def test_a_group_that_lost_all_members_says_so_beside_them() -> None:
    """That nobody is left stands in the message about the expired; their return ends both."""
    scene = Scene()
    scene.take(expired("g", "a", T0), expired("g", "b", T0), emptied("g", "b"))
    (text,) = scene.run(10 * S)
    assert text.startswith("opened: g: 2 members expired (session timeout): ")
    assert "; no members for " in text
    assert text.endswith("2 expired members not back")
    trouble = scene.got[-1].incidents[0].troubles[0]
    assert (trouble.kind, trouble.count) == (TroubleKind.EMPTY, 2)
    scene.take(joined("g", "a", "b", at_ms=scene.now_ms))
    assert scene.run(2 * MINUTE) == ["closed: g: all are back, after 2 expirations"]


def test_another_trouble_is_news() -> None:
    """A storm in a group whose expired members are known already makes one more message."""
    scene = Scene()
    scene.take(expired("g", "a", T0))
    assert len(scene.run(MINUTE)) == 1
    storm(scene, "g")
    (text,) = scene.run(2 * MINUTE)
    assert text.startswith("updated: g: 1 in all (session timeout): a at /10.0.0.7; 3 rebalances in 5 min")


def test_a_restart_ends_no_trouble_that_nothing_speaks_against() -> None:
    """A process that knows nothing of the time before says neither that a group is well nor reports it again."""
    scene = Scene()
    storm(scene)
    scene.take(expired("g", "a", T0), emptied("g", "a"))
    assert len(scene.run(MINUTE)) == 2
    scene.restart()
    assert scene.run(WINDOW_MS - MINUTE) == []
    assert scene.run(2 * MINUTE) == ["closed: deploys: in order again"]
    scene.take(joined("g", "a", at_ms=scene.now_ms))
    assert scene.run(2 * MINUTE) == ["closed: g: all are back, after 1 expiration"]


def test_an_empty_group_that_stays_so_is_closed_once() -> None:
    """After `notify.close_after` its incident ends, and it begins no other until the group was well."""
    scene = Scene(close_after="10m")
    scene.take(expired("g", "a", T0), emptied("g", "a"))
    assert len(scene.run(MINUTE)) == 1
    (closed,) = scene.run(60 * MINUTE)
    assert closed == "closed: g: closed, as nothing more happened; 1 did not come back, after 1 expiration"
    scene.take(joined("g", "z", at_ms=scene.now_ms))
    assert scene.run(MINUTE) == []
    scene.take(expired("g", "z", scene.now_ms), emptied("g", "z", at_ms=scene.now_ms))
    (text,) = scene.run(MINUTE)
    assert "; no members for " in text


@pytest.mark.parametrize("group", ["canary-1", "calm"])
def test_groups_in_no_trouble_are_silent(group: str) -> None:
    """The canary's groups are in trouble on purpose, and two rebalances are no storm."""
    scene = Scene()
    scene.take(*(begun(group, at_ms=T0 - i * S, deadline_ms=None) for i in range(9 if group != "calm" else 2)))
    assert scene.run(10 * MINUTE) == []


def test_a_name_in_a_trouble_cannot_ping() -> None:
    """A member's id in the words about its group is no markup either."""
    scene = Scene()
    scene.take(*(expired("g", "<!channel>", T0 - i * S) for i in range(3)))
    assert all("<" not in text for text in scene.run(MINUTE))
    assert "&lt;!channel&gt; expired 3 times" in scene.got[0].text
