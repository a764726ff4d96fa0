"""The cause behind the cause in a watcher: in rows, in messages, and in the history."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import pytest

from heartwheel.front.cli.app import run
from heartwheel.readers.notify.delivery import DeliveryResult, DeliveryStatus
from heartwheel.readers.notify.message import Message
from heartwheel.settings import Settings
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.watched_causes import WatchedCauses
from support.job import wait_for
from support.kubernetes_api import KubernetesApi
from support.scripted_log import START_MS, lines_of
from support.stepping import Stepping
from support.watching import Receiver, watching

FAILS: Final = "Member {}-5f7d in group orders has failed, removing it from the group."
NOTIFY: Final = {"notify": {"gather": "0ms", "min_interval": "0ms"}}


def since() -> float:
    """Return the present moment on the clock of scripted logs, seconds."""
    return time.time() - START_MS / 1000


def killed(pod: str, before_s: float) -> str:
    """Write a pod whose container was OOM-killed."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - before_s))
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": at}
    status = {"containerStatuses": [{"name": "app", "lastState": {"terminated": ended}}]}
    containers = [{"name": "app", "resources": {"limits": {"memory": "512Mi"}}}]
    pod_of = {"kind": "Pod", "metadata": {"name": pod}, "spec": {"containers": containers}, "status": status}
    return json.dumps(pod_of) + "\n"


def test_a_cause_is_on_the_page_in_the_message_and_in_the_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pod that is noted while the watcher runs; without its file a restart still knows it, and so does explain."""
    log, causes, texts = tmp_path / "server.log", tmp_path / "pods.json", list[dict[str, Any]]()
    log.write_text(lines_of((since(), FAILS.format("old-1"))))
    causes.write_text(killed("other-1", 5))

    def post(message: Message) -> DeliveryResult:
        texts.append(msgspec.json.decode(message.body))
        return DeliveryResult(DeliveryStatus.DELIVERED)

    with watching(tmp_path, log, post=post, watch={"causes": str(causes)}, **NOTIFY):
        with causes.open("a") as more:
            more.write(killed("orders-1", 9))
        wait_for(lambda: b"orders-1" in (tmp_path / "history.db-wal").read_bytes(), "a happening that is kept")
        with log.open("a") as more:
            more.write(lines_of((since(), FAILS.format("orders-1"))))
        wait_for(lambda: texts, "a message")
    causes.unlink()
    member = texts[0]["incidents"][0]["members"][0]
    assert "Its container app was OOM-killed" in member["cause"]
    assert "OOM-killed" in texts[0]["text"]
    with watching(tmp_path, log) as watcher:
        rows = httpx.get(f"{watcher.url}api/expirations").json()["rows"]
    assert [row["cause"] == member["cause"] for row in rows] == [True, False]
    assert member["cause"] in rows[0]["explanation"]
    assert run(["explain", "--history", str(tmp_path / "history.db"), "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["causes"][0]["words"] for event in events if event.get("causes")] == [member["cause"]]


def test_a_cause_that_comes_late_reaches_all_that_showed_the_removal(tmp_path: Path) -> None:
    """Page, API, Timeline and message get it while the watcher runs, each once; a restart repeats nothing."""
    log, causes, receiver = tmp_path / "server.log", tmp_path / "pods.json", Receiver()
    log.write_text("")
    causes.write_text("")
    with watching(tmp_path, log, post=receiver, watch={"causes": str(causes)}, **NOTIFY) as watcher:
        with log.open("a") as more:
            more.write(lines_of((since(), FAILS.format("orders-1")), (since(), FAILS.format("orders-2"))))
        wait_for(lambda: receiver.messages, "a message")
        before = httpx.get(f"{watcher.url}api/expirations").json()["rows"]
        causes.write_text(killed("orders-1", 9))
        wait_for(lambda: len(receiver.messages) == 2, "an update of the message")
        rows = httpx.get(f"{watcher.url}api/expirations").json()["rows"]
        lanes = httpx.get(f"{watcher.url}api/lanes").json()["groups"][0]["removals"]
        causes.write_text(killed("other-1", 9) + killed("orders-1", 9))  # the same on another line
        wait_for(lambda: b"other-1" in (tmp_path / "history.db-wal").read_bytes(), "a file that was read again")
    assert [row["cause"] for row in before] == ["", ""]
    assert [row["id"] for row in rows] == [row["id"] for row in before]
    (row,) = [row for row in rows if row["cause"]]
    assert row["member_id"].startswith("orders-1-")
    assert "memory limit" in row["advice"]
    assert row["cause"] in row["explanation"]
    assert sorted(row["cause"] in lane["why"] for lane in lanes) == [False, True]
    (opened,), (updated,) = (message["incidents"] for message in receiver.messages)
    assert (updated["incident_id"], updated["step"], updated["expired"]) == (opened["incident_id"], "updated", 2)
    assert [each["cause"] for each in updated["members"] if "cause" in each] == [row["cause"]]
    assert row["advice"] in receiver.messages[1]["text"]
    with watching(tmp_path, log, post=receiver, **NOTIFY) as watcher:
        assert httpx.get(f"{watcher.url}api/expirations").json()["rows"][0]["explanation"]
    assert len(receiver.messages) == 2


def test_a_file_that_cannot_be_read_takes_no_cause_from_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One is away for a moment, as when it is written again: what others had to say at that look is kept."""
    deploys, pauses, clock = tmp_path / "deploys.csv", tmp_path / "gc.csv", Stepping()
    deploys.write_text("2026-11-22T02:00:00Z,orders v1\n")
    pauses.write_text("2026-11-22T02:00:01Z,x\n")
    wanted = Settings().watch.model_copy(update={"causes": f"{pauses},{deploys}"})
    with (
        HistoryFile(tmp_path / "history.db", writes=True) as history,
        WatchedCauses(wanted, history, LocalZone(), clock=clock) as causes,
    ):
        with deploys.open("a") as more:
            more.write("2026-11-22T03:00:00Z,orders v2\n")
        pauses.unlink()
        clock.now_s += 2
        causes.look()
        assert "gc.csv cannot be read" in caplog.text
        assert [each.text for each in history.happenings()] == ["x", "orders v1", "orders v2"]


