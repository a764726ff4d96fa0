"""`heartwheel audit` over files: what a user sees, and what it comes to when it is run again and again."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from audit.engine_runs import SETTINGS, Run, engine_run
from audit.rich_log import CONFIG, T0, rich_log
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.front.cli.app import run as heartwheel
from heartwheel.front.cli.audit import audit_config
from heartwheel.front.cli.audit_report import show_report
from heartwheel.settings import load_settings
from heartwheel.wire.verdict_rows import ExpirationRow

CLOCK_MS = T0 + 32_000
CLEAN = engine_run(rich_log(), clock_ms=CLOCK_MS, config=CONFIG, cuts=[40, 80, 120])
RULES = [
    word for name in SETTINGS for word in ("--set", f"coordinator.{name.removesuffix('_ms')}={getattr(CONFIG, name)}")
]


def _printed(append_ms: int, partition: int, offset: int, value: bytes) -> bytes:
    return b"LogAppendTime:%d\tPartition:%d\tOffset:%d\t%s\n" % (append_ms, partition, offset, value)


def _write(folder: Path, run: Run, *, upto_ms: int = CLOCK_MS) -> None:
    """Write the files as Kafka's console consumer prints topics, as far as they had come at some time."""
    records = [record for record in run.log.records if record.append_ms <= upto_ms]
    lines = [_printed(r.append_ms, r.partition, r.offset, b"null" if r.value is None else r.value) for r in records]
    (folder / "heartbeats").write_bytes(b"".join(lines))
    for name, wanted in (("expirations", True), ("triggers", False)):
        written = [
            t for t in run.written if isinstance(t.row, ExpirationRow) == wanted and t.row.detected_ms <= upto_ms
        ]
        rows = [_printed(t.append_ms, t.partition, t.offset, msgspec.json.encode(t.row)) for t in written]
        (folder / name).write_bytes(b"".join(rows))
    by_place = {(record.partition, record.offset): record for record in records}
    rejects = [
        {"topic": "t", "partition": r.partition, "offset": r.offset, "cause": r.cause, "append_ms": record.append_ms}
        for r in run.rejected
        if (record := by_place.get((r.partition, r.offset)))
    ]
    (folder / "rejects").write_bytes(b"".join(msgspec.json.encode(reject) + b"\n" for reject in rejects))


def _audit(folder: Path, *flags: str) -> int:
    names = ("heartbeats", "expirations", "triggers", "rejects")
    files = [word for name in names for word in (f"--{name}", str(folder / name))]
    return heartwheel(["audit", *files, *RULES, *flags])


