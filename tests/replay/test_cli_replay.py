"""`heartwheel replay`: data on stdout, everything else on stderr, and exit codes a script can rely on."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from heartwheel.engine.replay.lines import T_MS_MAX
from heartwheel.front.cli.app import run
from support.broker_logs import REAL

SERVER_LOG = REAL / "server.log"
RECORDINGS = Path(__file__).parents[1] / "recordings"


def _beat(t_ms: int, member: str = "m", **more: Any) -> dict[str, Any]:
    return {"t_ms": t_ms, "group_id": "g", "member_id": member, "session_timeout_ms": 10_000} | more


def _write(path: Path, lines: Sequence[dict[str, Any] | str]) -> str:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return str(path)


def _verdicts(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_replay_needs_neither_spark_nor_kafka() -> None:
    """A replay loads no module of Spark or of a Kafka client."""
    log = RECORDINGS / "kill-one" / "events.jsonl"
    code = (
        "import sys; from heartwheel.front.cli.app import run\n"
        f"assert run(['replay', {str(log)!r}]) == 0\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 14
    assert {"pyspark", "py4j", "kafka", "pandas"} & set(done.stderr.splitlines()[-1].split()) == set()


@pytest.mark.parametrize("name", ["kill-one", "never-rejoins", "static-back-in-time", "mixed-clients"])
def test_recordings_replay_as_they_are(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A recording is replayed under the settings beside it, and tells what the broker has decided."""
    assert run(["replay", str(RECORDINGS / name / "events.jsonl")]) == 0
    out, err = capsys.readouterr()
    verdicts = _verdicts(out)
    decided = [json.loads(line) for line in (RECORDINGS / name / "verdicts.jsonl").read_text().splitlines()]

    def shown(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
        return sorted((row["group_id"], row["kind"], row["member_id"] or "") for row in rows)

    assert shown(verdicts) == shown(decided)
    assert [verdict["t_ms"] for verdict in verdicts] == sorted(verdict["t_ms"] for verdict in verdicts)
    assert "meta.json" in err


def test_line_of_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An expiration tells its deadline, who and why, in the recordings' words, under the id that the job gives."""
    assert run(["replay", _write(tmp_path / "log", [_beat(0), _beat(8_000)]), "--until", "18000"]) == 0
    expired = next(v for v in _verdicts(capsys.readouterr().out) if v["kind"] == "member_expired")
    assert expired | {"id": ""} == {
        "t_ms": 18_000,
        "kind": "member_expired",
        "group_id": "g",
        "member_id": "m",
        "generation_id": 1,
        "reason": "Member m in group g has failed, removing it from the group.",
        "id": "",
        "cause": "member_expired",
        "expiry_reason": "session_timeout",
        "last_seen_ms": 8_000,
        "session_timeout_ms": 10_000,
        "group_state": "Stable",
    }
    assert len(expired["id"]) == 32


@pytest.mark.parametrize(("until", "expired"), [([], 0), (["--until", "17999"], 0), (["--until", "18000"], 1)])
def test_until_advances_the_clock(
    until: list[str], expired: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The clock stops at the last event, or at `--until`; a deadline is past when the clock is at it."""
    assert run(["replay", _write(tmp_path / "log", [_beat(0), _beat(8_000)]), *until]) == 0
    assert sum(v["kind"] == "member_expired" for v in _verdicts(capsys.readouterr().out)) == expired


def test_time_ends_with_the_year_9999(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A time that cannot be meant is refused on a line and as `--until` alike; the last one that can be, works."""
    last = T_MS_MAX
    log = _write(tmp_path / "log", [_beat(last), _beat(last + 1, "n")])
    assert run(["replay", log, "--until", str(last)]) == 1
    assert "line 2" in capsys.readouterr().err
    assert run(["replay", log, "--until", str(last + 1)]) == 2


def test_bad_lines_are_named_and_the_rest_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bad lines are named with their number on stderr and counted, the exit code is 1, all the others are replayed."""
    log = _write(tmp_path / "log", [_beat(0), "{", _beat(5), "", {"t_ms": 1, "member_id": "m"}, _beat(8_000)])
    assert run(["replay", log, "--until", "20000"]) == 1
    out, err = capsys.readouterr()
    assert [v["t_ms"] for v in _verdicts(out) if v["kind"] == "member_expired"] == [18_000]
    told = err.splitlines()
    assert [line.split(":")[0] for line in told[:3]] == ["line 2", "line 4", "line 5"]
    assert told[3] == "left out as bad: 3 of 6 lines"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (SERVER_LOG.read_text(), "heartwheel explain"),
        ("[2026-11-22 02:12:24,836] INFO [Consumer clientId=a, groupId=b] Hm (x.Y)\n" * 9, "heartwheel explain"),
        ("[2026-11-22 02:12:24,836] DEBUG Completed request:{} (kafka.request.logger)\n" * 9, "heartwheel tap"),
        ('{"group_id": "g", "member_id": "m"}\n' * 9, "one JSON object a line"),
    ],
)  # fmt: skip
def test_a_file_of_another_kind(text: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Five of its lines are named, the others counted, and the hint is the command that reads it."""
    log = tmp_path / "server.log"
    log.write_text(text)
    assert run(["replay", str(log)]) == 1
    out, err = capsys.readouterr()
    told, lines = err.splitlines(), len(text.splitlines())
    assert out == ""
    assert [line.split(":")[0] for line in told[:5]] == [f"line {number}" for number in range(1, 6)]
    assert told[5:7] == [f"and {lines - 5:,} more", f"left out as bad: {lines:,} of {lines:,} lines"]
    assert f"has no event in {lines:,} lines" in " ".join(told[7:])
    assert hint in " ".join(told[7:])


def test_verdicts_are_no_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What replay has written is refused, as rows with a time and a group look like heartbeats; a `kind` is free."""
    log = _write(tmp_path / "log", [{**_beat(0), "kind": "mine"}, _beat(8_000)])
    assert run(["replay", log, "--until", "20000"]) == 0
    verdicts = tmp_path / "verdicts.jsonl"
    verdicts.write_text(capsys.readouterr().out)
    lines = len(verdicts.read_text().splitlines())
    assert lines > 1
    assert run(["replay", str(verdicts)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("line 1: ")
    told = " ".join(err.split())
    assert f"has no event in {lines} lines" in told
    assert "these are verdicts; replay reads the requests that they follow from" in told


def test_an_empty_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is an error, as nothing was replayed; a part of a log that goes on may be empty."""
    log, snapshot = tmp_path / "empty.jsonl", str(tmp_path / "snapshot")
    log.write_text("")
    assert run(["replay", str(log)]) == 1
    err = capsys.readouterr().err
    assert "nothing was read" in err
    assert "hint:" in err
    assert run(["replay", str(log), "--snapshot-out", snapshot]) == 0
    assert "0 verdicts" in capsys.readouterr().err
    assert run(["replay", str(log), "--snapshot-in", snapshot]) == 0


def test_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A dash reads the log from stdin."""
    text = "".join(json.dumps(_beat(t_ms)) + "\n" for t_ms in (0, 8_000))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run(["replay", "-", "--until", "18000"]) == 0
    assert _verdicts(capsys.readouterr().out)[-2]["t_ms"] == 18_000


@pytest.mark.parametrize(
    "setting", ["coordinator.default_session_timeout_ms=2000", "coordinator.default_session_timeout=2s"]
)
def test_settings_by_both_names(setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A setting goes by its name in a broker's configuration, with underscores, and by its name in ours."""
    log = _write(tmp_path / "log", [{"t_ms": 0, "group_id": "g", "member_id": "m"}])
    assert run(["replay", log, "--until", "5000", "--set", setting]) == 0
    assert [v["t_ms"] for v in _verdicts(capsys.readouterr().out) if v["kind"] == "member_expired"] == [2_000]


def test_flags_win_over_the_recordings_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--meta` takes a broker's settings from a file, names of no concern to the rules left out; `--set` wins."""
    log = _write(tmp_path / "log", [_beat(0), _beat(0, "n"), _beat(0, "o")])
    meta = tmp_path / "broker.json"
    meta.write_text('{"broker_conf": {"group.max.size": 1, "log.retention.ms": 5}}')

    def members(*flags: str) -> int:
        assert run(["replay", log, "--meta", str(meta), *flags]) == 0
        return max(int(v.get("member_count", 0)) for v in _verdicts(capsys.readouterr().out))

    assert members() == 1
    assert members("--set", "coordinator.group_max_size=2") == 2


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("coordinator.group_max_sizes=3", "did you mean"),
        ("coordinator.group_max_size=0", "must be at least 1"),
        ("coordinator.group_max_size=few", "must be a"),
        ("coordinator.group_min_session_timeout_ms=3600000", "more than group_max_session_timeout_ms"),
        ("engine.shards=x", "engine.shards"),
    ],
)
def test_wrong_setting_is_named(setting: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A setting that does not exist or cannot be is an error that names it, before a line is read."""
    assert run(["replay", "no-such-file", "--set", setting]) in (1, 2)
    err = capsys.readouterr().err
    assert words in err
    assert "no-such-file" not in err


def test_strange_meta_beside_a_log_is_not_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A `meta.json` about something else is left alone, unless it was named."""
    log = _write(tmp_path / "log", [_beat(0)])
    (tmp_path / "meta.json").write_text("[]")
    assert run(["replay", log]) == 0
    assert run(["replay", log, "--meta", str(tmp_path / "meta.json")]) == 1
    assert "broker_conf" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["no-such-file"], ["."], [__file__, "--snapshot-in", "no-such-file"]])
def test_file_that_can_not_be_read(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there is one error that names it, and no output."""
    assert run(["replay", *arguments]) == 1
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(f"error: {arguments[-1]} cannot be read")


def test_p3_cut_log_tells_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """P3: a recording that is cut in two and resumed from the snapshot tells the very bytes of the whole."""
    folder = RECORDINGS / "kill-one"
    lines = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    flags = ["--meta", str(folder / "meta.json")]
    assert run(["replay", str(folder / "events.jsonl"), *flags]) == 0
    whole = capsys.readouterr().out
    snapshot, first, second = tmp_path / "snapshot", tmp_path / "first", tmp_path / "second"
    for cut in (0, 1, len(lines) // 2, len(lines)):
        first.write_text("".join(lines[:cut]))
        second.write_text("".join(lines[cut:]))
        assert run(["replay", str(first), *flags, "--snapshot-out", str(snapshot)]) == 0
        assert run(["replay", str(second), *flags, "--snapshot-in", str(snapshot)]) == 0
        assert capsys.readouterr().out == whole


def test_p3_log_that_is_complete_up_to_a_moment_is_told_up_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """P3: with `--until` a cut tells what is decided, and the rest is told once, by the next run."""
    beats = [_beat(t_ms, member) for t_ms, member in ((0, "a"), (100, "b"), (9_000, "a"), (12_000, "c"), (21_000, "a"))]
    assert run(["replay", _write(tmp_path / "log", beats), "--until", "40000"]) == 0
    whole = capsys.readouterr().out
    snapshot = str(tmp_path / "snapshot")
    cut = ["--until", "11000", "--snapshot-out", snapshot]
    assert run(["replay", _write(tmp_path / "log", beats[:3]), *cut]) == 0
    first = capsys.readouterr().out
    assert "member_expired" in first
    assert run(["replay", _write(tmp_path / "log", beats[3:]), "--until", "40000", "--snapshot-in", snapshot]) == 0
    assert first + capsys.readouterr().out == whole
    late = ["replay", _write(tmp_path / "log", [_beat(11_000)]), "--snapshot-in", snapshot]
    assert run(late) == 1
    assert "complete up to 11000" in capsys.readouterr().err
