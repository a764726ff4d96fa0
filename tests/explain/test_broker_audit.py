"""`heartwheel audit --broker-log`: the engine's expirations beside those of Kafka's own coordinator."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from heartwheel.front.cli.app import run
from heartwheel.front.cli.audit_broker_log import _decided_ms, logged_removals
from heartwheel.kafka import readback
from heartwheel.proof.audit.match.broker_log import compare, tolerance_of
from heartwheel.proof.audit.match.pairs import PairOutcome, Removal
from heartwheel.settings import Settings
from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scan import Scanned
from heartwheel.wire.verdict_rows import ExpirationRow
from support.broker_logs import REAL
from support.output_rows import T0, expired, status

LOG = str(REAL / "server.log")
OUT = [
    ("search", "search-3-7e035d05-bd47-40a2-bd11-9d56dc90aec6", 1795313535120, "rebalance_timeout"),
    ("orders", "orders-2-84dde529-9d77-47b3-9df6-7a511f0d7b7c", 1795313544836, "session_timeout"),
    ("billing", "billing-1-9dc4f5d8-72b0-4bfe-a270-7cf1dbcf96e7", 1795313546153, "poll_timeout"),
    ("video", "video-2-f482236e-168b-492e-ae66-7dd04e232ce3", 1795313546166, "session_timeout"),
]
AGREE = {"agree": 4, "too_early": 0, "too_late": 0, "different_reason": 0, "only_here": 0, "only_there": 0}
FROM_MS, TO_MS = 1795313500000, 1795313580000


def _row(group: str, member: str, at_ms: int, reason: str) -> ExpirationRow:
    row = expired(group, member, reason=reason)
    return msgspec.structs.replace(row, id=f"{group}{member}{at_ms}", deadline_ms=at_ms, detected_ms=at_ms + 900)


def _logged() -> list[Removal]:
    return list(logged_removals(explain_logs([LOG], Scanned(), stdin=io.BytesIO())))


def test_what_both_tell_agrees() -> None:
    """Each expiration of the log meets the engine's own, with how far apart their times are."""
    rows = [_row(group, member, at_ms + 40, reason) for group, member, at_ms, reason in OUT]
    groups = {row.group_id for row in rows}
    report = compare(
        [*rows, *rows], _logged(), groups=groups, from_ms=FROM_MS, to_ms=TO_MS, tolerance_ms=1_000, pair_ms_max=5_000
    )
    assert report.ok
    assert report.counts == AGREE
    assert [row.apart_ms for row in report.rows] == [40] * 4
    assert report.rows[1].evidence == f"{LOG}:926"


def test_what_one_tells_alone_is_named() -> None:
    """A false one is only here, a missed one only there; the right member for another reason is neither."""
    search, orders, billing, video = OUT
    rows = [
        _row(*search[:3], "sync_timeout"),
        _row(orders[0], orders[1], orders[2] + 20_000, orders[3]),
        _row(*video),
    ]
    groups = {"search", "orders", "billing", "video"}
    report = compare(
        rows, _logged(), groups=groups, from_ms=FROM_MS, to_ms=TO_MS, tolerance_ms=1_000, pair_ms_max=5_000
    )
    assert not report.ok
    assert [(row.held, row.group_id) for row in report.rows] == [
        (PairOutcome.DIFFERENT_REASON, "search"),
        (PairOutcome.ONLY_THERE, "orders"),
        (PairOutcome.ONLY_THERE, billing[0]),
        (PairOutcome.AGREE, "video"),
        (PairOutcome.ONLY_HERE, "orders"),
    ]


@pytest.mark.parametrize(
    ("apart_ms", "held"),
    [
        (-23_221, PairOutcome.TOO_EARLY),
        (-1_001, PairOutcome.TOO_EARLY),
        (-1_000, PairOutcome.AGREE),
        (1_000, PairOutcome.AGREE),
        (1_001, PairOutcome.TOO_LATE),
        (23_221, PairOutcome.TOO_LATE),
    ],
)
def test_one_expiration_at_two_times_is_no_agreement(apart_ms: int, held: PairOutcome) -> None:
    """A verdict seconds before the coordinator's expires a living member; beyond the tolerance it is named."""
    group, member, at_ms, reason = OUT[1]
    rows = [_row(group, member, at_ms + apart_ms, reason)]
    report = compare(
        rows, _logged(), groups={group}, from_ms=FROM_MS - 60_000, to_ms=TO_MS + 60_000, tolerance_ms=1_000
    )
    assert [(row.held, row.apart_ms) for row in report.rows] == [(held, apart_ms)]
    assert report.ok is (held is PairOutcome.AGREE)


