"""A stream that the request logger shares with others: what is passed on of it, when, and what is left out."""

from __future__ import annotations

import json

import pytest

from heartwheel.sources.explain.layouts import Layout
from heartwheel.sources.explain.log_tail import TailedLine
from heartwheel.sources.explain.rotated_log import TailPosition
from heartwheel.sources.tap import shared_stream
from heartwheel.sources.tap.broken_message import BrokenMessage
from heartwheel.sources.tap.request_log import RequestLog
from heartwheel.sources.tap.shared_stream import SharedStream
from support.request_lines import T0, fetch, heartbeat, line
from support.shared_lines import (
    CARRIERS,
    CUT,
    MINE,
    NAME,
    OWN,
    REST,
    cri,
    docker,
    forged_beside,
    leave,
    other,
    own_request,
    stamp,
)


class Sifted:
    """A stream, what was passed on of it, and what was said.

    Args:
        token: that the tap's own requests have.
    """

    def __init__(self, token: str = MINE) -> None:
        self.said: list[str] = []
        self.now_s = 0.0
        requests = RequestLog()
        signs = BrokenMessage(Layout())
        self.stream = SharedStream(
            requests, signs, token.encode(), lambda _, why: self.said.append(why), lambda: self.now_s
        )
        self._at = 0

    def add(self, *texts: str) -> list[list[str]]:
        """Add lines; return what is passed on, in parts between which lines are missed."""
        lines = []
        for text in texts:
            lines.append(TailedLine(text.encode(), self._at))
            self._at += len(text.encode()) + 1
        parts = self.stream.sift(lines, TailPosition(1, self._at, "head"))
        found = [[each.text.decode() for each in part.lines] for part in parts]
        assert [part.missed for part in parts] == [False, *(True for _ in found[1:])]
        return found


def test_what_follows_another_logger_waits_for_two_tokens() -> None:
    """Until then it is not known how that logger's message went on; then all of it is passed on, in its order."""
    sifted, beats = Sifted(), [heartbeat(T0 + ms) for ms in range(6)]
    assert sifted.add(own_request(T0), beats[0], other(T0 + 1), beats[1]) == [[own_request(T0), beats[0]]]
    assert sifted.stream.begin == TailPosition(1, len(f"{own_request(T0)}\n{beats[0]}\n"), "head")
    assert sifted.add(own_request(T0 + 2), beats[2]) == [[]]
    assert sifted.add(own_request(T0 + 3), beats[3]) == [
        [beats[1], own_request(T0 + 2), beats[2], own_request(T0 + 3), beats[3]]
    ]
    assert sifted.stream.begin is None
    assert (sifted.stream.left_out, sifted.said) == (0, [])


def test_nothing_stands_still_while_other_loggers_write_on() -> None:
    """Lines of other loggers in every stretch put nothing off by more than two tokens."""
    sifted = Sifted()
    sifted.add(own_request(T0))
    passed = [sifted.add(other(T0 + 1), heartbeat(T0 + ms), own_request(T0 + ms))[0] for ms in range(1, 6)]
    assert passed == [[], *([heartbeat(T0 + ms), own_request(T0 + ms)] for ms in range(1, 5))]


