"""A slow gateway: every beat has a deadline and is counted, and no worker waits for it at its end."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from heartwheel_beats import KafkaSender, beats
from heartwheel_beats.senders import HttpSender, LostError
from support.gateway_double import GatewayDouble
from support.job import wait_for

PATIENCE_S = 30
DRIPS = {
    "nothing": (b"", b""),
    "headers": (b"HTTP/1.1 202 Accepted\r\nx-slow: ", b"x"),
    "continues": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": (b"HTTP/1.1 202 Accepted\r\ncontent-length: 4000\r\n\r\n", b"x"),
    "last body": (b"HTTP/1.1 202 Accepted\r\nconnection: close\r\n\r\n", b"x"),
}


@contextmanager
def dripping(first: bytes, drop: bytes) -> Iterator[str]:
    """Run a gateway that answers each connection with some bytes, and then with a drop now and then, for ever."""
    over = threading.Event()

    def drip(end: socket.socket) -> None:
        with end, suppress(OSError):
            end.sendall(first)
            while not over.wait(0.02):
                end.sendall(drop)

    def accept(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                end, _ = listening.accept()
                threading.Thread(target=drip, args=(end,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, args=(listening,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)


def ends(run: Callable[[], object]) -> bool:
    """Run something in a thread, and return whether it ends at all."""
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return not thread.is_alive()


class StuckSender:
    """A sender that never gets an answer, whatever its time-out."""

    def __init__(self) -> None:
        self.sends, self.waits = 0, threading.Event()

    def send(self, key: bytes, value: bytes) -> None:  # noqa: ARG002 - it is never sent
        """Wait until the test is over."""
        self.sends += 1
        self.waits.wait()

    def close(self) -> None:
        """Do nothing."""

    abandon = close


@pytest.mark.parametrize("kind", DRIPS)
def test_a_beat_has_one_deadline(kind: str) -> None:
    """However slowly an answer comes, the attempt ends, and is lost; the next one has a connection of its own."""
    lost = list[str]()

    def send(sender: HttpSender) -> None:
        for _ in range(2):
            try:
                sender.send(b"g", b"{}")
            except LostError as error:
                lost.append(str(error))

    with dripping(*DRIPS[kind]) as url:
        assert ends(lambda: send(HttpSender(url, timeout_s=0.3)))
    assert len(lost) == 2
    assert all("0.3 s" in words for words in lost)


def test_the_next_address_is_tried(gateway: GatewayDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a name has several addresses, one that refuses is passed over."""
    port = int(gateway.url.rpartition(":")[2])
    kinds = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
    found = [(*kinds, ("127.0.0.1", 9)), (*kinds, ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    HttpSender("http://gateway:8486").send(b"g", b'{"member_id": "a"}')
    assert gateway.members() == {"a"}


def test_slow_answers_are_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Beats that find no answer in their time are lost, counted and logged once, and the block ends.

    Where it ends while a beat is under way, the log also has a line on that: `test_the_end_waits_for_no_answer`.
    """
    with dripping(*DRIPS["headers"]) as url:

        def work() -> None:
            with beats("orders", member="a", session="400ms", to=url) as beat:
                wait_for(lambda: beat.lost >= 2, "two beats to be lost")

        with caplog.at_level(logging.WARNING, "heartwheel_beats"):
            assert ends(work)
    lost = [record.message.partition(":")[0] for record in caplog.records if "was lost" in record.message]
    assert lost == ["a beat of member a of orders was lost"]


@pytest.mark.parametrize("kind", ["block", "loop"])
def test_the_end_waits_for_no_answer(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """A beat under way that never ends keeps neither a block nor an event loop from ending, and it is said."""
    sender = StuckSender()

    def block() -> None:
        with beats("orders", member="a", sender=sender):
            wait_for(lambda: sender.sends, "a beat to be under way")

    async def loop() -> None:
        async with beats("orders", member="a", sender=sender):
            while not sender.sends:
                await asyncio.sleep(0.01)

    with caplog.at_level(logging.WARNING, "heartwheel_beats"):
        assert ends(block if kind == "block" else lambda: asyncio.run(loop()))
    sender.waits.set()
    assert sender.sends == 1
    assert ["did not leave" in record.message for record in caplog.records] == [True]


def test_a_leave_takes_a_second_at_most() -> None:
    """The last record of a member waits less than a beat may: a worker ends in time, also where answers are slow."""
    with dripping(*DRIPS["nothing"]) as url:
        sender = HttpSender(url, timeout_s=5.0)
        seen = list[float]()
        real = sender.send

        def send(key: bytes, value: bytes) -> None:
            seen.append(sender.timeout_s)
            real(key, value)

        sender.send = send  # type: ignore[method-assign]
        beat = beats("orders", member="a", sender=sender)
        beat._begin()
        beat.close()
    assert seen == [1.0]


def test_a_leave_to_kafka_takes_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer that is made for the leave, as the last one was given up, looks for Kafka no longer than that."""
    made = list[dict[str, Any]]()

    def make(**settings: Any) -> None:
        made.append(settings)
        raise OSError("nobody is there")

    sender = KafkaSender("127.0.0.1:9", timeout_s=5.0)
    monkeypatch.setattr(sender, "_make", make)
    beat = beats("orders", member="a", sender=sender)
    beat._begin()
    beat.close()
    first, *again = [(each["bootstrap_timeout_ms"], each["max_block_ms"]) for each in made]
    assert first == (1_000, 1_000)
    assert all(each < first for each in again)


def test_a_kafka_that_is_away_keeps_no_worker() -> None:
    """A producer that looks for Kafka is waited for neither at the end of a block nor at that of its process."""
    script = """
        import time
        from heartwheel_beats import KafkaSender, beats

        with beats("orders", member="a", sender=KafkaSender("127.0.0.1:9", timeout_s=1e6)) as beat:
            while not beat._sending.locked():
                time.sleep(0.01)
    """
    # A process of its own: the thread that looks for Kafka ends with it, and draws no random numbers in other tests.
    command = [sys.executable, "-c", textwrap.dedent(script)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert "member a of orders did not leave: its last beat has no answer yet" in ended.stderr
