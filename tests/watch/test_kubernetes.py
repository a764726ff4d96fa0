"""Logs of pods through the API of Kubernetes: each line once, whatever becomes of connections, containers and pods."""

from __future__ import annotations

import random
import signal
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from heartwheel.front.cli.app import run
from heartwheel.sources.watch.containers import container_log, object_watch
from heartwheel.sources.watch.containers.http_api import ApiError, HttpApi
from heartwheel.sources.watch.containers.kubernetes import Pods, api_of_cluster
from heartwheel.sources.watch.containers.stamps import StampedEntries
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.watched_logs import WatchedLogs
from support.certificates import Authority
from support.container_logs import KeptLog
from support.grown_logs import real_messages
from support.job import wait_for
from support.kubernetes_api import KubernetesApi
from support.read_containers import Reading, check
from support.watching import running_watch

TARGET = "kafka/app=broker"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a server that fails be asked again at once; how the pauses grow is a test of `test_object_watch.py`."""
    for module in (container_log, object_watch):
        monkeypatch.setattr(module, "_PAUSE_S", 0.02)


@contextmanager
def reading(folder: Path, api: KubernetesApi, *, idle_s: float = 5) -> Iterator[Reading]:
    """Read the logs of pods; at the end nothing more is saved, as if the process was killed."""
    with (
        HistoryFile(folder / "h.db", writes=True) as history,
        Pods(TARGET, HttpApi(api.url, idle_s=idle_s)) as pods,
        WatchedLogs([], history, containers=[pods]) as logs,
    ):
        yield Reading(logs, history)


@pytest.mark.parametrize("seed", range(8))
def test_each_line_is_kept_once_wherever_connections_and_the_watcher_break(tmp_path: Path, seed: int) -> None:
    """Answers are cut anywhere, cleanly or not, entries share their times, and containers are started again."""
    rng = random.Random(seed)
    left = {f"broker-{broker}": real_messages(rng, broker=broker)[:700] for broker in (1, 2)}
    logs = {pod: [KeptLog(f"containerd://{pod}-0")] for pod in left}
    with KubernetesApi(rng) as api:
        for pod in logs:
            api.start(pod, logs[pod][0])
        while any(left.values()):
            with reading(tmp_path, api) as watched:
                for _ in range(rng.randrange(1, 10)):
                    for pod, messages in left.items():
                        size = rng.choice([0, 1, 60, 200])
                        logs[pod][-1].write(b"".join(messages[:size]), rng)
                        del messages[:size]
                    watched.turn()
                    time.sleep(rng.choice([0, 0.01, 0.1]))
                    watched.turn()
                    if rng.random() < 0.15 and len(logs["broker-1"]) < 3:
                        watched.until_lines(sum(log.text.count(b"\n") for each in logs.values() for log in each))
                        old = logs["broker-1"][-1]
                        watched.until_at(old)  # it is started again after ten seconds
                        old.write(b"".join(left["broker-1"][:40]), rng)  # its last words
                        del left["broker-1"][:40]
                        old.end()
                        logs["broker-1"].append(KeptLog(f"containerd://broker-1-{len(logs['broker-1'])}"))
                        api.start("broker-1", logs["broker-1"][-1])
                    if rng.random() < 0.1:
                        api.cut()
                    if rng.random() < 0.1:
                        api.compact()
        with reading(tmp_path, api) as watched:
            watched.until_lines(sum(log.text.count(b"\n") for each in logs.values() for log in each))
            watched.turn()
            watched.logs.save()
            assert not watched.logs.lost
    check(tmp_path, logs)


def test_entries_are_told_apart_by_time_and_number() -> None:
    """Those of one time, those of a clock that stepped back, and those that are newer as the log was rotated."""
    first = [
        b"2026-11-22T02:12:30.5Z a\n",
        b"2026-11-22T02:12:30.500000001+00:00 b\n",
        b"2026-11-22T03:12:30.4+01:00 c\n",
    ]
    read = StampedEntries()
    assert [read.take(each) for each in first] == [b"a\n", b"b\n", b"c\n"]
    assert (read.since_s, read.entries) == (1795313550, 3)
    read.begin()
    more = [*first, first[0], b"unable to retrieve container logs\n", b"2026-11-22T02:12:31Z d\n"]
    assert [read.take(each) for each in more] == [None, None, None, b"a\n", None, b"d\n"]
    assert (read.since_s, read.entries, read.gap) == (1795313551, 1, False)
    read.begin()
    assert read.take(b"2026-11-22T02:12:31.1Z e\n") == b"e\n"
    assert read.gap


def test_containers_that_ended_while_nobody_looked(tmp_path: Path) -> None:
    """Started again once, the log before is read to its end; twice, the last of them is read and others are lost."""
    logs = [KeptLog(f"containerd://{number}") for number in range(5)]
    messages, after = real_messages(random.Random(3)), b""
    with KubernetesApi() as api:
        for log, lost in ((logs[0], 0), (logs[1], 0), (logs[3], 1)):
            for other in logs[: logs.index(log) + 1]:
                if not other.text:
                    other.write(b"".join(messages[:20]))
                    del messages[:20]
                    api.start("broker-1", other)
            with reading(tmp_path, api) as watched:
                watched.until_at(log)
                watched.until_lines(sum(each.text.count(b"\n") for each in logs) - lost * after.count(b"\n"))
                assert watched.logs.lost == lost
                watched.turn()
                watched.logs.save()
            after = b"".join(messages[:20])
            log.write(after)
            del messages[:20]
            log.end()


def test_lines_that_were_rotated_away_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The kubelet hands out the newest file alone: what was written while nobody read, and rotated, is gone."""
    log = KeptLog("containerd://1")
    messages = real_messages(random.Random(1))
    with KubernetesApi() as api:
        api.start("broker-1", log)
        log.write(b"".join(messages[:50]))
        with reading(tmp_path, api) as watched:
            watched.until_lines(log.text.count(b"\n"))
            watched.turn()
            watched.logs.save()
        read = log.text.count(b"\n")
        log.write(b"".join(messages[50:60]))
        log.rotate()
        log.write(b"".join(messages[60:70]))
        lines = read + b"".join(messages[60:70]).count(b"\n")
        with reading(tmp_path, api) as watched:
            watched.until_lines(lines)
            assert watched.logs.lost == 1
    assert "kubernetes:kafka/broker-1: lines may be missing" in caplog.text


