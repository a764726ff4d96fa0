"""Times of a layout that names no zone: they are shown as such, read in a zone that is given, and doubted aloud."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from heartwheel.base.wall_clock import wall_ms
from heartwheel.front.cli.app import run
from heartwheel.sources.explain.clock_check import zone_doubt
from heartwheel.sources.explain.local_zone import LocalZone, parse_zone
from support.broker_logs import explained
from support.scripted_log import START_MS, lines_of, member, stable

GONE = f"Member {member('app')} in group g has failed, removing it from the group"
HOUR_MS = 3_600_000


def _utc(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_names_of_zones_know_summer_time() -> None:
    """An offset is the same all year, a zone's name is not."""
    assert parse_zone("+01:00").utc_ms(_utc("2026-07-01T12:00")) == _utc("2026-07-01T11:00")
    berlin = parse_zone("Europe/Berlin")
    assert berlin.utc_ms(_utc("2026-07-01T12:00")) == _utc("2026-07-01T10:00")
    assert berlin.utc_ms(_utc("2026-12-01T12:00")) == _utc("2026-12-01T11:00")


def test_the_hour_that_comes_twice_goes_on() -> None:
    """Where clocks are set back, times that step back by an hour are of the second one."""
    berlin = parse_zone("Europe/Berlin")
    local = ("2026-10-25T02:10", "2026-10-25T02:50", "2026-10-25T02:05", "2026-10-25T02:50", "2026-10-25T03:00")
    utc = ("2026-10-25T00:10", "2026-10-25T00:50", "2026-10-25T01:05", "2026-10-25T01:50", "2026-10-25T02:00")
    assert [berlin.utc_ms(_utc(text)) for text in local] == [_utc(text) for text in utc]


@pytest.mark.parametrize("text", ["Europe/Berlinn", "soon", "", "../../etc/passwd", "+25:00"])
def test_what_is_no_zone_is_refused(text: str) -> None:
    """An unknown name is an error that says what would be one."""
    with pytest.raises(ValueError, match=r"Europe/Berlin|offset"):
        parse_zone(text)


def test_times_without_a_zone_are_marked() -> None:
    """Each event says whether its log named a zone, or somebody else did."""
    bare, zoned = lines_of((0, GONE)), lines_of((0, GONE), zone="+0000")
    assert [event.zone_assumed for event in explained(bare)] == [True]
    assert [event.zone_assumed for event in explained(zoned)] == [False]
    (event,) = explained(bare, zone=parse_zone("Europe/Berlin"))
    assert (event.zone_assumed, event.time_ms) == (False, START_MS - HOUR_MS)


def test_a_person_sees_which_times_are_utc(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Times of an unnamed zone have no Z, and the last lines say how to name it."""
    log = tmp_path / "server.log"
    log.write_text(lines_of((0, GONE), (1, stable(2))))
    assert run(["explain", str(log)]) == 0
    out, err = capsys.readouterr()
    assert "2026-11-22 02:11:50.000 " in out
    assert "02:11:50.000Z" not in out
    assert "--utc-offset Europe/Berlin" in err
    assert run(["explain", str(log), "--utc-offset", "Europe/Berlin"]) == 0
    out, err = capsys.readouterr()
    assert "2026-11-22 01:11:50.000Z" in out
    assert "--utc-offset" not in err
    assert run(["explain", str(log), "--json", "--utc-offset", "Europe/Berlin", "--since", "2026-11-22T02:11:51"]) == 0
    assert [json.loads(line)["kind"] for line in capsys.readouterr().out.splitlines()] == ["rebalance"]


def _log(folder: Path, hours: float, written_s: float = 0) -> str:
    """Write a log whose last line is now in a zone so many hours ahead, and was written so long ago."""
    now = datetime.now(UTC)
    log = folder / "server.log"
    at = now - timedelta(seconds=written_s) + timedelta(hours=hours)
    log.write_text(f"[{at:%Y-%m-%d %H:%M:%S},123] INFO [GroupCoordinator 1]: {stable(2)} (x)\nmore\n")
    written = now.timestamp() - written_s
    os.utime(log, (written, written))
    return str(log)


@pytest.mark.parametrize(
    ("hours", "written_s", "doubt"),
    [
        (1, 0, "ends 1 h ahead of the time at which it was written"),
        (1, 86_400, "--utc-offset +01:00"),
        (-5, 40, "--utc-offset -05:00"),
        (5.5, 40, "--utc-offset +05:30"),
        (0, 0, ""),
        (0, 500, ""),
        (-0.2, 0, ""),
        (0.2, 0, "in the future"),
    ],
)
def test_a_file_that_ends_whole_hours_off_is_doubted(
    tmp_path: Path, hours: float, written_s: float, doubt: str
) -> None:
    """Its last line and the time at which it was written differ by half hours, or it lies in the future."""
    said = zone_doubt(_log(tmp_path, hours, written_s), LocalZone(), now_ms=wall_ms())
    assert doubt in said
    assert bool(said) is bool(doubt)


def test_doubts_are_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A broker in another zone is a warning; with its zone given it is none."""
    log = _log(tmp_path, 2)
    assert run(["explain", log]) == 0
    assert "warning:" in capsys.readouterr().err
    assert run(["explain", log, "--utc-offset", "+02:00"]) == 0
    assert "warning:" not in capsys.readouterr().err
