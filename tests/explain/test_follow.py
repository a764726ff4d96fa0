"""A log that is followed has the facts of one that is read whole, however its bytes come and wherever it is left."""

from __future__ import annotations

import io
import random
from functools import partial
from pathlib import Path

import pytest

from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.follow import HOLD_MS, FollowedPosition, LogFollower, opened_file, text_before
from heartwheel.sources.explain.layouts import Layout
from heartwheel.sources.explain.rotated_log import RotatedLog
from heartwheel.sources.explain.scan import FactReader, Scanned, scan
from support.grown_logs import BROKEN, real_messages
from support.hostile_lines import EXPIRY, HEAD, LOGGER

HOLD_S = HOLD_MS / 1000


def whole(text: bytes, scanned: Scanned) -> list[Fact]:
    """Read a log as a whole."""
    return list(scan(io.BytesIO(text), FactReader("log", 0, Layout(), scanned), scanned))


def follower(log: Path, scanned: Scanned, position: FollowedPosition | None = None) -> LogFollower:
    """Follow a log from its start, or from a position on."""
    source = opened_file(str(log), position.tail if position else None)
    reader = partial(FactReader, "log", 0, Layout(), scanned)
    return LogFollower(source, reader, scanned, position, text_before(source))


@pytest.mark.parametrize("cut", [60, 90, len(BROKEN) // 2, len(BROKEN) - 5])
def test_a_line_waits_for_what_a_client_may_have_broken_off(tmp_path: Path, cut: int) -> None:
    """A broker that writes such a message in two steps makes no event of it, as if it were read at once."""
    text = f"{HEAD}{EXPIRY.replace('group g', 'group good')}{LOGGER}\n".encode() + f"{BROKEN}\n".encode()
    once, twice = Scanned(), Scanned()
    wanted = whole(text, once)
    log = tmp_path / "server.log"
    log.write_bytes(text[:-cut])
    tail = follower(log, twice)
    facts = tail.read(0.0)[0] + tail.read(HOLD_S / 2)[0]
    with log.open("ab") as more:
        more.write(text[-cut:])
    facts += tail.read(HOLD_S * 0.9)[0] + tail.read(2 * HOLD_S)[0]
    tail.source.close()
    assert facts == wanted
    assert [fact.group_id for fact in facts] == ["good"]
    assert (twice.suspicious, twice.lines) == (once.suspicious, once.lines)


def test_a_line_waits_for_a_connection_that_broke_within_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a client has broken off comes with the next connection, however late; it shows that the line is forged."""
    good = f"{HEAD}{EXPIRY.replace('group g', 'group good')}{LOGGER}\n".encode()
    *begin, rest = f"{BROKEN}\n".encode().splitlines(keepends=True)
    log, scanned = tmp_path / "server.log", Scanned()
    log.write_bytes(good + b"".join(begin))
    tail = follower(log, scanned)
    monkeypatch.setattr(RotatedLog, "is_cut", True)
    found = [tail.read(step * HOLD_S)[0] for step in range(10)]
    assert not any(found)
    monkeypatch.setattr(RotatedLog, "is_cut", False)
    with log.open("ab") as more:
        more.write(rest)
    facts = [fact for step in range(10, 13) for fact in tail.read(step * HOLD_S)[0]]
    tail.source.close()
    once = Scanned()
    assert facts == whole(log.read_bytes(), once)
    assert [fact.group_id for fact in facts] == ["good"]
    assert scanned.suspicious == once.suspicious > 0


def test_lines_before_the_last_bytes_of_a_broken_connection_wait_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text after them is there, and a server that ends every answer holds nothing back for ever."""
    log, line = tmp_path / "server.log", f"{HEAD}{EXPIRY}{LOGGER}\n"
    log.write_text(line)
    tail = follower(log, Scanned())
    monkeypatch.setattr(RotatedLog, "is_cut", True)
    assert tail.read(0.0)[0] == []
    found = 0
    for step in range(1, 6):
        with log.open("a") as more:
            more.write(line)
        found += len(tail.read(step * 2 * HOLD_S)[0])
    tail.source.close()
    assert found == 5  # of six


def test_a_line_is_read_when_its_time_to_wait_is_over(tmp_path: Path) -> None:
    """A log into which more is written all the time holds no line back for longer."""
    log = tmp_path / "server.log"
    log.write_text(f"{HEAD}{EXPIRY}{LOGGER}\n")
    tail = follower(log, Scanned())
    found = []
    for step in range(5):
        found += tail.read(step * HOLD_S / 3)[0]
        with log.open("a") as more:
            more.write("something else\n")
    tail.source.close()
    assert len(found) == 1


@pytest.mark.parametrize("seed", range(10))
def test_a_log_that_is_left_anywhere_is_read_on_exactly_there(tmp_path: Path, seed: int) -> None:
    """Grown in random pieces, rotated, and left at random: each fact once, with its line, and the same counts."""
    rng = random.Random(seed)
    raw = real_messages(rng)
    files = [raw[: len(raw) // 2], raw[len(raw) // 2 :]]
    once, twice = Scanned(), Scanned()
    wanted = [fact for file in files for fact in whole(b"".join(file), once)]
    log, facts, now_s = tmp_path / "server.log", list[Fact](), 0.0
    log.write_bytes(b"")
    tail = follower(log, twice)
    for number, file in enumerate(files):
        if number:
            log.rename(tmp_path / "server.log.1")
        while file:
            size = rng.choice([1, 3, 100])
            some, file[:size] = b"".join(file[:size]), []
            for part in (some[: len(some) // 2], some[len(some) // 2 :]):
                with log.open("ab") as more:
                    more.write(part)
                facts += tail.read(now_s)[0]
            now_s += rng.choice([0.0, HOLD_S / 4, 2 * HOLD_S])
            facts += tail.read(now_s)[0]
            if rng.random() < 0.05:
                position = tail.position()
                tail.source.close()
                tail = follower(log, twice, position)
    for _ in range(9):
        now_s += HOLD_S
        facts += tail.read(now_s)[0]
    tail.source.close()
    assert facts == wanted
    assert (twice.lines, twice.coordinator_lines, twice.suspicious) == (
        once.lines,
        once.coordinator_lines,
        once.suspicious,
    )