def test_tolerance_follows_from_the_configuration() -> None:
    """A coarser wheel, or ticks that are further apart, make the engine's time coarser."""
    fine = tolerance_of(wheel_tick_ms=25, tick_interval_ms=200)
    assert tolerance_of(wheel_tick_ms=125, tick_interval_ms=2_000) - fine == 1_900


def test_a_window_that_ends_before_it_begins_is_not_fine() -> None:
    """Where no time is covered by both sides nothing was compared, which is no agreement."""
    report = compare([], _logged(), groups={"video"}, from_ms=TO_MS, to_ms=TO_MS - 1, tolerance_ms=1_000)
    assert not report.ok


def test_only_what_both_can_know_is_compared() -> None:
    """Groups that the engine does not know are counted apart, and what lies at the edge of the log may be yet to come."""
    report = compare(
        [], _logged(), groups={"video"}, from_ms=FROM_MS, to_ms=TO_MS, tolerance_ms=1_000, pair_ms_max=5_000
    )
    assert (report.counts["only_there"], report.other_groups) == (1, 3)
    late = compare(
        [], _logged(), groups={"video"}, from_ms=FROM_MS, to_ms=OUT[3][2] + 100, tolerance_ms=1_000, pair_ms_max=5_000
    )
    assert (late.rows, late.unsettled) == ([], 1)


def test_the_command_reads_files_and_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows from files or topics, logs as `explain` takes them; exit code 1 if anything differs."""
    # The log is a minute long, and half a minute at either end may be yet to come: one more line makes it longer.
    more = "[2026-11-22 02:14:00,000] INFO [GroupCoordinator 1]: Startup complete. (kafka.coordinator.group.GroupCoordinator)\n"
    log = tmp_path / "server.log"
    log.write_text("[2026-11-22 02:10:00,000" + more[24:] + Path(LOG).read_text() + more)
    begin = _row("orders", "before the log", 1795313395000, "session_timeout")
    false = _row("orders", "false", 1795313460000, "session_timeout")

    def audit(rows: list[ExpirationRow]) -> tuple[int, dict[str, Any]]:
        (tmp_path / "gone").write_bytes(b"".join(b"Offset:1\t" + msgspec.json.encode(row) + b"\n" for row in rows))
        (tmp_path / "changes").write_bytes(b"")
        files = ["--expirations", str(tmp_path / "gone"), "--triggers", str(tmp_path / "changes")]
        code = run(["audit", "--broker-log", str(log), *files, "--json"])
        return code, json.loads(capsys.readouterr().out)

    rows = [_row(*each) for each in OUT]
    code, report = audit([begin, false, *rows])
    assert (code, report["counts"]["agree"]) == (1, 4)
    assert [row["member_id"] for row in report["rows"] if row["held"] == "only_here"] == ["false"]
    code, report = audit([begin, *rows])
    assert (code, report["counts"]) == (0, AGREE)
    early = [begin, _row(*OUT[0][:2], OUT[0][2] - 3_000, OUT[0][3]), *rows[1:]]
    code, report = audit(early)
    assert (code, report["counts"]["too_early"], report["counts"]["agree"]) == (1, 1, 3)
    (tmp_path / "gone").write_bytes(msgspec.json.encode(_row("orders", "later", TO_MS + 3_600_000, "session_timeout")))
    files = ["--expirations", str(tmp_path / "gone"), "--triggers", str(tmp_path / "changes")]
    assert run(["audit", "--broker-log", str(log), *files]) == 1
    assert "nothing to compare: the logs end at" in capsys.readouterr().err
    (tmp_path / "gone").write_bytes(b"")
    assert run(["audit", "--broker-log", str(log), *files]) == 1
    assert "the engine has written no row about any group" in capsys.readouterr().err
    (tmp_path / "empty.log").write_text("nothing\n")
    assert run(["audit", "--broker-log", str(tmp_path / "empty.log")]) == 1
    assert "no line of a group coordinator" in capsys.readouterr().err


def test_it_ends_where_the_engine_has_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest row of each shard counts, and of these the one that is furthest behind; without rows it is the logs' end."""
    of = {0: [T0, T0 + 9_000], 1: [T0 + 5_000], 2: [-1]}
    rows = [
        msgspec.structs.replace(status(shard, batch_ms=T0 + i), clock_ms=ms)
        for shard, all_ms in of.items()
        for i, ms in enumerate(all_ms)
    ]

    def read_topic(*_: object, **__: object) -> list[SimpleNamespace]:
        return [SimpleNamespace(value=msgspec.json.encode(row)) for row in rows]

    monkeypatch.setattr(readback, "read_topic", read_topic)
    assert _decided_ms(Settings(), None, TO_MS) == T0 + 5_000
    assert _decided_ms(Settings(), None, T0 + 4_000) == T0 + 4_000
    rows.clear()
    assert _decided_ms(Settings(), None, TO_MS) == TO_MS
