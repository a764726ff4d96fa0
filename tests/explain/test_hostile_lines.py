"""Lines that no honest client makes: none ends a scan, none takes long, and each is counted."""

from __future__ import annotations

import io
import re
from itertools import product
from pathlib import Path

import pytest

from heartwheel.front.cli.app import run
from heartwheel.sources.explain import layouts, times
from heartwheel.sources.explain.follow import FollowedPipe, LogFollower
from heartwheel.sources.explain.layouts import Layout
from heartwheel.sources.explain.scan import FactReader, Scanned, scan
from heartwheel.sources.explain.text_patterns import BY_START, WITHOUT_FACT
from heartwheel.sources.explain.text_template import _begin
from heartwheel.sources.explain.whole_lines import WholeLines
from support.broker_logs import explained
from support.hostile_lines import EXPIRY, HEAD, LOGGER, ODD, PREFIX, SHAPES

_GOOD = f"{HEAD}Member good-1 in group good has failed, removing it from the group.{LOGGER}\n"
_SIZES = (240_000, 1 << 20)
"""Of these sizes a pattern with quadratic cost takes minutes, so that nothing has to be timed; the second is too long."""

_WIDTH_MAX = 2_000


@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_long_line_takes_no_longer_than_its_length(shape: str, size: int) -> None:
    """Whatever a client repeats for a megabyte, the next line is read."""
    events = explained(SHAPES[shape](size) + "\n" + _GOOD)
    assert [event.group_id for event in events if event.group_id == "good"] == ["good"]


