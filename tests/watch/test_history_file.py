"""The history: each line of brokers' logs once, whatever ends the process, and explained as the logs are."""

from __future__ import annotations

import io
import random
import sqlite3
from pathlib import Path

import msgspec
import pytest

from heartwheel.front.cli.app import run
from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.watch.explained_history import explain_history
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.history_schema import FORMAT, FREE_SPACE, HistoryError
from heartwheel.sources.watch.watched_logs import WatchedLogs
from support.broker_logs import REAL
from support.grown_logs import GrowingLog, real_messages
from support.hostile_lines import HEAD, LOGGER, ODD, SHAPES
from support.stepping import Stepping

LOG = str(REAL / "server.log")


def whole(names: list[str]) -> tuple[list[bytes], Scanned]:
    """Explain whole logs."""
    scanned = Scanned()
    return [msgspec.json.encode(event) for event in explain_logs(names, scanned, stdin=io.BytesIO())], scanned


def kept(path: Path) -> tuple[list[bytes], Scanned]:
    """Explain a history."""
    scanned = Scanned()
    return [msgspec.json.encode(event) for event in explain_history(path, scanned)], scanned


def watch_once(path: Path, *names: str) -> None:
    """Read logs into a history to their present end."""
    clock = Stepping()
    with HistoryFile(path, writes=True) as history, WatchedLogs(names, history, clock=clock) as logs:
        for _ in range(3):
            logs.read()
            clock.now_s += 1


def test_a_full_disk_is_named_and_loses_nothing(tmp_path: Path) -> None:
    """The hint is to free space, not to move the history away; what was saved is still there."""
    file = tmp_path / "history.db"
    watch_once(file, LOG)
    before, _ = kept(file)
    with HistoryFile(file, writes=True) as history:
        history._db.execute("PRAGMA max_page_count = 1")  # SQLite makes it the present size
        with pytest.raises(HistoryError, match="disk is full") as raised:
            history.add_file("x" * 10_000_000)
        assert raised.value.hint == FREE_SPACE
    assert kept(file)[0] == before


@pytest.mark.parametrize("name", ["broker[1].log", "broker*.log", "broker?.log"])
def test_a_name_may_have_the_signs_of_a_pattern(tmp_path: Path, name: str) -> None:
    """Such a log is found again after a restart, and so is what was rotated meanwhile; the log beside it is another."""
    log, file = tmp_path / name, tmp_path / "history.db"
    line = f"{HEAD}Member m-{{}} in group g has failed, removing it from the group{LOGGER}\n"
    log.write_text(line.format(1))
    watch_once(file, str(log))
    watch_once(file, str(log))
    with log.open("a") as out:
        out.write(line.format(2))
    log.rename(f"{log}.1")
    (tmp_path / "broker1.log").write_text(line.format("other"))
    log.write_text(line.format(3))
    watch_once(file, str(log))
    with HistoryFile(file, writes=False) as history:
        assert [kept.fact.member_id for kept in history.facts()] == ["m-1", "m-2", "m-3"]


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_or_kept_twice_wherever_the_watcher_is_killed(tmp_path: Path, seed: int) -> None:
    """Two logs grow and are rotated, also while nobody reads: their history says what they say as a whole."""
    rng, clock = random.Random(seed), Stepping()
    logs = [GrowingLog(tmp_path / f"broker-{broker}.log", real_messages(rng, broker=broker), rng) for broker in (1, 2)]
    names, file = [str(log.path) for log in logs], tmp_path / "history.db"
    while not all(log.is_done for log in logs):
        with HistoryFile(file, writes=True) as history, WatchedLogs(names, history, clock=clock) as watched:
            for _ in range(rng.randrange(1, 12)):
                for log in logs:
                    log.write()
                watched.read()
                clock.now_s += rng.choice([0.1, 0.4, 1.5])
                watched.read()
                if rng.random() < 0.15:
                    rng.choice(logs).rotate()
            # It is not saved: what was read since the last transaction is read again.
        for log in logs:
            if rng.random() < 0.3:
                log.write()
                log.rotate()
    watch_once(file, *names)
    wanted, once = whole([each for log in logs for each in log.files])
    found, again = kept(file)
    assert found == wanted
    named: dict[str, object] = {
        "bytes": 0,
        "first_unreadable": None,
        "suspicious_lines": [],
    }  # of packed files, and by other names
    counted = [msgspec.structs.asdict(each.counts()) | named for each in (again, once)]
    assert counted[0] == counted[1]