def test_pods_come_go_and_are_replaced(tmp_path: Path) -> None:
    """A pod that is new while others are read is news from its first line; one of the same name is another file."""
    logs = {name: [KeptLog(f"containerd://{name}")] for name in ("broker-1", "broker-2")}
    messages = real_messages(random.Random(2))
    with KubernetesApi() as api:
        logs["broker-1"][0].write(b"".join(messages[:30]))
        api.start("broker-1", logs["broker-1"][0])
        with reading(tmp_path, api) as watched:
            watched.until_lines(logs["broker-1"][0].text.count(b"\n"))
            wait_for(lambda: watched.turn() >= 0 and watched.logs.are_read, "what there was at first")
            logs["broker-2"][0].write(b"".join(messages[30:300]))
            api.start("broker-2", logs["broker-2"][0])
            lines = sum(log.text.count(b"\n") for each in logs.values() for log in each)
            watched.until_lines(lines)
            logs["broker-1"][0].end()
            api.note("broker-1")
            api.delete("broker-1")
            logs["broker-1"].append(KeptLog("containerd://again"))
            logs["broker-1"][1].write(b"".join(messages[300:400]))
            api.start("broker-1", logs["broker-1"][1], replaces=True)
            watched.until_lines(lines + logs["broker-1"][1].text.count(b"\n"))
            watched.turn()
            watched.logs.save()
            assert not watched.logs.lost
    check(tmp_path, logs)
    with HistoryFile(tmp_path / "h.db", writes=False) as history:
        files = history.files()
        news = {(files[each.fact.file], each.is_news) for each in history.facts()}
    assert ("kubernetes:kafka/broker-2", True) in news
    assert ("kubernetes:kafka/broker-2", False) not in news


