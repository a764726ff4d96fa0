"""The demo, whole: a broker, members that die, the job and the judge, as a person starts it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from playwright.sync_api import Browser

from heartwheel.front.cli import demo
from heartwheel.front.cli.app import run
from heartwheel.front.cli.inspect_state import open_manifest
from heartwheel.front.demo.folder import DemoFolderError, fresh_folder
from support.browser import CHROMIUM, NO_CHROMIUM
from support.demo_page import Sight, look_at
from support.job import FIRST_COMPILER, wait_for

SMALL = ["--groups", "3", "--members", "4", "--kill-rate", "6", "--set", "engine.shards=2"]
"""Few members, of whom one in a beat of two seconds and five dies."""

QUICK = ["--set", f"spark.conf.{FIRST_COMPILER}"]
"""What makes Spark itself cheaper, for a minute's work."""


class Ended(NamedTuple):
    """Hold a demo that has ended: its exit code, what it printed, its report, where it was, what its page showed."""

    code: int
    out: str
    err: str
    report: dict[str, Any]
    folder: Path
    page: Sight | None = None


def test_a_taken_port_is_told_before_a_broker_is_started(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Who chose a port that is taken hears it at once; nothing is fetched, cleared or started before."""

    def fetch(_which: str) -> list[Path]:
        pytest.fail("it goes on")

    monkeypatch.setattr(demo, "fetch_shown", fetch)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for options in ([], ["--real"]):
            assert run(["demo", "--folder", str(tmp_path), "--set", f"dashboard.port={port}", *options]) == 1
            assert f"the dashboard cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


@pytest.mark.parametrize(("duration", "hint"), [("5", "write 5s for seconds"), ("soon", "a duration")])
def test_duration_without_its_unit_is_wrong_usage(
    duration: str, hint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A length without a unit is refused under the option's own name, before anything is fetched."""
    monkeypatch.setattr(demo, "fetch_shown", lambda _which: pytest.fail("it goes on"))
    assert run(["demo", "--duration", duration]) == 2
    err = capsys.readouterr().err
    assert "'--duration'" in err
    assert hint in err


def _command(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "heartwheel", "demo", "--folder", str(folder), *SMALL, *QUICK, *more]


def _ended(process: subprocess.Popen[bytes], folder: Path, report: Path) -> Ended:
    process.wait()
    out, err = (folder.with_suffix(suffix).read_text() for suffix in (".out", ".err"))
    return Ended(process.returncode, out, err, json.loads(report.read_text()), folder)


def _run_demo(root: Path, *more: str, until: Callable[[str], bool] | None = None) -> Ended:
    folder, report = root / "demo", root / "reports" / "demo.json"
    command = _command(folder, "--json", str(report), *more)
    with (
        folder.with_suffix(".out").open("wb") as out,
        folder.with_suffix(".err").open("wb") as err,
        subprocess.Popen(command, stdout=out, stderr=err) as process,
    ):
        try:
            if until is not None:
                seen = folder.with_suffix(".out")
                wait_for(lambda: process.poll() is not None or until(seen.read_text()), "the demo to show it")
                process.send_signal(signal.SIGINT)
            return _ended(process, folder, report)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Ended:
    """Run a demo until it has shown an expiration, look at its page if there is a browser, then press Ctrl-C."""
    browser: Browser | None = request.getfixturevalue("browser") if CHROMIUM else None
    seen: list[Sight] = []

    def looked(out: str) -> bool:
        if "  expired  " not in out:
            return False
        if browser is not None:
            seen.append(look_at(browser, out.split(maxsplit=1)[0]))
        return True

    # In a folder with spaces in its path.
    return _run_demo(tmp_path_factory.mktemp("a demo"), until=looked)._replace(page=seen[0] if seen else None)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Run a demo that ends by itself."""
    return _run_demo(tmp_path_factory.mktemp("finished"), "--duration", "10s")


@pytest.fixture(params=["interrupted", pytest.param("finished", marks=pytest.mark.proof)])
def ended(request: pytest.FixtureRequest) -> Ended:
    """Return a demo that Ctrl-C has ended, which also judges what is due by then, and one that its duration has."""
    demo: Ended = request.getfixturevalue(request.param)
    return demo


@pytest.mark.spark
@pytest.mark.kafka
def test_demo_expires_the_dead_and_nobody_else(ended: Ended) -> None:
    """P1, P2, P3: however the demo ends, it ends in order, and every silence of the log was expired exactly once.

    Its groups are of both protocols, and their rebalances and arrivals are judged, too.
    """
    report = ended.report
    assert (ended.code, report["ok"]) == (0, True), ended.err
    assert (report["false"], report["missed"], report["conflicting"], report["unread"]) == (0, 0, 0, 0)
    assert report["killed"] > 0
    assert report["expired"] == report["expected"] > 0
    assert report["triggers_written"] == report["triggers_expected"] > report["rebalances_begun"] > 0
    assert report["members"] == 12
    assert report["heartbeats"] > report["members"]
    late = report["lateness_ms"]
    assert 0 <= late["p50"] <= late["p99"] <= late["max"]


@pytest.mark.spark
@pytest.mark.kafka
def test_demo_prints_a_line_for_each_expiration(ended: Ended) -> None:
    """Every expiration and every group's rebalance is a line on stdout; progress and where to look go to stderr."""
    lines = [line.split() for line in ended.out.splitlines()]
    expired = [line for line in lines if line[1:2] == ["expired"] and line[2] != "0"]
    assert len([line for line in expired if "silent" in line]) == ended.report["expired"]
    assert {line[1] for line in lines if len(line) > 1} >= {"rebalance", "presence"}
    assert ended.out.startswith("http://127.0.0.1:")
    assert "s after the command began" in ended.out
    for word in ("broker", "topics", "checkpoint", "logs", "live"):
        assert word in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.ui
def test_killed_member_is_on_the_page(interrupted: Ended) -> None:
    """From the feeder through Kafka and Spark to a real browser: who was expired is there, with reason and lateness."""
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    assert interrupted.page is not None
    cells, row, health, complaints = interrupted.page
    assert (cells[1], row["reason"]) == ("Silent", "session_timeout")
    assert cells[2].split("\n")[0] == row["group_id"]
    assert row["member_id"] in interrupted.out
    late_ms = row["known_late_ms"]
    # As the page's `duration` shows it: JavaScript rounds a half up, Python to the even digit.
    seconds = Decimal(late_ms / 1_000).quantize(Decimal("0.1" if late_ms < 10_000 else "1"), ROUND_HALF_UP)
    assert cells[5].split("\n")[0] == (f"{late_ms} ms" if late_ms < 1_000 else f"{seconds} s".replace(".0 ", " "))
    assert row["silent_ms"] == row["session_timeout_ms"] + row["lateness_ms"]
    assert health == "Healthy" or "warning" in health
    assert complaints == []


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.proof
def test_inspect_reads_the_checkpoint_of_a_stopped_job(finished: Ended) -> None:
    """`inspect` shows shards, groups and members as the job left them, with neither Kafka nor the job running."""
    location = finished.folder / "checkpoint"
    command = [sys.executable, "-m", "heartwheel", "inspect", "--checkpoint", str(location), "--groups", "--json"]
    done = subprocess.run([*command, *QUICK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    manifest, batch_id = open_manifest(str(location))
    assert (found["manifest"], found["batch_id"]) == (msgspec.to_builtins(manifest), batch_id)
    assert [shard["shard"] for shard in found["shards"]] == [0, 1]
    fed = {group["group_id"] for group in found["groups"] if not group["group_id"].startswith("heartwheel-canary")}
    assert fed == {"orders", "payments", "invoices"}
    assert sum(shard["members"] for shard in found["shards"]) == sum(group["members"] for group in found["groups"]) > 0
    for shard in found["shards"]:
        assert shard["members"] == sum(g["members"] for g in found["groups"] if g["shard"] == shard["shard"])


def test_a_folder_that_is_not_a_demos_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The demo clears its folder, so it refuses one that holds anything else."""
    precious = tmp_path / "checkpoint" / "precious"
    precious.parent.mkdir()
    precious.touch()
    assert run(["demo", "--folder", str(tmp_path)]) == 1
    assert "--folder" in capsys.readouterr().err
    assert precious.exists()


def test_a_demo_clears_what_the_last_one_left(tmp_path: Path) -> None:
    """Each demo starts on a checkpoint of its own; one folder holds one demo at a time."""
    with fresh_folder(tmp_path / "demo") as folder:
        folder.checkpoint.mkdir()
        folder.truth.touch()
        with pytest.raises(DemoFolderError, match="another demo runs"), fresh_folder(tmp_path / "demo"):
            pass
    with fresh_folder(tmp_path / "demo") as folder:
        assert not folder.checkpoint.exists()
        assert not folder.truth.exists()


def test_demo_defaults_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the demo prefers is a default: a flag, the environment or a file goes over it."""
    monkeypatch.setenv("HEARTWHEEL_SPARK__DRIVER_MEMORY", "2GiB")
    settings = demo.demo_settings(None, ["engine.tick_interval=300ms"])
    assert (settings.engine.tick_interval_ms, settings.spark.driver_memory_bytes) == (300, 2**31)
    assert settings.feed.kill_rate == float(demo.DEMO_DEFAULTS["feed.kill_rate"])
