"""Hostile logs cost a watcher their own rows: neither page, metrics, messages, history nor memory show more of them."""

from __future__ import annotations

import gzip
import io
import re
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.watch.explained_history import explain_history
from support.job import wait_for
from support.scripted_log import START_MS, lines_of, stable
from support.watching import Receiver, running_watch, watching

NOTIFY = {"notify": {"gather": "0ms", "min_interval": "0ms"}}
FAILS = "Member {} in group {} has failed, removing it from the group"
LEAVES = (
    "Member MemberMetadata(memberId=m-1, groupInstanceId=None, clientId=c, clientHost=/10.0.0.7, "
    "sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has left group g "
    "through explicit `LeaveGroup`; client reason: "
)
LABELS = 'evil"} 1\\nheartwheel_group_trouble{group="victim'
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
MIB = 1 << 20


def now_s() -> float:
    """Return the present moment on the clock of scripted logs, seconds."""
    return time.time() - START_MS / 1000


def forged(at: float) -> str:
    """Write a leave whose reason has a line break and, behind it, the removal of a member that never was."""
    removal = lines_of((at, FAILS.format("victim-1", "victim"))).rstrip("\n")
    reason = f"so long\n{removal}\n{ESCAPES}"
    return lines_of(
        (
            at,
            f"{LEAVES}{reason}",
        )
    )


HOSTILE: dict[str, Callable[[float], str]] = {
    "a forged removal in a reason": forged,
    "escapes in ids": lambda at: lines_of((at, FAILS.format(f"evil{ESCAPES}", f"evil{ESCAPES}"))),
    "labels in an id": lambda at: lines_of((at, FAILS.format("m", LABELS))),
    "a time of the last century": lambda at: lines_of((at - 30 * 365 * 86_400, FAILS.format("evil-1", "evil"))),
    "a time of the next century": lambda at: lines_of((at + 80 * 365 * 86_400, FAILS.format("evil-1", "evil"))),
    "times that step back": lambda at: "".join(
        lines_of((at - step, FAILS.format(f"evil-{step}", "evil"))) for step in range(0, 4_000, 400)
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_line_changes_nothing_about_others(tmp_path: Path, name: str) -> None:
    """The removal behind it is on the page, in the metrics and in a message; nothing tells of the victim."""
    log, receiver = tmp_path / "server.log", Receiver()
    log.write_text(lines_of((now_s(), stable(2, "good"))))
    with watching(tmp_path, log, post=receiver, **NOTIFY) as watcher:
        with log.open("a", encoding="utf-8") as more:
            more.write(HOSTILE[name](now_s()) + lines_of((now_s(), FAILS.format("good-1", "good"))))
        wait_for(lambda: "good" in receiver.told, "a message about the removal behind it")
        rows = httpx.get(f"{watcher.url}api/expirations", params={"limit": 1_000}).json()["rows"]
        text = httpx.get(f"{watcher.url}metrics").text
    assert [row["member_id"] for row in rows if row["group_id"] == "good"] == ["good-1"]
    assert not [row for row in rows if "victim" in (row["group_id"], row["member_id"])]
    samples = [sample for family in parsed(text) for sample in family.samples]
    assert {"name": "heartwheel_group_expirations_total", "group": "good"} in [
        {"name": sample.name, **sample.labels} for sample in samples
    ]
    assert "victim" not in [value for sample in samples for value in sample.labels.values()]
    assert "victim" not in receiver.told
    words = "".join(message["text"] for message in receiver.messages)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", words)
    explained = [msgspec.json.encode(each) for each in explain_logs([str(log)], Scanned(), stdin=io.BytesIO())]
    assert [msgspec.json.encode(each) for each in explain_history(tmp_path / "history.db", Scanned())] == explained


def test_a_line_of_100_mb_takes_bounded_memory(tmp_path: Path) -> None:
    """It is counted, the removal behind it is shown, and the process has not grown by the line."""
    log = tmp_path / "server.log"
    log.write_text(lines_of((now_s(), stable(2, "good"))))
    head = lines_of((now_s(), "Member ")).partition(" (")[0].encode()
    with running_watch(tmp_path, str(log)) as (process, url):
        wait_for(lambda: httpx.get(f"{url}readyz").status_code == 200, "a watcher that has read its log")
        with log.open("ab") as more:
            more.write(head)
            for _ in range(100):
                more.write(b"a" * 1_000_000)
            more.write(b"\n" + lines_of((now_s(), FAILS.format("good-1", "good"))).encode())
        wait_for(lambda: _groups(url) == {"good"}, "the removal behind the line")
        assert 'reason="too_long"} 1' in httpx.get(f"{url}metrics").text
        assert _peak_mib(process.pid) < 384


def test_a_compressed_bomb_takes_bounded_memory(tmp_path: Path) -> None:
    """A rotated file that is a thousand times larger than it looks is read in pieces, and the next log is read on."""
    log = tmp_path / "server.log"
    first = lines_of((now_s(), stable(2, "good")))
    log.write_text(first)
    with running_watch(tmp_path, str(log)) as (_, url):
        wait_for(lambda: httpx.get(f"{url}readyz").status_code == 200, "a watcher that has read its log")
    with gzip.open(tmp_path / "server.log.1.gz", "wb", compresslevel=1) as bomb:
        bomb.write(first.encode())
        for _ in range(200):
            bomb.write(bytes(MIB))
    assert (tmp_path / "server.log.1.gz").stat().st_size < 4 * MIB
    log.write_text(lines_of((now_s(), FAILS.format("good-1", "good"))))
    with running_watch(tmp_path, str(log)) as (process, url):
        wait_for(lambda: _groups(url) == {"good"}, "the removal in the file behind the bomb")
        assert _peak_mib(process.pid) < 384


def _groups(url: str) -> set[str]:
    return {row["group_id"] for row in httpx.get(f"{url}api/expirations").json()["rows"]}


def _peak_mib(pid: int) -> float:
    """Return the most memory that a process had resident, MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024