@pytest.mark.parametrize("line", [*ODD.values(), *(shape(5_000) for shape in SHAPES.values())])
def test_an_odd_line_ends_nothing(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`explain` goes on behind it, for people and for scripts."""
    log = tmp_path / "odd.log"
    log.write_bytes(
        line.encode("utf-8", "surrogateescape" if "\udce9" not in line else "surrogatepass") + b"\n" + _GOOD.encode()
    )
    for options in ([], ["--json"], ["--summary"], ["--unknown"]):
        assert run(["explain", str(log), *options]) == 0
    assert "good-1" in capsys.readouterr().out


def test_no_words_between_two_fields_are_without_a_bound() -> None:
    """A sentence is matched in steps: each costs as much as its field is long, for the words behind it are bounded."""
    sentences = {id(text): text for texts in (*BY_START.values(), *WITHOUT_FACT.values()) for text in texts}
    for text in sentences.values():
        for separator in text.separators:
            bounded = re.sub(r"\(\?P<listed>.*?\*\+\\\]\)", "", separator)
            assert re._parser.parse(bounded).getwidth()[1] < _WIDTH_MAX, text.pattern.pattern  # type: ignore[attr-defined]
        assert text.pattern.pattern.count("(?>") >= len(text.fields) - 1


@pytest.mark.parametrize("name", ["_LOGGER", "_THREAD", "_DATED", "_NAMED", "_COMPACT", "_SYSLOG", "_EPOCH"])
def test_what_is_searched_for_in_a_line_is_bounded(name: str) -> None:
    """A search costs as much for each character as its pattern is long, so no pattern repeats without a bound."""
    pattern = getattr(layouts, name, None) or getattr(times, name)
    assert re._parser.parse(pattern.pattern).getwidth()[1] < _WIDTH_MAX  # type: ignore[attr-defined]


def test_a_logger_at_the_end_is_cut_off_as_by_a_search() -> None:
    """The short way for the usual layout finds what the search finds, whatever stands before the logger."""
    pieces = ("", "x", " ", " -", " |", "\t", " - ", f" {LOGGER.strip()}", " a b c", " (kafka.GroupMetadata")
    lines = ["".join(("[GroupCoordinator 1]: Member", *three, LOGGER)) for three in product(pieces, repeat=3)]
    for line in lines:
        assert layouts._cut(line)[0] == layouts._cut(line + " ")[0], "behind a blank the short way is not taken"


@pytest.mark.parametrize(
    ("separator", "begin"),
    [
        (r"\) has left group ", ") has left group "),
        (r"\. Created a new member id ", ". Created a new member id "),
        (" and add(?:ed)?", " and add"),
        (" in groups? of", " in group"),
        (r" with \w{1,20} protocol", " with "),
        ("(?: with)? members", " members"),
        ("(?<! temporarily) left the ", " left the "),
        ("(?: with| of) members", ""),
        ("(?: with(?: some)?)? members", ""),
    ],
)
def test_words_are_looked_for_by_what_they_always_begin_with(separator: str, begin: str) -> None:
    """No second reading is missed as what may be left out, or may be anything, was taken for a begin."""
    assert _begin(separator) == begin


def test_a_line_that_cannot_be_read_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A mistake of ours about a line costs that line alone, and is named with its place."""
    broken = f"{HEAD}Member bad-1 in group bad has failed, removing it from the group.{LOGGER}\n"
    real = Layout.read

    def read(self: Layout, line: bytes, before: bytes = b"", after: bytes = b"") -> object:
        if b"bad-1" in line:
            raise ZeroDivisionError("what nobody thought of")
        return real(self, line, before, after)

    monkeypatch.setattr(Layout, "read", read)
    (tmp_path / "broken.log").write_text(broken + _GOOD)
    assert run(["explain", str(tmp_path / "broken.log")]) == 0
    out, err = capsys.readouterr()
    assert "good-1" in out
    assert "1 line of coordinators could not be read, the first:" in err
    assert "broken.log:1: ZeroDivisionError: what nobody thought of" in " ".join(err.split())


def test_ids_beyond_the_limit_are_counted_as_unreadable() -> None:
    """An id that the job would reject is not kept in memory for as long as events wait."""
    scanned = Scanned()
    long = EXPIRY.replace("group g ", f"group {'g' * 1_025} ")
    assert explained(f"{HEAD}{long}{LOGGER}\n{HEAD}{long.replace('gg', 'g', 1)}{LOGGER}", scanned=scanned) != []
    assert scanned.unreadable == 1
    assert scanned.first_unreadable is not None
    assert scanned.first_unreadable[1:] == (1, "an id of 1,025 bytes, at most 1,024")


def test_messages_beyond_the_limit_are_counted_as_unreadable() -> None:
    """A message is measured before any pattern sees it."""
    scanned = Scanned()
    assert explained(HEAD + "x" * (layouts.MESSAGE_CHARS_MAX + 1), scanned=scanned) == []
    assert (scanned.unreadable, scanned.unknown_lines) == (1, 0)


def test_large_groups_are_listed_whole() -> None:
    """The limit leaves room for what a broker itself writes about 2,000 members."""
    members = [f"consumer-app-{number}-9c0f6a3e-1f7b-4c4e-9a55-0d9a3b3d1c11" for number in range(2_000)]
    events = explained(f"{HEAD}Group g removed dynamic members who haven't joined: [{', '.join(members)}]{LOGGER}")
    assert [event.member_id for event in events] == members


def test_times_beyond_all_logs_are_none() -> None:
    """Such a line takes the time of the line before, as one without a time."""
    scanned = Scanned()
    odd = f"[9999-12-31 23:59:59,999-05:00] INFO {PREFIX}{EXPIRY}{LOGGER}"
    events = explained(_GOOD + odd, scanned=scanned)
    assert (len({event.time_ms for event in events}), scanned.untimed) == (1, 1)


def test_a_line_that_is_too_long_is_left_out_whole() -> None:
    """What stands behind the limit is no line of its own, and numbers of lines stay right."""
    lines = WholeLines(10)
    blocks = [lines.add(data) for data in (b"a\nbcd", b"efghijklm", b"nop", b"qrs\ntu\nv")]
    assert (b"".join(blocks), lines.end(), lines.too_long) == (b"a\n\ntu\n", b"v", 1)


def test_a_follower_keeps_no_endless_line() -> None:
    """A pipe without a line break takes no more memory than the longest line, and each byte is looked at once."""
    scanned, looked_at = Scanned(), 0

    class Endless(FollowedPipe):
        def __init__(self) -> None:
            self.ended, self.left, self.at = False, 80, 0

        def read(self) -> bytes:
            self.left -= 1
            self.ended = self.left < 0
            return b"x" * (1 << 20) if self.left > 0 else b"\n" + _GOOD.encode() if self.left == 0 else b""

    source = Endless()
    tail = LogFollower(source, lambda: FactReader("-", 0, Layout(), scanned), scanned)
    facts = []
    while not source.ended:
        found, size = tail.read(0.0)
        facts += found
        looked_at += size
    assert [(fact.group_id, fact.line) for fact in facts] == [("good", 2)]
    assert (scanned.too_long, scanned.lines) == (1, 2)


def test_lines_are_numbered_right_over_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last lines of a block wait for the next one; each is read once, under its own number."""
    monkeypatch.setattr("heartwheel.sources.explain.scan.BLOCK_BYTES", 10_000)
    monkeypatch.setattr("heartwheel.sources.explain.scan.WINDOW_BYTES", 3_000)
    text = "".join(
        f"{HEAD}Stabilized group g{n} generation {n} with 1 members.{LOGGER}\nsomething else\r\n" for n in range(1, 500)
    )
    scanned = Scanned()
    facts = list(scan(io.BytesIO(text.encode()), FactReader("log", 0, Layout(), scanned), scanned))
    assert [(fact.group_id, fact.line) for fact in facts] == [(f"g{n}", 2 * n - 1) for n in range(1, 500)]
    assert (scanned.lines, scanned.bytes) == (998, len(text))
