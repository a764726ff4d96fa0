"""Delivery: whatever a receiver answers, it is an answer, in the time that an attempt has."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from heartwheel.readers.notify.delivery import AddressError, Delivery, DeliveryStatus, parse_address, result_of
from heartwheel.readers.notify.message import Message
from heartwheel.readers.notify.pace import RetryDelay

NOW_MS = 1_794_996_000_000
MESSAGE = Message(id="msg_1", title="a group", body="{}", made_ms=NOW_MS, incidents=("inc_1",))

Talk = Callable[[socket.socket], None]

DIGITS = st.text("0123456789", min_size=1, max_size=25)
DATES = st.builds(
    "{0}, {1} {2} {3} {4}:{5}:{6} {7}".format,
    st.sampled_from(["Sat", "Saturday", ""]),
    DIGITS,
    st.sampled_from(["Nov", "November", "x"]),
    DIGITS,
    DIGITS,
    DIGITS,
    DIGITS,
    st.sampled_from(["GMT", "+9999", "-0000", "+99999999999999999999", "", "EST"]),
)


class Talker:
    """Listen on a free port; take each request whole, and let a function answer it byte by byte."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/hook"

    def run(self) -> None:
        """Answer one connection after the other until it is closed."""
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, contextlib.suppress(OSError):
                    got = b""
                    while not got.endswith(b"{}"):
                        got += connection.recv(65_536) or b"{}"
                    self.talk(connection)

    def close(self) -> None:
        """Stop to listen."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture(scope="module")
def talker() -> Iterator[Talker]:
    """Share one receiver; each test says how it talks."""
    made = Talker(lambda _: None)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.close()
    thread.join()


def posted(talker: Talker, talk: Talk, *, timeout_ms: int = 5_000) -> DeliveryStatus:
    """Post a message to a receiver that talks in this way."""
    talker.talk = talk
    with Delivery(talker.url, (b"k" * 24,), timeout_ms=timeout_ms) as delivery:
        return delivery.post(MESSAGE, now_ms=NOW_MS).status


@given(st.integers(100, 999), st.none() | st.text(st.characters(exclude_categories=())) | DIGITS | DATES)
@example(503, "Sat, 18 Nov 99999999999999999999 10:07:00 GMT")
@example(503, "Sat, 18 Nov 9999 23:59:59 -2359")
@example(503, "Sat, 18 Nov 1 00:00:00 +2359")
@example(503, "Sat, 18 Nov 2026 10:07:00 +99999999999999999999")
@example(429, "\N{ARABIC-INDIC DIGIT NINE}" * 9)
def test_judging_never_raises(status: int, retry_after: str | None) -> None:
    """Whatever the status and `Retry-After` are, there is a fate, and a pause that the outbox can reckon with."""
    answer = result_of(status, retry_after, now_ms=NOW_MS)
    assert answer.asked_ms >= 0
    assert (answer.status is DeliveryStatus.DELIVERED) == (200 <= status < 300)
    pause = RetryDelay(random.Random(1))
    assert NOW_MS < pause.fail(NOW_MS, asked_ms=answer.asked_ms) <= NOW_MS + 3_600_000


LINES = st.one_of(
    st.builds("retry-after: {}".format, DATES | DIGITS).map(str.encode),
    st.sampled_from(
        [
            b"set-cookie: a=b; expires=Sat, 18 Nov 99999999999999999999 10:07:00 GMT; max-age=" + b"9" * 5_000,
            b"content-encoding: zstd, gzip, br",
            b"transfer-encoding: chunked",
            b"content-length: -1",
            b"location: http://[",
            b"content-type: text/html; charset=\xff",
        ]
    ),
    st.binary(max_size=60),
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 9_999), st.lists(LINES, max_size=4), st.binary(max_size=40))
@example(503, [b"retry-after: Sat, 18 Nov 99999999999999999999 10:07:00 GMT"], b"")
@example(200, [b"set-cookie: " + b"=;" * 9], b"\xff")
def test_whatever_bytes_come_they_are_an_answer(talker: Talker, status: int, lines: list[bytes], body: bytes) -> None:
    """Statuses, headers and bodies of any bytes, well formed or not, never end the notifier."""
    answer = b"\r\n".join([b"HTTP/1.1 %d X" % status, *lines, b"", body])
    assert posted(talker, lambda connection: connection.sendall(answer)) in DeliveryStatus


@pytest.mark.parametrize(
    "part", [b"x", b"HTTP/1.1 100 Continue\r\n\r\n"], ids=["a byte at a time", "continue for ever"]
)
def test_an_answer_that_never_ends_has_an_end(talker: Talker, part: bytes) -> None:
    """A receiver that always sends a little more has `notify.timeout` in all, and is tried again later."""

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nx: " if part == b"x" else b"")
        while True:
            connection.sendall(part)
            time.sleep(0.02)

    assert posted(talker, drip, timeout_ms=300) is DeliveryStatus.FAILED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no address",
        "ftp://host.example/",
        "https://",
        "https://[host.example/",
        "https://host.example:99999999/",
        f"https://{'a' * 64}.example/",
    ],
)
def test_what_is_no_address_is_told_without_showing_it(text: str) -> None:
    """An address is often a secret: the error names what to look at, not the address."""
    with pytest.raises(AddressError) as caught:
        parse_address(text)
    assert "host.example" not in str(caught.value)