def test_tokens_are_read_again_and_the_server_is_checked(tmp_path: Path) -> None:
    """A token that was replaced is used at once, an expired one ends nothing, and another authority is refused."""
    authority = Authority(tmp_path, "ca")
    _, _, both = authority.issue("server")
    secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secure.load_cert_chain(both)
    (tmp_path / "token").write_text("first\n")
    log = KeptLog("containerd://1")
    messages = real_messages(random.Random(4))
    log.write(b"".join(messages[:50]))
    with KubernetesApi(tokens={"first"}, tls=secure) as api:
        api.start("broker-1", log)
        environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api.server_address[1])}
        with HistoryFile(tmp_path / "h.db", writes=True) as history:
            client = api_of_cluster("", tmp_path, environ)
            with Pods(TARGET, client) as pods, WatchedLogs([], history, containers=[pods]) as logs:
                watched = Reading(logs, history)
                watched.until_lines(log.text.count(b"\n"))
                api.tokens = {"second"}
                api.cut()
                log.write(b"".join(messages[50:90]))
                wait_for(lambda: any(code == 401 for _, _, code in api.requests), "a token that is refused")
                (tmp_path / "token").write_text("second")
                watched.until_lines(log.text.count(b"\n"))
        Authority(tmp_path, "ca")  # another one of the same name
        with pytest.raises(ApiError, match="CERTIFICATE_VERIFY_FAILED"):
            Pods(TARGET, api_of_cluster("", tmp_path, environ)).__enter__()


@pytest.mark.parametrize(
    "nonsense", [[], "pods", {"items": [1]}, {"items": [{}], "metadata": {"resourceVersion": "7"}}]
)
def test_nonsense_of_a_server_ends_nothing(tmp_path: Path, nonsense: object, caplog: pytest.LogCaptureFixture) -> None:
    """The pods are asked for again, until there is an answer: what was known until then stays."""
    log, messages = KeptLog("containerd://1"), real_messages(random.Random(6))
    with KubernetesApi() as api:
        api.start("broker-1", log)
        with reading(tmp_path, api) as watched:
            api.nonsense = nonsense
            api.compact()
            wait_for(lambda: "answered no list of objects" in caplog.text, "a warning")
            log.write(b"".join(messages[:50]))
            watched.until_lines(log.text.count(b"\n"))
            api.nonsense = None
            other = KeptLog("containerd://2")
            other.write(b"".join(messages[50:90]))
            api.start("broker-2", other)
            watched.until_lines(sum(each.text.count(b"\n") for each in (log, other)))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--kubernetes", "kafka"], "watch.kubernetes"),
        (["--kubernetes", "kafka/app=broker"], "kubectl proxy"),
        (["--kubernetes", "other/app=broker", "--set", "watch.kubernetes_api=URL"], "get, list and watch of pods"),
        (["--kubernetes", "kafka/app=broker", "--set", "watch.kubernetes_api=http://127.0.0.1:1"], "refused"),
    ],
)
def test_what_cannot_be_watched_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], named: str
) -> None:
    """No target, no cluster, no right and no server: each with what to do, and without a traceback."""
    with KubernetesApi() as api:
        given = [word.replace("URL", api.url) for word in words]
        assert run(["watch", *given, "--port", "0", "--history", str(tmp_path / "h.db")]) in {1, 2}
    said = " ".join(capsys.readouterr().err.split())
    assert named in said
    assert "Traceback" not in said


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(3))
def test_kill_9_of_the_command_loses_and_repeats_nothing(tmp_path: Path, seed: int) -> None:
    """The process is killed at any moment and started again, while a pod writes and answers are cut."""
    rng = random.Random(seed)
    log, messages = KeptLog("containerd://1"), real_messages(rng)[:900]
    with KubernetesApi(rng) as api:
        api.start("broker-1", log)
        words = ["--kubernetes", TARGET, "--set", f"watch.kubernetes_api={api.url}"]
        while messages:
            with running_watch(tmp_path, *words):
                for _ in range(rng.randrange(1, 8)):
                    log.write(b"".join(messages[:60]), rng)
                    del messages[:60]
                    time.sleep(rng.choice([0.01, 0.2, 1]))
        with running_watch(tmp_path, *words) as (process, url):
            wanted = float(log.text.count(b"\n"))
            wait_for(lambda: f"heartwheel_log_lines_total {wanted}" in httpx.get(f"{url}metrics").text, "all lines")
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
    check(tmp_path, {"broker-1": [log]})
