"""A file is named as what it is: a log of another kind, no log at all, or one that only quotes a coordinator."""

from __future__ import annotations

from pathlib import Path

import pytest

from heartwheel.front.cli.app import run
from support.scripted_log import lines_of, read, stable

CONTEXT = "[Consumer clientId=orders-2, groupId=orders]"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("server.log", b"", "an empty file"),
        ("server.log", bytes(range(256)) * 20, "no text"),
        ("00000000000000000000.log", b"x" * 100, "a file of a partition"),
        ("a.log", b"[2026-11-22 02:12:24,836] INFO [Consumer clientId=a, groupId=b] Subscribed (x.Y)\n", "consumer's log that says nothing"),
        ("a.log", b"[2026-11-22 02:12:24,836] TRACE [Broker id=1] Handling LeaderAndIsr (state.change.logger)\n", "state-change log"),
        ("a.log", b"[2026-11-22 02:12:24,836] DEBUG Completed request:{} (kafka.request.logger)\n", "kafka-request.log"),
        ("a.log", b"2026-11-22 12:00:00 INFO com.example.App started\n", "no log of Kafka's"),
        ("a.log", b"[2026-11-22 02:12:24,836] INFO started (kafka.server.KafkaServer)\n", "above INFO"),
    ],
)  # fmt: skip
def test_other_files_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, text: bytes, words: str
) -> None:
    """Who gives the wrong file is told which one it is."""
    (tmp_path / name).write_bytes(text)
    run(["explain", str(tmp_path / name)])
    assert words in capsys.readouterr().err


EVENT = b'{"t_ms":1795239789947,"type":"join","group_id":"orders","member_id":"","client_id":"py"}\n'


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("events.jsonl", EVENT, "heartwheel replay"),
        ("a.bin", bytes(range(256)) * 20, "name a broker's log"),
        ("00000000000000000000.log", b"x" * 100, "name a broker's log"),
        ("a.md", b"# Kafka\n\nThe text of a page.\n", "name a broker's log"),
        ("gc.log", b"[2026-11-22T02:12:24.836+0000][info][gc] GC(0) Pause Young (G1 Evacuation Pause)\n", "name a broker's log"),
    ],
)  # fmt: skip
def test_no_log_is_bad_input(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, text: bytes, words: str
) -> None:
    """A script sees that no line was of a broker's or a consumer's log, as with an empty one; its page ends."""
    (tmp_path / name).write_bytes(text)
    for options in ([], ["--json"], ["--fail-on-expired"], ["--page", "--port", "0"]):
        assert run(["explain", str(tmp_path / name), *options]) == 1
        err = capsys.readouterr().err.replace("\n", " ")
        assert "error: no line of a broker's or a consumer's log was read" in err
        assert words in err
    (tmp_path / "server.log").write_text(lines_of((0, stable(4, "orders"))))
    assert run(["explain", str(tmp_path / name), str(tmp_path / "server.log")]) == 0


def test_a_log_without_groups_is_no_bad_input(tmp_path: Path) -> None:
    """A broker may coordinate no group, and a consumer may say nothing of its own."""
    (tmp_path / "a.log").write_text("[2026-11-22 02:12:24,836] INFO started (kafka.server.KafkaServer)\n")
    assert run(["explain", str(tmp_path / "a.log")]) == 0
    (tmp_path / "a.log").write_text(f"[2026-11-22 02:12:24,836] INFO {CONTEXT} Subscribed (x.Y)\n")
    assert run(["explain", str(tmp_path / "a.log")]) == 0


LIFE = b'{"type":"life","turn":"started","group_id":"g1","member_id":"m-1","session_timeout_ms":6000,"at_ms":1}\n'
ACTION = b'{"t_ms": 1795313517117, "action": "scenario_starts"}\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "x.jsonl: an empty file"),
        (EVENT, "x.jsonl: heartwheel's own events"),
        (LIFE, "x.jsonl: heartwheel's own truth about simulated clients"),
        (ACTION, "x.jsonl: heartwheel's own truth about simulated clients"),
        (b"{}\n", "x.jsonl: it seems to be no log of Kafka's"),
    ],
)
def test_our_own_files_are_known_for_certain(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: bytes, words: str
) -> None:
    """Only what is guessed seems to be something."""
    (tmp_path / "x.jsonl").write_bytes(text)
    assert run(["explain", str(tmp_path / "x.jsonl")]) == 1
    assert words in capsys.readouterr().err.replace("\n", " ").replace(f"{tmp_path}/", "")


QUOTED = "The prefix of such a line is `[GroupCoordinator id=...]`, and older brokers write [GroupCoordinator 1]: so.\n"


@pytest.mark.parametrize("text", [QUOTED, "[2026-11-22 02:12:24,836] [GroupCoordinator is not a broker's line\n"])
def test_a_text_about_coordinators_is_no_log(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> None:
    """A line counts if it names its broker and has a time, or follows one that has."""
    (tmp_path / "notes.md").write_text(text)
    assert run(["explain", str(tmp_path / "notes.md")]) == 1
    assert "no line of a broker's or a consumer's log was read" in capsys.readouterr().err
    _, _, scanned = read(tmp_path, text)
    assert (scanned.coordinator_lines, scanned.unknown_lines) == (0, 0)


def test_a_consumers_log_may_quote_a_coordinator(tmp_path: Path) -> None:
    """It is read as what it is."""
    text = f"[2026-11-22 02:12:24,836] INFO {CONTEXT} (Re-)joining group; see [GroupCoordinator in the manual (x.Y)\n"
    text += (
        f"[2026-11-22 02:12:25,836] INFO {CONTEXT} Successfully joined group with generation "
        "Generation{generationId=4, memberId='a-1', protocol='range'} (x.Y)\n"
    )
    _, (event,), scanned = read(tmp_path, text)
    assert (event.group_id, event.generation_id) == ("orders", 4)
    assert (scanned.client_lines, scanned.coordinator_lines) == (1, 0)