WHOLE = {
    "a logger on the first line": forged_beside(T0, leave(T0), first=other(T0, CUT)),
    "a whole message on the first line": forged_beside(T0, leave(T0), first=other(T0)),
    "a message of a logger that is not known": forged_beside(
        T0, leave(T0), first=f"[{stamp(T0)}] INFO Denied evil (k.X)"
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_rest_of_a_message_shows_what_stood_before_it(name: str) -> None:
    """A client may write a whole first line: the rest of the true message has no head."""
    sifted = Sifted()
    sifted.add(own_request(T0))
    assert sifted.add(*WHOLE[name], heartbeat(T0 + 1)) == [[]]
    assert sifted.add(own_request(T0 + 2), heartbeat(T0 + 3)) == [[], [own_request(T0 + 2), heartbeat(T0 + 3)]]
    assert (sifted.stream.left_out, len(sifted.said), sifted.stream.begin) == (2, 1, None)


@pytest.mark.parametrize("tokens_between", [0, 1])
def test_request_of_the_client_shows_its_line_breaks(tokens_between: int) -> None:
    """Where first and last line look whole, the request that the message quotes is logged right behind it."""
    sifted = Sifted()
    sifted.add(heartbeat(T0), own_request(T0))
    last = f"[{stamp(T0)}] INFO {OWN} {CUT}{REST} ({NAME})"
    between = [own_request(T0 + 1)] * tokens_between
    odd = line(T0 + 2, 11, {"groupId": "evil\n", "memberId": ""}, {"errorCode": 79, "memberId": "e"})
    assert sifted.add(other(T0), leave(T0), last, *between, odd) == [[]]
    assert sifted.add(own_request(T0 + 3)) == [[], [own_request(T0 + 3)]]
    assert (sifted.stream.left_out, sifted.said) == (2 + tokens_between, ["a request has a text with a line break"])


def test_stack_trace_costs_no_more_than_up_to_the_next_token() -> None:
    """Lines without a head may be a client's; behind the tap's own request they are over."""
    sifted, beat = Sifted(), heartbeat(T0 + 5)
    sifted.add(own_request(T0))
    trace = ["java.io.IOException: Connection to 2 was disconnected", "\tat kafka.server.X.run(X.scala:1)"]
    assert sifted.add(other(T0 + 1), *trace, heartbeat(T0 + 2)) == [[]]
    assert sifted.add(own_request(T0 + 4), beat) == [[], [own_request(T0 + 4), beat]]
    assert sifted.stream.left_out == 1


def test_without_a_token_as_much_is_left_out_as_a_message_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a carrier puts around each line does not count: it is not the client's."""
    monkeypatch.setattr(shared_stream, "MESSAGE_BYTES_MAX", 2_000)
    sifted, beats = Sifted(""), [heartbeat(T0 + ms) for ms in range(20)]
    assert sifted.add(beats[0], other(T0), beats[1]) == [[beats[0], beats[1]]]
    found = sifted.add(other(T0, CUT, ""), *beats)
    size = len(beats[0]) + 1 - shared_stream.CARRIER_BYTES
    assert (found[0], len(found[1]), sifted.stream.left_out) == ([], 20 - 2_000 // size - 1, 2_000 // size + 1)


def test_tap_whose_requests_are_no_longer_logged_does_not_wait_for_them() -> None:
    """The echo cannot reach the broker: what has no sign is passed on."""
    sifted = Sifted()
    assert sifted.add(own_request(T0), other(T0), heartbeat(T0)) == [[own_request(T0)]]
    sifted.now_s = 11.0
    assert sifted.add(heartbeat(T0 + 1)) == [[heartbeat(T0), heartbeat(T0 + 1)]]
    assert sifted.stream.begin is None


def test_lines_of_json_are_in_no_doubt() -> None:
    """A layout that encodes line breaks leaves none: no message of another logger costs anything."""
    sifted = Sifted("")

    def encoded(text: str) -> str:
        return json.dumps({"timeMillis": T0, "loggerName": "kafka.request.logger", "message": text})

    beats = [encoded(heartbeat(T0)[len(f"[{stamp(T0)}] DEBUG ") :].removesuffix(" (kafka.request.logger)"))] * 2
    own = json.dumps({"timeMillis": T0, "loggerName": NAME, "message": f"{OWN} {CUT}\n{leave(T0)}\n{REST}"})
    assert sifted.add(beats[0], own, "[0.004s][warning][gc] a line of the JVM", beats[1]) == [beats]
    assert sifted.said == []


def test_request_that_a_runtime_cuts_is_no_broken_message() -> None:
    """A container's log has lines of 16 KiB at most: what a long request goes on with is no message of its own."""
    sifted, text = Sifted(""), fetch(T0)
    cut = [
        cri(T0, text[:200]).replace(" F ", " P "),
        cri(T0, text[200:400]).replace(" F ", " P "),
        cri(T0, text[400:]),
    ]
    beat = cri(T0 + 1, heartbeat(T0 + 1))
    assert sifted.add(beat, *cut, beat) == [[beat, cut[0], beat]]
    parts = [
        json.dumps({"log": part, "stream": "stdout"}, separators=(",", ":")) for part in (text[:200], f"{text[200:]}\n")
    ]
    beat = docker(T0 + 1, heartbeat(T0 + 1))
    assert sifted.add(beat, *parts, beat) == [[beat, parts[0], beat]]
    assert sifted.said == []


def test_message_that_a_runtime_cuts_is_a_broken_one() -> None:
    """What stands at the begin of its second part is the client's, without any line break."""
    sifted = Sifted("")
    long = cri(T0, other(T0, f"{CUT}{'x' * 16_000} (a.B)", "")).replace(" F ", " P ")
    assert sifted.add(cri(T0, heartbeat(T0)), long, cri(T0, leave(T0))) == [[cri(T0, heartbeat(T0))]]
    assert sifted.said == ["a line was cut by the carrier"]


def test_other_loggers_are_whole_messages() -> None:
    """What a broker writes beside its requests costs nothing where it has head and end."""
    others = [
        f"[{stamp(T0)}] WARN [SocketServer listenerType=BROKER, nodeId=1] Failed (org.apache.kafka.common.X)",
        f"[{stamp(T0)}] ERROR x (state.change.logger)",
        other(T0, "Loaded classic group g with 2 members."),
    ]
    for name in ("plain", "cri", "docker", "strimzi"):
        sifted, wrapped = Sifted(""), CARRIERS[name]
        beat = wrapped(T0, heartbeat(T0))
        assert sifted.add(beat, *(wrapped(T0, other) for other in others), beat) == [[beat, beat]], name
        assert sifted.said == []