def _report(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def test_clean_files_exit_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files that tell what the log says are clean, and the figures say how much was looked at."""
    _write(tmp_path, CLEAN)
    assert _audit(tmp_path, "--until", str(CLOCK_MS), "--json") == 0
    report = _report(capsys)
    assert (report["ok"], report["faults"], report["confirmed"]) == (True, {}, len(CLEAN.written))


def test_what_the_job_did_not_read_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Records that are too large to unpack, and skipped ones, are named with their number; one is a record."""
    report = CLEAN.audit()
    show_report(msgspec.structs.replace(report, unread=1, skipped=2_000), as_json=False)
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith("1 record not read, too large to unpack")
    assert second == "2,000 records left out, because heartwheel skip told the job to"


def test_what_is_after_the_end_is_pending(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is due after the time that is judged is neither missed nor called early."""
    run = copy.copy(CLEAN)
    last_ms = max(each.row.detected_ms for each in run.written)
    run.written = [each for each in run.written if each.row.detected_ms < last_ms]
    _write(tmp_path, run)
    unwritten = [each.row for each in CLEAN.written if each.row.detected_ms == last_ms]
    first_ms = min(row.deadline_ms if isinstance(row, ExpirationRow) else row.time_ms for row in unwritten)
    until = ("--until", str(first_ms - 1))
    assert _audit(tmp_path, *until, "--json") == 0
    pending = _report(capsys)["pending"]
    assert _audit(tmp_path, *until) == 0
    shown = capsys.readouterr().out
    assert pending > 0
    assert [line.split() for line in shown.splitlines() if line.startswith("pending")] == [["pending", str(pending)]]
    assert "early" not in shown


def test_a_fault_exits_1_and_is_named_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row that is not true is shown with kind, place, group, member and what it claims; exit code 1."""
    _write(tmp_path, CLEAN)
    row = next(each.row for each in CLEAN.written if isinstance(each.row, ExpirationRow))
    forged = msgspec.json.encode(msgspec.structs.replace(row, id="f" * 32))
    with (tmp_path / "expirations").open("ab") as file:
        file.write(_printed(CLOCK_MS, 3, 4_711, forged))
    assert _audit(tmp_path, "--until", str(CLOCK_MS)) == 1
    shown = capsys.readouterr().out
    assert "forged" in shown
    assert "expirations 3@4711" in shown
    assert str(row.member_id) in shown


def test_a_state_carries_on_where_a_run_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs over files that grow come to what one run over all comes to, though each reads its part alone."""
    state = tmp_path / "audit.state"
    clocks = sorted({t.row.detected_ms for t in CLEAN.written if getattr(t.row, "lateness_ms", 0) > 0})
    assert len(clocks) > 2
    for clock_ms in clocks:
        # More is in the files already than the job had decided by its clock.
        _write(tmp_path, CLEAN, upto_ms=clock_ms + 2_000)
        assert _audit(tmp_path, "--until", str(clock_ms - 1), "--state", str(state), "--json") == 0
        capsys.readouterr()
    assert _audit(tmp_path, "--until", str(CLOCK_MS), "--state", str(state), "--json") == 0
    report = _report(capsys)
    assert (report["events"], report["confirmed"]) == (len(CLEAN.log.records), len(CLEAN.written))


def test_the_clock_comes_from_the_status_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --until it judges up to the clock that is proven, and says what to do if none is."""
    _write(tmp_path, CLEAN)
    status = tmp_path / "status"
    flags = ("--status", str(status), "--set", "engine.shards=1", "--json")
    status.write_text("")
    assert _audit(tmp_path, *flags) == 1
    assert "--until" in capsys.readouterr().err
    rows = [{"shard": 0, "batch_ms": t + 600, "clock_ms": t, "held": False} for t in (CLOCK_MS, CLOCK_MS + 1_000)]
    status.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert _audit(tmp_path, *flags, "--late", "1h") == 0
    assert _report(capsys)["clock_ms"] == CLOCK_MS - 1
    status.write_text(json.dumps({**rows[0], "shard": 5}) + "\n")
    assert _audit(tmp_path, *flags) == 1
    assert "shard 5" in capsys.readouterr().err


def test_plain_lines_of_replay_are_read_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log as `heartwheel replay` takes it has its times in `t_ms`, and garbage has that of the line before."""
    beat = {"group_id": "g", "member_id": "m", "session_timeout_ms": 1_000}
    lines = [json.dumps({"t_ms": T0, **beat}), "garbage", json.dumps({"t_ms": T0 + 500, **beat})]
    lines.append(json.dumps({"t_ms": T0 + 9_000, "type": "tick"}))
    (tmp_path / "heartbeats").write_text("\n".join(lines) + "\n")
    for name in ("expirations", "triggers", "rejects"):
        (tmp_path / name).write_text("")
    assert _audit(tmp_path, "--until", str(T0 + 9_000), "--json") == 1
    report = _report(capsys)
    assert report["faults"] == {"missed": 4, "reject_missing": 1}
    assert [f["time_ms"] for f in report["findings"] if f["member_id"]] == [T0 + 1_500]
    assert [(f["offset"], f["time_ms"]) for f in report["findings"] if f["kind"] == "reject_missing"] == [(1, T0)]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--heartbeats", "x"], "are read together"),
        (["--late", "soon"], "--late"),
        (["--allow-late", "10..5"], "FROM..TO"),
        (["--set", "engine.shards=0"], "engine.shards"),
    ],
)
def test_wrong_usage_exits_2(flags: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is asked for wrongly is refused before anything is read."""
    assert heartwheel(["audit", *flags]) == 2
    assert words in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that cannot be read is named, with what to do."""
    assert _audit(tmp_path, "--until", "1") == 1
    assert f"{tmp_path}/rejects cannot be read" in capsys.readouterr().err


def test_a_broken_state_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A state file that is none is refused, and left as it is."""
    _write(tmp_path, CLEAN)
    (tmp_path / "audit.state").write_bytes(b"nonsense")
    assert _audit(tmp_path, "--until", str(CLOCK_MS), "--state", str(tmp_path / "audit.state")) == 1
    assert "start again without it" in capsys.readouterr().err
    assert (tmp_path / "audit.state").read_bytes() == b"nonsense"


def test_the_audit_takes_every_rule_that_can_be_set() -> None:
    """One that it does not know it would ignore, and judge by its own default."""
    settings = load_settings(None, {}, []).settings
    rules = settings.coordinator.model_dump(by_alias=False)
    config = audit_config(settings)
    assert {name: getattr(config, name, None) for name in rules} == rules
    assert CoordinatorConfig(**rules | {"group_overrides": ()}) == CoordinatorConfig()