@pytest.mark.parametrize("line", [*ODD.values(), *(shape(3_000) for shape in SHAPES.values())])
def test_a_hostile_line_costs_itself_alone(tmp_path: Path, line: str) -> None:
    """Whatever a client or a carrier makes of a line, the history says what the log says, and the next line is kept."""
    log = tmp_path / "server.log"
    good = f"{HEAD}Member good-1 in group good has failed, removing it from the group.{LOGGER}\n"
    log.write_bytes(line.encode("utf-8", "surrogatepass") + b"\n" + good.encode())
    watch_once(tmp_path / "history.db", str(log))
    found, scanned = kept(tmp_path / "history.db")
    assert found == whole([str(log)])[0]
    assert any(b"good-1" in event for event in found) or scanned.suspicious


@pytest.mark.parametrize(
    "options",
    [["--json"], ["--summary"], ["--since", "2026-11-22T02:12:30", "--group", "orders"], ["--only", "out", "--all"]],
)
def test_explain_answers_from_a_history_as_from_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """The same rows and answers on stdout, the same counts on stderr, and the same exit code."""
    watch_once(tmp_path / "history.db", LOG)
    assert run(["explain", LOG, *options]) == 0
    wanted = capsys.readouterr()
    assert run(["explain", "--history", str(tmp_path / "history.db"), *options]) == 0
    assert capsys.readouterr() == wanted


@pytest.mark.parametrize(
    "words", [[], [LOG, "--history", "h.db"], ["--history", "h.db", "--follow"], ["--history", "h.db", "--unknown"]]
)
def test_what_does_not_go_together_is_refused(words: list[str]) -> None:
    """A history is read in place of logs, as it is; without either there is nothing to read."""
    assert run(["explain", *words]) == 2


def test_a_history_of_a_newer_release_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is neither read nor written, and both formats are named."""
    file = tmp_path / "history.db"
    watch_once(file, LOG)
    with sqlite3.connect(file) as database:
        database.execute(f"PRAGMA user_version = {FORMAT + 1}")
    database.close()
    assert run(["explain", "--history", str(file)]) == 1
    assert f"has format {FORMAT + 1}, this release knows {FORMAT}" in capsys.readouterr().err
    with pytest.raises(HistoryError, match="has format"):
        HistoryFile(file, writes=True)


def test_what_is_no_history_is_left_alone(tmp_path: Path) -> None:
    """Another database, a text or nothing at all is an error that names it."""
    other, text = tmp_path / "other.db", tmp_path / "text.db"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE t (a)")
    database.close()
    text.write_text("no database " * 100)
    for file in (other, text, tmp_path / "none.db"):
        with pytest.raises(HistoryError, match=file.name):
            HistoryFile(file, writes=False)
    for file in (other, text):
        before = file.read_bytes()
        with pytest.raises(HistoryError, match=file.name):
            HistoryFile(file, writes=True)
        assert file.read_bytes() == before


def test_one_process_writes_a_history(tmp_path: Path) -> None:
    """A second writer is refused; readers are not."""
    file = tmp_path / "history.db"
    watch_once(file, LOG)
    with HistoryFile(file, writes=True):
        with pytest.raises(HistoryError, match="another heartwheel watch"):
            HistoryFile(file, writes=True)
        assert kept(file)[0]
    assert file.stat().st_mode & 0o077 == 0


def test_what_is_old_or_too_much_is_removed(tmp_path: Path) -> None:
    """What is left is explained as a log that begins there, and the file is smaller."""
    file = tmp_path / "history.db"
    logs = [str(tmp_path / f"{number}.log") for number in range(30)]
    for number, log in enumerate(logs):
        text = (REAL / "server.log").read_text()
        Path(log).write_text(text.replace("group orders", f"group orders-{number}"))
    watch_once(file, *logs)
    size = file.stat().st_size
    with HistoryFile(file, writes=True) as history:
        assert history.trim(before_ms=0, bytes_max=size * 2) == 0
        assert history.trim(before_ms=0, bytes_max=size // 2) > 0
        assert history.is_trimmed
    assert file.stat().st_size < size
    found, scanned = kept(file)
    assert found
    assert "orders-29" in scanned.groups
    with HistoryFile(file, writes=True) as history:
        history.trim(before_ms=1 << 50, bytes_max=size)
        assert history.newest > 0
    assert kept(file)[0] == []
    watch_once(file, *logs)
    assert kept(file)[0] == []