def test_a_cause_that_no_process_reported_is_reported_by_the_next(tmp_path: Path) -> None:
    """A watcher that ends between the two: the history has the cause, and the saved incident has not."""
    log, causes, receiver = tmp_path / "server.log", tmp_path / "pods.json", Receiver()
    log.write_text("")
    with watching(tmp_path, log, post=receiver, **NOTIFY):
        with log.open("a") as more:
            more.write(lines_of((since(), FAILS.format("orders-1"))))
        wait_for(lambda: receiver.messages, "a message")
    causes.write_text(killed("orders-1", 9))
    for _ in range(2):
        with watching(tmp_path, log, post=receiver, watch={"causes": str(causes)}, **NOTIFY):
            wait_for(lambda: len(receiver.messages) == 2, "an update of the message")
    assert [message["incidents"][0]["step"] for message in receiver.messages] == ["opened", "updated"]
    assert "OOM-killed" in receiver.messages[1]["text"]


def test_a_node_is_looked_at_where_it_may_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the node itself says what happened; without the right to list nodes all else is still known."""
    log = tmp_path / "server.log"
    log.write_text(lines_of((since(), FAILS.format("orders-1")), (since(), FAILS.format("orders-2"))))
    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3_600))
    down = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 9))
    ready = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": down}
    with KubernetesApi() as api:
        pod = {"metadata": {"name": "orders-1"}, "spec": {"nodeName": "n1"}, "status": {"startTime": began}}
        api.put("/api/v1/namespaces/shop/pods", pod)
        api.put("/api/v1/namespaces/shop/pods", json.loads(killed("orders-2", 9)))
        api.put("/api/v1/namespaces/shop/events", {"metadata": {"name": "old"}, "reason": "Pulled"})
        place = ["--causes", "kubernetes:shop", "--set", f"watch.kubernetes_api={api.url}"]
        said = []
        for _ in range(2):
            assert run(["explain", str(log), "--all", *place]) == 0
            said.append(" ".join(capsys.readouterr().out.split()))
            api.put("/api/v1/nodes", {"metadata": {"name": "n1"}, "status": {"conditions": [ready]}})
    assert ["Its node became not ready (NodeStatusUnknown)" in each for each in said] == [False, True]
    assert "(kubernetes/nodes/n1)" in said[1]
    assert ["limit 512Mi" in each for each in said] == [True, True]


def test_explain_asks_a_namespace_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the same requests as a watcher; who may not ask, or where nobody answers, is told what to do."""
    log = tmp_path / "server.log"
    log.write_text(lines_of((since(), FAILS.format("orders-1"))))
    command = ["explain", str(log), "--all", "--causes", "kubernetes:shop"]
    with KubernetesApi() as api:
        api.put("/api/v1/namespaces/shop/pods", json.loads(killed("orders-1", 9)))
        place = ["--set", f"watch.kubernetes_api={api.url}"]
        assert run([*command, *place]) == 1
        assert "shop/events answered 403" in capsys.readouterr().err
        api.put("/api/v1/namespaces/shop/events", {"metadata": {"name": "old"}, "reason": "Pulled"})
        assert run([*command, *place]) == 0
        said = capsys.readouterr()
        assert "limit 512Mi (kubernetes:shop/pods/orders-1)" in " ".join(said.out.split())
        assert run([*command, "--set", "watch.kubernetes_api=ftp://x"]) == 2
    assert run([*command, *place]) == 1
    assert "hint" in capsys.readouterr().err


