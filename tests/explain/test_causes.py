"""The cause behind the cause: scripted worlds with a truth of their own about each removed member's pod."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from heartwheel.front.cli.app import run
from heartwheel.sources.explain.causes.happening import Happening, HappeningKind
from heartwheel.sources.explain.causes.join import Causes
from heartwheel.sources.explain.causes.late import LateCauses
from heartwheel.sources.explain.causes.read import CauseFile, CauseFiles
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.wire.explained import Evidence, ExplainedEvent, Happened

BEGIN_MS = 1_795_305_600_000
LOGGER = "(kafka.coordinator.group.GroupCoordinator)"


def iso(time_ms: int) -> str:
    """Write a time as Kubernetes does, to the second, which is never later."""
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def logged(time_ms: int, text: str) -> str:
    """Write a line of a coordinator."""
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return f"[{moment:%Y-%m-%d %H:%M:%S},{time_ms % 1000:03}] INFO [GroupCoordinator 1]: {text} {LOGGER}\n"


def expired(time_ms: int, member_id: str, group: str = "orders") -> str:
    """Write the line about a session that ran out."""
    return logged(time_ms, f"Member {member_id} in group {group} has failed, removing it from the group.")


def ended(pod: str, at_ms: int, *, node: str = "n", ip: str = "", **state: Any) -> dict[str, Any]:
    """Return a pod whose container ended."""
    terminated = {"finishedAt": iso(at_ms)} | state
    return {
        "kind": "Pod",
        "metadata": {"name": pod},
        "spec": {"nodeName": node, "containers": [{"name": "app", "resources": {"limits": {"memory": "512Mi"}}}]},
        "status": {
            "startTime": iso(at_ms - 3_600_000),
            "podIP": ip,
            "containerStatuses": [{"name": "app", "state": {"running": {}}, "lastState": {"terminated": terminated}}],
        },
    }


def happened(kind: str, name: str, reason: str, at_ms: int, message: str = "") -> dict[str, Any]:
    """Return an event."""
    about = {"kind": kind, "name": name}
    return {"kind": "Event", "involvedObject": about, "reason": reason, "message": message, "lastTimestamp": iso(at_ms)}


class World:
    """Members in pods, each with a fate: some have one, some none, beside pods of others that look like theirs."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.lines: list[tuple[int, str]] = []
        self.items: list[dict[str, Any]] = []
        self.gc: dict[str, str] = {}
        self.truth: dict[str, str] = {}
        for number in range(40):
            pod, other = f"orders-{number}", f"orders-{number}0"
            removed_ms = BEGIN_MS + number * 600_000 + rng.randrange(1000)
            member_id = f"{pod}-{rng.getrandbits(128):032x}"
            self.lines.append((removed_ms, expired(removed_ms, member_id)))
            fate = rng.choice(["oom_killed", "terminated", "evicted", "node_down", "stopped", "paused", ""])
            self.truth[member_id] = fate
            self._happens(fate, pod, removed_ms - rng.randrange(46_000, 50_000), rng)
            # What must count for nothing: another pod at the time, and this one an hour before and a minute after.
            self._happens("oom_killed", other, removed_ms - 20_000, rng)
            self._happens("terminated", pod, removed_ms - 7_200_000, rng)
            self._happens("stopped", pod, removed_ms + 61_000, rng)

    def _happens(self, fate: str, pod: str, at_ms: int, rng: random.Random) -> None:
        node = f"node-{pod}"
        match fate:
            case "oom_killed":
                self.items.append(ended(pod, at_ms, node=node, reason="OOMKilled", exitCode=137))
            case "terminated":
                self.items.append(ended(pod, at_ms, node=node, reason="Error", exitCode=rng.choice([1, 139])))
            case "evicted":
                self.items.append(happened("Pod", pod, "Evicted", at_ms, "The node was low on resource: memory."))
            case "node_down":
                self.items.append(ended(pod, at_ms - 86_400_000, node=node, reason="Completed", exitCode=0))
                self.items.append(happened("Node", node, "NodeNotReady", at_ms + 40_000))
            case "stopped":
                self.items.append(happened("ReplicaSet", "orders", "SuccessfulDelete", at_ms, f"Deleted pod: {pod}"))
            case "paused":
                self.gc[pod] = (
                    f"[{iso(at_ms + 40_000)[:-1]}.000+0000] GC(7) Pause Full (G1 Compaction) 510M->480M(512M) 39500.1ms\n"
                )

    def write(self, folder: Path) -> tuple[str, list[str]]:
        """Write its files; return the name of the log and those of the others."""
        log, objects = folder / "server.log", folder / "objects.json"
        log.write_text("".join(line for _, line in sorted(self.lines)))
        objects.write_text(json.dumps({"kind": "List", "items": self.items}))
        names = [str(objects)]
        for pod, text in self.gc.items():
            (folder / f"{pod}.gc").write_text("[1.2s][info] Using G1\n" + text)
            names.append(f"{pod}={folder / f'{pod}.gc'}")
        return str(log), names


