"""The tail of a log: every line once and in order, through rotations and restarts, or it says that some are lost."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from heartwheel.base.errors import HeartwheelError
from heartwheel.sources.explain.log_tail import LogTail
from heartwheel.sources.explain.rotated_log import TailPosition

Opens = Callable[..., LogTail]


@pytest.fixture
def opened() -> Iterator[Opens]:
    """Open tails that are closed when the test has ended."""
    with ExitStack() as stack:

        def make(*arguments: Any, **more: Any) -> LogTail:
            return stack.enter_context(closing(LogTail(*arguments, **more)))

        yield make


def _texts(tail: LogTail) -> list[bytes]:
    found: list[bytes] = []
    while lines := tail.read():
        found += [line.text for line in lines]
    return found


def _append(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def test_new_tail_begins_at_the_end_or_at_the_begin(tmp_path: Path, opened: Opens) -> None:
    """What stands in the log already is passed over, unless it was asked for."""
    log = tmp_path / "request.log"
    _append(log, "old")
    at_end, at_begin = opened(log), opened(log, from_begin=True)
    _append(log, "new")
    assert _texts(at_end) == [b"new"]
    assert _texts(at_begin) == [b"old", b"new"]


def test_half_a_line_waits_for_its_rest(tmp_path: Path, opened: Opens) -> None:
    """A line counts once it is whole, and its place is that of its first byte."""
    log = tmp_path / "request.log"
    log.write_text("one\ntw")
    tail = opened(log, from_begin=True)
    assert [(line.text, line.offset) for line in tail.read()] == [(b"one", 0)]
    assert tail.position.offset == 4
    _append(log, "o")
    assert [(line.text, line.offset) for line in tail.read()] == [(b"two", 4)]


def test_rotations_lose_nothing(tmp_path: Path, opened: Opens) -> None:
    """The rotated file is read to its end, though it grew after the last look, and then those that followed."""
    log = tmp_path / "request.log"
    _append(log, "1")
    tail = opened(log, from_begin=True)
    assert _texts(tail) == [b"1"]
    for number in range(2, 5):
        _append(log, str(number), f"{number}, before the rotation")
        log.rename(tmp_path / f"request.log.{number}")
        _append(log, f"{number}, after it")
    texts = _texts(tail)
    assert texts == [
        b"2", b"2, before the rotation", b"2, after it", b"3", b"3, before the rotation", b"3, after it", b"4",
        b"4, before the rotation", b"4, after it",
    ]  # fmt: skip
    assert not tail.lost


def test_restart_goes_on_where_it_stood(tmp_path: Path, opened: Opens) -> None:
    """A position outlives the process, and the file it is in may have been rotated meanwhile."""
    log = tmp_path / "request.log"
    _append(log, "1", "2")
    tail = opened(log, from_begin=True)
    tail.read()
    position = tail.position
    _append(log, "3")
    log.rename(tmp_path / "request.log.1")
    _append(log, "4")
    again = opened(log, position)
    assert not again.lost
    assert _texts(again) == [b"3", b"4"]


def test_file_that_is_gone_is_said(tmp_path: Path, opened: Opens) -> None:
    """If the file that was to be read on was deleted, lines may be missing: the tail says so, once."""
    log, other = tmp_path / "request.log", tmp_path / "kept"
    _append(log, "1")
    tail = opened(log, from_begin=True)
    tail.read()
    position = tail.position
    log.rename(other)  # its inode lives on elsewhere, so that no new file can be given it
    _append(log, "2")
    again = opened(log, position)
    assert again.lost
    assert _texts(again) == [b"2"]
    assert not again.lost


def test_log_that_was_cut_is_said(tmp_path: Path, opened: Opens) -> None:
    """A log that is shorter than what was read of it was cut: it is read from its begin, and lines may be missing."""
    log = tmp_path / "request.log"
    _append(log, "a long line", "another")
    tail = opened(log, from_begin=True)
    tail.read()
    log.write_text("new\n")
    assert [line.text for line in tail.read()] == [b"new"]
    assert tail.lost


def test_log_that_is_missing_is_named(tmp_path: Path, opened: Opens) -> None:
    """Who names a wrong file learns which, and what file is meant."""
    with pytest.raises(HeartwheelError, match=r"no\.log cannot be read") as refused:
        opened(tmp_path / "no.log", hint="name the request log")
    assert refused.value.hint == "name the request log"


def _compress(path: Path) -> None:
    """Compress a rotated file as log4j2 does: another file, and the old one is gone."""
    with gzip.open(f"{path}.gz", "wb") as packed:
        packed.write(path.read_bytes())
    path.unlink()


def test_rotated_files_that_are_compressed_are_read_on(tmp_path: Path, opened: Opens) -> None:
    """A tail that is behind by two rotations reads the compressed one between, and its own file but once."""
    log = tmp_path / "request.log"
    _append(log, "a1", "a2")
    tail = opened(log, from_begin=True)
    assert _texts(tail) == [b"a1", b"a2"]
    for name, line in (("request.log.1", "b1"), ("request.log.2", "c1")):
        log.rename(tmp_path / name)
        _append(log, line)
    for name in ("request.log.1", "request.log.2"):
        _compress(tmp_path / name)
    _append(log, "c2")
    assert (_texts(tail), tail.lost) == ([b"b1", b"c1", b"c2"], False)


def test_a_restart_goes_on_in_the_compressed_file(tmp_path: Path, opened: Opens) -> None:
    """The file in which a tail stopped was rotated and compressed meanwhile: it goes on at the same line."""
    log = tmp_path / "request.log"
    _append(log, "a1", "a2")
    tail = opened(log, from_begin=True)
    tail.read()
    position = TailPosition(tail.position.inode, 3, tail.position.head)
    tail.close()
    log.rename(tmp_path / "request.log.1")
    _append(log, "b1")
    _compress(tmp_path / "request.log.1")
    again = opened(log, position)
    assert (again.lost, _texts(again)) == (False, [b"a2", b"b1"])
    elsewhere = opened(log, TailPosition(position.inode, 3, "0" * 32))
    assert elsewhere.lost


def test_what_a_zip_or_half_a_gz_holds_is_lost(tmp_path: Path, opened: Opens) -> None:
    """It says that lines are missing, so that nobody takes them for silence."""
    log = tmp_path / "request.log"
    _append(log, "a1")
    for broken in ("request.log.1.zip", "request.log.1.gz"):
        tail = opened(log, from_begin=True)
        tail.read()
        log.rename(tmp_path / "request.log.0")
        (tmp_path / broken).write_bytes(gzip.compress(b"x1\n" * 1_000)[:-12])
        _append(log, "b1")
        tail.read()
        assert tail.lost, broken
        (tmp_path / broken).unlink()


@pytest.mark.parametrize("first_lines", [0, 1_000])
def test_a_damaged_gz_ends_no_tail(tmp_path: Path, opened: Opens, first_lines: int) -> None:
    """What cannot be unpacked, from its first byte or further on, is lost, and what follows is read."""
    log = tmp_path / "request.log"
    _append(log, "a1")
    tail = opened(log, from_begin=True)
    tail.read()
    log.rename(tmp_path / "request.log.0")
    packer = zlib.compressobj(wbits=31)
    whole = packer.compress(b"x1\n" * first_lines) + packer.flush(zlib.Z_FULL_FLUSH)
    (tmp_path / "request.log.1.gz").write_bytes(whole + b"\xff" * 100)
    _append(log, "b1")
    lost, texts = False, []
    for _ in range(4):
        texts += [line.text for line in tail.read()]
        lost |= tail.lost
    assert (lost, texts[-1:]) == (True, [b"b1"])
    assert opened(log, TailPosition(0, 0, "0" * 32)).lost


@pytest.mark.parametrize("packed", [b"", gzip.compress(b"a1\na2\n")[:12], b"PK"], ids=["empty", "begun", "zip"])
@pytest.mark.parametrize("suffix", ["gz", "zip"])
def test_a_file_that_is_being_compressed_is_neither_read_again_nor_lost(
    tmp_path: Path, opened: Opens, suffix: str, packed: bytes
) -> None:
    """Compressing begins with the rotation, so a tail comes upon the begin of the copy of what it has just read."""
    log = tmp_path / "request.log"
    _append(log, "a1", "a2")
    tail = opened(log, from_begin=True)
    assert _texts(tail) == [b"a1", b"a2"]
    log.rename(tmp_path / "request.log.1")
    (tmp_path / f"request.log.1.{suffix}").write_bytes(packed)
    _append(log, "b1")
    assert ([line.text for line in tail.read()], tail.lost) == ([b"b1"], False)


def test_another_file_with_the_inode_of_one_that_is_gone_is_not_taken_for_it(tmp_path: Path, opened: Opens) -> None:
    """File systems give inodes away again at once: then lines are missing, and nothing is read from amidst."""
    log = tmp_path / "request.log"
    _append(log, "a1", "a2")
    head = opened(log).position.head
    log.unlink()
    _append(log, "b1", "b2")
    again = opened(log, TailPosition(log.stat().st_ino, 3, head))
    assert (again.lost, _texts(again)) == (True, [b"b1", b"b2"])


def test_files_that_go_while_they_are_looked_at_end_no_tail(
    tmp_path: Path, opened: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rotation deletes and renames at any moment; what is no rotated file of the tail's own need not be there."""
    log = tmp_path / "request.log"
    _append(log, "a1")
    tail = opened(log, from_begin=True)
    position = tail.position
    assert _texts(tail) == [b"a1"]
    gone, unreadable = tmp_path / "request.log.3", tmp_path / "request.log.4.gz"
    unreadable.write_bytes(gzip.compress(b"x1\n"))
    listed, opens = Path.glob, gzip.open
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: [gone, *listed(folder, pattern)])

    def refuse(path: Path) -> Any:
        if path == unreadable:
            raise PermissionError(13, "Permission denied")
        return opens(path)

    monkeypatch.setattr(gzip, "open", refuse)
    assert _texts(opened(log, position)) == [b"a1"]
    assert opened(log, TailPosition(0, 0, "0" * 32)).lost
    log.rename(tmp_path / "request.log.1")
    _append(log, "b1")
    os.utime(unreadable, (1, 1))
    assert (_texts(tail), tail.lost) == ([b"b1"], False)


@pytest.mark.parametrize("grown", [1, 500])
def test_a_log_that_is_copied_and_truncated_is_read_on_in_its_copy(tmp_path: Path, opened: Opens, grown: int) -> None:
    """`copytruncate` of logrotate: however far the new file has grown, its first lines are not taken for the old rest."""
    log = tmp_path / "request.log"
    _append(log, "a1", "a2")
    tail = opened(log, from_begin=True)
    assert _texts(tail) == [b"a1", b"a2"]
    position = tail.position
    _append(log, "a3")
    (tmp_path / "request.log.1").write_bytes(log.read_bytes())
    log.write_text("")
    _append(log, *(f"b{number}" for number in range(grown)))
    wanted = [b"a3", *(b"b%d" % number for number in range(grown))]
    assert (_texts(tail), tail.lost) == (wanted, False)
    again = opened(log, position)
    assert (_texts(again), again.lost) == (wanted, False)