def test_pods_and_events_of_a_namespace_are_followed(tmp_path: Path) -> None:
    """By a list and by a watch, also when changes were missed; a removal has its cause while the watcher runs."""
    log, pods, events = tmp_path / "server.log", "/api/v1/namespaces/shop/pods", "/api/v1/namespaces/shop/events"
    log.write_text("")
    with KubernetesApi() as api:
        api.put(pods, json.loads(killed("orders-1", 9)))
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        about = {"involvedObject": {"kind": "Pod", "name": "orders-2"}, "lastTimestamp": moment}
        api.put(events, {"metadata": {"name": "old"}, "reason": "Pulled", **about})
        watch = {"causes": "kubernetes:shop", "kubernetes_api": api.url}
        with watching(tmp_path, log, watch=watch) as watcher:
            api.cut()
            api.compact()
            api.put(events, {"metadata": {"name": "e"}, "reason": "Evicted", "message": "low on memory", **about})
            api.put(events, {"metadata": {"name": "odd"}, "reason": "Evicted", "involvedObject": {"kind": "Pod"}})
            api.put(pods, json.loads(killed("orders-3", 2)))
            wait_for(lambda: b"orders-3" in (tmp_path / "history.db-wal").read_bytes(), "happenings that are kept")
            wait_for(lambda: b"low on memory" in (tmp_path / "history.db-wal").read_bytes(), "an event that is kept")
            with log.open("a") as more:
                more.write(lines_of(*((since(), FAILS.format(f"orders-{number}")) for number in range(4))))
            wait_for(lambda: httpx.get(f"{watcher.url}api/expirations").json()["total"] == 4, "removals")
            rows = httpx.get(f"{watcher.url}api/expirations").json()["rows"]
    causes = {row["member_id"][:8]: row["cause"] for row in rows}
    assert causes["orders-0"] == ""
    assert causes["orders-1"].endswith("limit 512Mi (kubernetes:shop/pods/orders-1).")
    assert "low on memory" in causes["orders-2"]
    assert "OOM-killed" in causes["orders-3"]