def explained(log: str, names: Sequence[str]) -> Iterator[ExplainedEvent]:
    """Explain a log with causes."""
    causes = Causes(CauseFiles(names, LocalZone()).read())
    return explain_logs([log], Scanned(), stdin=io.BytesIO(), causes=causes)


@pytest.mark.parametrize("seed", range(10))
def test_each_removal_has_the_cause_that_it_had(tmp_path: Path, seed: int) -> None:
    """Each fate is named, with the line or item that shows it, and members without one have none."""
    world = World(seed)
    log, names = world.write(tmp_path)
    events = [event for event in explained(log, names) if event.kind == "expired"]
    assert len(events) == len(world.truth)
    for event in events:
        assert [cause.kind for cause in event.causes] == list(filter(None, [world.truth[event.member_id or ""]]))
        for cause in event.causes:
            assert cause.certainty == "certain"
            assert cause.words in event.explanation
            assert f"{cause.evidence.file}:{cause.evidence.line}" in cause.words


def test_the_words_say_what_when_and_where(tmp_path: Path) -> None:
    """A sentence a kind, with the time before the removal."""
    at = BEGIN_MS + 50_000
    objects = tmp_path / "objects.json"
    pods = [ended("orders-1", at - 9_600, reason="OOMKilled", exitCode=137), ended("pay-2", at - 5_000, exitCode=139)]
    objects.write_text("\n".join(json.dumps(pod) for pod in pods))
    (tmp_path / "deploys.csv").write_text(f"{iso(at - 12_000)},orders v42\n")
    (tmp_path / "server.log").write_text(
        "".join(expired(at, f"{name}-x") for name in ("orders-1", "pay-2", "search-3"))
    )
    names = [str(objects), str(tmp_path / "deploys.csv")]
    events = list(explained(str(tmp_path / "server.log"), names))
    said = [event.causes[0].words for event in events]
    assert said == [
        f"Its container app was OOM-killed 10.0 s before; limit 512Mi ({objects}:1).",
        f"Its container app was killed by signal 11 (exit code 139) 5.0 s before ({objects}:2).",
        f"Possible, only the time agrees: 12.0 s before: orders v42 ({tmp_path / 'deploys.csv'}:1).",
    ]
    known, ended_by_itself, possible = events
    assert known.explanation[1:] == (said[0], known.advice)
    assert "memory limit" in known.advice
    assert "its own log" in ended_by_itself.advice
    assert "session.timeout.ms" in possible.advice


def test_a_member_that_was_alive_was_not_in_a_process_that_ended(tmp_path: Path) -> None:
    """A poll timeout is said by a living process, and so is a return under the same id."""
    at = BEGIN_MS + 600_000
    details = (
        "groupInstanceId=None, clientId=orders-1, clientHost=/10.0.0.7, sessionTimeoutMs=6000, rebalanceTimeoutMs=5000"
    )
    member = f"MemberMetadata(memberId=orders-1-x, {details}, supportedProtocols=List(range))"
    left = f"Member {member} has left group orders through explicit `LeaveGroup`; client reason: consumer poll timeout has expired."
    (tmp_path / "server.log").write_text(logged(at, left))
    objects = tmp_path / "pods.json"
    objects.write_text(json.dumps(ended("other", at - 3_000, ip="10.0.0.7", reason="OOMKilled", exitCode=137)))
    (tmp_path / "gc.log").write_text(
        f"[{iso(at - 1_000)[:-1]}.000+0000][info][gc] GC(1) Pause Young (Normal) 4200,5ms\n"
    )
    names = [str(objects), str(tmp_path / "gc.log")]
    (event,) = explained(str(tmp_path / "server.log"), names)
    assert [(cause.kind, cause.certainty) for cause in event.causes] == [("paused", "possible")]


