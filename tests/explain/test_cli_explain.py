"""`heartwheel explain`: what a person types, what a script reads, and what it costs."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from heartwheel.front.cli.app import run
from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.follow import follow
from heartwheel.sources.explain.layouts import Layout
from heartwheel.sources.explain.order import in_order
from heartwheel.sources.explain.run import follow_logs
from heartwheel.sources.explain.scan import FactReader, Scanned
from support.broker_logs import REAL
from support.job import wait_for
from support.scripted_log import lines_of

LOG = str(REAL / "server.log")
SCHEMA = Path(__file__).parents[2] / "conf" / "schemas" / "explained-events.schema.json"


def _rows(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_it_needs_neither_spark_nor_kafka_nor_numpy() -> None:
    """Explaining loads no module of Spark, of a Kafka client, or of the engine's arrays: it starts at once."""
    code = (
        "import sys; from heartwheel.front.cli.app import run\n"
        f"assert run(['explain', {LOG!r}, '--json']) == 0\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) > 50
    assert {"pyspark", "py4j", "kafka", "pandas", "numpy", "pyarrow"} & set(
        done.stderr.splitlines()[-1].split()
    ) == set()


@pytest.mark.parametrize("words", [["--config", "missing.toml"], ["--set", "engine.shardz=3"], ["--set", "x"]])
def test_a_wrong_configuration_is_not_ignored(words: list[str]) -> None:
    """Only a page and causes need one, but a named one is meant."""
    assert run(["explain", LOG, *words]) == 2


@pytest.mark.parametrize(
    "words", [["--port", "0"], ["--host", "::1"], ["--open"], ["--insecure"], ["--page", "--json"]]
)
def test_words_about_a_page_are_not_ignored(words: list[str]) -> None:
    """Without a page they would have no effect, and a page prints no lines."""
    assert run(["explain", LOG, *words]) == 2


def test_people_read_who_why_and_what_to_change(capsys: pytest.CaptureFixture[str]) -> None:
    """Events in the order of time, each first one of its kind explained, and a verdict for each group."""
    assert run(["explain", LOG]) == 0
    out, err = capsys.readouterr()
    text = " ".join(out.split())
    assert (
        "orders-2-84dde529-9d77-47b3-9df6-7a511f0d7b7c session timeout, generation 2; the rebalance took 143 ms" in text
    )
    assert "took itself out: poll timeout, generation 1" in text
    assert "billing: Once a member took itself out by a poll timeout: billing-1" in text
    assert "lower max.poll.records so that a batch is smaller, or raise max.poll.interval.ms" in text
    assert "waited for search-3-7e035d05" in text
    assert "17 rebalances in 37.8 s, began with deploys-0" in text
    assert f"{LOG}:926" in text
    assert "1,322 lines, 256 of group coordinators" in err


def test_scripts_read_json(capsys: pytest.CaptureFixture[str]) -> None:
    """One object a line on stdout, as the schema that ships says."""
    assert run(["explain", LOG, "--json"]) == 0
    schema = json.loads(SCHEMA.read_text())
    rows = _rows(capsys.readouterr().out)
    for row in rows:
        jsonschema.validate(row, schema)
    assert [row["time_ms"] for row in rows] == sorted(row["time_ms"] for row in rows)
    (expired,) = [row for row in rows if row["kind"] == "expired" and row["group_id"] == "orders"]
    assert expired["evidence"] == {"file": LOG, "line": 926}
    assert (expired["client_id"], expired["generation_id"], expired["reason"]) == ("orders-2", 2, "session_timeout")


def test_only_what_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    """By group, by member under any of its names, and by time."""
    assert run(["explain", LOG, "--json", "--group", "billing"]) == 0
    assert {row["group_id"] for row in _rows(capsys.readouterr().out)} == {"billing"}
    assert run(["explain", LOG, "--json", "--member", "billing-1"]) == 0
    assert [row["kind"] for row in _rows(capsys.readouterr().out)] == ["poll_timeout"]
    times = ["--since", "2026-11-22T02:12:24", "--until", "2026-11-22 02:12:25+00:00"]
    assert run(["explain", LOG, "--json", *times]) == 0
    assert [row["kind"] for row in _rows(capsys.readouterr().out)] == ["expired", "rebalance"]


def test_the_summary_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """A line a group: kicks by cause, rebalances and what they cost, the worst member; or JSON."""
    assert run(["explain", LOG, "--summary"]) == 0
    out = capsys.readouterr().out
    assert "deploys-" not in out
    assert run(["explain", LOG, "--summary", "--json"]) == 0
    rows = {row["group_id"]: row for row in _rows(capsys.readouterr().out)}
    assert rows["orders"]["kicks"] == {"expired": 1}
    assert (rows["deploys"]["rebalances"], rows["deploys"]["storms"], rows["deploys"]["leaves"]) == (17, 1, 8)
    assert rows["search"]["verdict"][-1].startswith("Make its work on one batch of records faster")
    assert (rows["search"]["members"], rows["orders"]["empty_since_ms"]) == (3, 1_795_313_569_173)


def test_exit_codes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """1 if a member was thrown out and a script asked for that, else 0; 2 for wrong usage; a missing file is one line."""
    assert run(["explain", LOG, "--fail-on-expired"]) == 1
    assert run(["explain", LOG, "--group", "clicks", "--fail-on-expired"]) == 0
    capsys.readouterr()
    assert run(["explain", str(tmp_path / "none.log")]) == 1
    err = capsys.readouterr().err
    assert "none.log cannot be read" in err
    assert "Traceback" not in err
    assert run(["explain", LOG, "--utc-offset", "soon"]) == 2
    assert run(["explain", LOG, "--since", "soon"]) == 2
    assert run(["explain", str(tmp_path)]) == 1
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b\x08junk")
    assert run(["explain", str(tmp_path / "bad.gz")]) == 1


def test_a_log_of_no_coordinator_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A broker that coordinates nothing, or logs too little, differs from one where nothing happened."""
    (tmp_path / "other.log").write_text(
        "[2026-11-22 02:12:24,836] INFO nothing of the kind (kafka.server.KafkaServer)\n"
    )
    assert run(["explain", str(tmp_path / "other.log")]) == 0
    assert "no line of a group coordinator" in capsys.readouterr().err


def test_unknown_lines_are_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What looks like a coordinator's line and is not understood is counted, and shown with its place."""
    lines = "[2026-11-22 02:12:24,836] INFO [GroupCoordinator 1]: Member {} of group g was evicted. (a.B)\n"
    (tmp_path / "new.log").write_text("".join(lines.format(f"m-{n}") for n in range(3)))
    assert run(["explain", str(tmp_path / "new.log")]) == 0
    assert "not understood: 3 lines of coordinators" in capsys.readouterr().err
    assert run(["explain", str(tmp_path / "new.log"), "--unknown"]) == 0
    out = capsys.readouterr().out
    assert out.split()[0] == "3"
    assert "new.log:1" in out


def test_stdin_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`kubectl logs kafka-0 | heartwheel explain -`."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(LOG).read_bytes())))
    assert run(["explain", "-", "--json", "--group", "orders"]) == 0
    rows = _rows(capsys.readouterr().out)
    assert [row["kind"] for row in rows].count("expired") == 1
    assert rows[0]["evidence"]["file"] == "-"


def test_what_a_client_says_is_harmless_for_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Escape sequences in a client's own words are written out, not sent to the terminal."""
    line = "[2026-11-22 02:12:24,836] INFO [GroupCoordinator id=1 topic=t partition=0] [Group g] Member m has left group through explicit `LeaveGroup` request; client reason: \x1b]0;owned\x07bye\n"
    (tmp_path / "evil.log").write_text(line)
    assert run(["explain", str(tmp_path / "evil.log")]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_facts_beyond_memory_are_sorted_on_disk() -> None:
    """However many there are, they come in the order of time, each once, and only so many are held."""
    facts = [Fact(order_ms=(number * 7_919) % 5_000, line=number, group_id=f"g{number}") for number in range(5_000)]
    spilled = list(in_order(facts, facts_max=300))
    assert spilled == list(in_order(facts))
    assert [fact.order_ms for fact in spilled] == sorted(fact.order_ms for fact in facts)


def test_following_reads_on_as_logs_grow(tmp_path: Path) -> None:
    """What is appended to any of several logs is explained, in the order of time, and through a rotation."""
    text = Path(LOG).read_text().splitlines(keepends=True)
    first, second = tmp_path / "b1.log", tmp_path / "b2.log"
    first.write_text("".join(text[:900]))
    second.write_text("")
    events, over = [], threading.Event()

    def read() -> None:
        for some in follow_logs(
            [str(first), str(second)], Scanned(), stdin=io.BytesIO(), go_on=lambda: not over.is_set()
        ):
            events.extend(some)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        wait_for(lambda: any(event.group_id == "deploys" for event in events), "what was there before")
        with second.open("a") as more:
            more.write("".join(text[900:928])[:-40])
            more.flush()
            more.write("".join(text[900:928])[-40:])
        wait_for(lambda: any(event.kind == "expired" for event in events), "an expiry that was appended")
        first.rename(tmp_path / "b1.log.1")
        first.write_text("".join(text[928:]))
        wait_for(lambda: any(event.kind == "poll_timeout" for event in events), "what came after a rotation")
    finally:
        over.set()
        reader.join()
    assert sum(event.kind == "expired" for event in events) == 2


def test_following_a_pipe_ends_with_it() -> None:
    """`kubectl logs -f kafka-0 | heartwheel explain - --follow` ends when kubectl does."""
    command = [sys.executable, "-m", "heartwheel", "explain", "-", "--follow", "--json"]
    done = subprocess.run(command, input=Path(LOG).read_bytes(), capture_output=True, check=True, timeout=60)
    kinds = [row["kind"] for row in _rows(done.stdout.decode())]
    assert (kinds.count("expired"), kinds.count("poll_timeout")) == (2, 1)


@pytest.mark.parametrize("more", [(), ("--follow",)])
def test_a_leave_that_was_a_poll_timeout_is_counted_once(more: tuple[str, ...]) -> None:
    """What is read on takes it for a leave until the member is back."""
    log = lines_of(
        (0, "[GroupId g] Member Yk3yQq0TSVuRW1yU3oCQeg left the consumer group."),
        (9, "[GroupId g] Member Yk3yQq0TSVuRW1yU3oCQeg joins the consumer group using the consumer protocol."),
        new=True,
    )
    command = [sys.executable, "-m", "heartwheel", "explain", "-", "--summary", "--json", *more]
    done = subprocess.run(command, input=log, capture_output=True, check=True, text=True, timeout=60)
    (group,) = _rows(done.stdout)
    assert (group["leaves"], group["kicks"]) == (0, {"poll_timeout": 1})


def test_a_follower_gives_back_control_while_nothing_comes(tmp_path: Path) -> None:
    """A caller that shows a page is asked again and again, also while a log stands still."""
    log = tmp_path / "quiet.log"
    log.write_text("")
    looks = iter(range(5))
    reader = partial(FactReader, str(log), 0, Layout(), Scanned())
    assert list(follow([str(log)], [reader], Scanned(), stdin=io.BytesIO(), go_on=lambda: next(looks, 9) < 3)) == [
        [],
        [],
        [],
    ]