def test_a_member_is_found_by_the_address_of_its_pod(tmp_path: Path) -> None:
    """Its host is a pod's address: a name of another pod in its ids then counts for nothing."""
    at = BEGIN_MS + 600_000
    (tmp_path / "server.log").write_text(expired(at, "rdkafka-x"))
    objects = tmp_path / "pods.json"
    pods = [
        ended("web-7", at - 3_000, ip="10.0.0.7", exitCode=1),
        ended("rdkafka", at - 3_000, ip="10.0.0.8", exitCode=2),
    ]
    objects.write_text("\n".join(map(json.dumps, pods)))
    causes = Causes(CauseFiles([str(objects)], LocalZone()).read())
    event = next(explained(str(tmp_path / "server.log"), []))
    assert "exit code 2" in causes.of(event)[0].words
    assert "exit code 1" in causes.of(msgspec.structs.replace(event, client_host="/10.0.0.7"))[0].words


@pytest.mark.parametrize(("evicted", "kinds"), [("before", []), ("then", ["evicted"]), ("later", [])])
def test_an_address_belongs_to_the_pod_that_had_it_then(tmp_path: Path, evicted: str, kinds: list[str]) -> None:
    """A pod that had the address before, or that has it by now, is not the one that the member was in."""
    at = BEGIN_MS + 7_200_000
    (tmp_path / "server.log").write_text(expired(at, "rdkafka-x"))
    event = msgspec.structs.replace(next(explained(str(tmp_path / "server.log"), [])), client_host="/10.0.0.7")
    pods = []
    for pod, started_ms, ended_ms in (
        ("before", at - 3_600_000, at - 1_800_000),
        ("then", at - 1_700_000, at - 900_000),
        ("later", at + 30_000, at + 40_000),
    ):
        pods.append(ended(pod, ended_ms, ip="10.0.0.7", exitCode=1))
        pods[-1]["status"]["startTime"] = iso(started_ms)
    pods.append(happened("Pod", evicted, "Evicted", at - 2_000))
    objects = tmp_path / "pods.json"
    for items in (pods, pods[::-1]):
        objects.write_text("\n".join(map(json.dumps, items)))
        causes = Causes(CauseFiles([str(objects)], LocalZone()).read())
        assert [cause.kind for cause in causes.of(event)] == kinds


HOSTILE = (
    b'{"kind":"Event","involvedObject":{"kind":"Pod","name":"\x1b]0;x\x07"},"reason":"Evicted"',
    b"9999999-99-99T00:00:00Z,deployed",
    b"0001-01-01T00:00:00Z,too early",
    b"\xff\xfe\x00 nothing",
    b"[2026-11-22T02:12:26.153+0000][info] GC(1) Pause Full 1e999ms",
    b"," * 3_000_000,
)


def test_a_wrong_time_is_shown_with_a_right_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The words are for people, not Python's."""
    (tmp_path / "server.log").write_text(expired(BEGIN_MS, "orders-1-x"))
    (tmp_path / "causes").write_text("yesterday,deployed\n")
    assert run(["explain", str(tmp_path / "server.log"), "--causes", str(tmp_path / "causes")]) == 0
    assert "causes:1: 'yesterday' is no time such as 2026-11-22T02:12:51" in capsys.readouterr().err


def test_a_watcher_keeps_the_newest_happenings_alone() -> None:
    """A watcher that runs for months has them in bounded memory, and still finds the cause of what happens now."""
    causes = Causes(kept_max=10)
    out = ExplainedEvent(
        kind=Happened.EXPIRED,
        reason="session_timeout",
        time_ms=0,
        group_id="g",
        client_id="orders-1",
        evidence=Evidence("server.log", 1),
    )
    for number in range(1_000):
        at_ms = BEGIN_MS + number * 600_000
        killed = Happening(kind=HappeningKind.OOM_KILLED, time_ms=at_ms, pod="orders-1", file="f", line=number + 1)
        assert causes.add([killed, killed]) == [killed]
        assert causes.size <= 20
        event = msgspec.structs.replace(out, time_ms=at_ms + 40_000)
        assert [each.time_ms for each in causes.of(event)] == [at_ms]


def removed(at_ms: int) -> ExplainedEvent:
    """Return the removal of the member in the pod orders-1."""
    return ExplainedEvent(
        kind=Happened.EXPIRED,
        reason="session_timeout",
        time_ms=at_ms,
        group_id="g",
        client_id="orders-1",
        evidence=Evidence("server.log", 1),
    )


def test_a_node_counts_while_the_pod_is_on_it() -> None:
    """A pod comes back under its name on another node: the first one is its node no more, and was it before."""
    at = [BEGIN_MS + number * 600_000 for number in range(4)]
    seen = [
        Happening(kind=HappeningKind.POD, time_ms=at[number], pod="orders-1", node=node, file="f", line=1)
        for number, node in ((0, "a"), (2, "b"))
    ]
    downs = [
        Happening(kind=HappeningKind.NODE_DOWN, time_ms=at_ms, node=node, text=f"node {node}", file="f", line=2)
        for at_ms in (at[1], at[3])
        for node in ("a", "b")
    ]
    causes = Causes([*downs, *seen])
    for at_ms, node in ((at[1], "a"), (at[3], "b")):
        (cause,) = causes.of(removed(at_ms + 40_000))
        assert cause.words.startswith(f"Its node {node} ")


def test_a_member_that_turns_out_to_be_alive_has_another_cause() -> None:
    """Whoever follows a log hears of the return after the cause: the end of a process is taken back."""
    killed = Happening(kind=HappeningKind.OOM_KILLED, time_ms=BEGIN_MS, pod="orders-1", file="f", line=27)
    causes, event = LateCauses([killed], kept_max=10), removed(BEGIN_MS + 5_000)
    event.member_id = "orders-1-x"
    event.causes = causes.of(event)
    assert [each.kind for each in event.causes] == ["oom_killed"]
    assert causes.again([]) == []
    event.returned_ms, event.returned_as = event.time_ms + 3_000, event.member_id
    (again,) = causes.again([])
    assert again.causes == ()
    assert any("so its process was alive" in each for each in again.explanation)
    assert causes.again([]) == []


def test_a_file_that_is_written_again_adds_nothing() -> None:
    """The same happenings stand on other lines; and times in the future take the place of none."""
    killed = Happening(kind=HappeningKind.OOM_KILLED, time_ms=BEGIN_MS, pod="orders-1", file="f", line=27)
    causes = Causes(kept_max=10)
    later = [msgspec.structs.replace(killed, time_ms=BEGIN_MS * 2 + number) for number in range(15)]
    assert len(causes.add(later)) == 15
    assert causes.add([killed]) == [killed]
    assert causes.add([msgspec.structs.replace(killed, line=31), *later[::-1]]) == []
    causes.add(msgspec.structs.replace(each, pod="other") for each in later[:5])
    assert causes.size <= 20
    assert [each.evidence.line for each in causes.of(removed(BEGIN_MS + 40_000))] == [27]


@pytest.mark.parametrize("kind", ["lines", "objects"])
def test_a_hostile_line_costs_itself_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    """It is counted and named, nothing of it reaches the terminal as it is, and the next line counts."""
    at = BEGIN_MS + 50_000
    (tmp_path / "server.log").write_text(expired(at, "orders-1-x"))
    good = (
        json.dumps(ended("orders-1", at - 5_000, exitCode=1)) if kind == "objects" else f"{iso(at - 5_000)},\x1b[31mred"
    )
    first = b'{"kind":"List"}' if kind == "objects" else b"# deploys"
    (tmp_path / "causes").write_bytes(b"\n".join((first, *HOSTILE, good.encode())))
    assert run(["explain", str(tmp_path / "server.log"), "--causes", str(tmp_path / "causes"), "--all"]) == 0
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "could not be read, the first:" in said.err
    assert "5.0 s before" in said.out


def test_a_blank_line_between_objects_is_none_that_cannot_be_read(tmp_path: Path) -> None:
    """As `kubectl ... | jq -c` and a text editor leave them."""
    objects = [json.dumps(ended(f"orders-{number}", BEGIN_MS, exitCode=1)) for number in range(2)]
    (tmp_path / "objects.json").write_text("\n\n".join(objects) + "\n \n")
    file = CauseFile(str(tmp_path / "objects.json"), LocalZone())
    assert {(each.pod, each.line) for each in file.read()} == {("orders-0", 1), ("orders-1", 3)}
    assert (file.bad, file.doubt) == (0, "")


def test_what_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there."""
    (tmp_path / "server.log").write_text(expired(BEGIN_MS, "a-x"))
    assert run(["explain", str(tmp_path / "server.log"), "--causes", str(tmp_path / "no.json")]) == 1
    assert "no.json cannot be read" in capsys.readouterr().err
