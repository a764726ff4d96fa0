"""Pods of one name in several namespaces: a cause is certain only where something tells which pod the member was in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from heartwheel.front.cli.app import run
from heartwheel.sources.explain.causes.happening import Happening, HappeningKind
from heartwheel.sources.explain.causes.join import Causes
from heartwheel.sources.explain.causes.kubernetes_objects import happenings_of
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.wire.explained import Evidence, ExplainedEvent, Happened
from support.kubernetes_api import KubernetesApi
from support.scripted_log import START_MS, lines_of

AT_MS: Final = START_MS + 3_600_000


def removal(host: str | None) -> ExplainedEvent:
    """Return the removal of a member whose id has the name of a pod."""
    return ExplainedEvent(
        kind=Happened.EXPIRED,
        reason="session_timeout",
        group_id="g",
        member_id="orders-1-5f7d",
        client_host=host,
        time_ms=AT_MS,
        evidence=Evidence("server.log", 1),
    )


def moment(at_ms: int) -> str:
    """Return a time as Kubernetes writes it."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def pod(namespace: str, ip: str, killed_ms: int | None) -> dict[str, Any]:
    """Return a pod, and whether its container was killed."""
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": moment(killed_ms or 0)}
    containers = [{"name": "app", "lastState": {"terminated": ended} if killed_ms else {}}]
    status = {"startTime": moment(AT_MS - 3_600_000), "podIP": ip, "containerStatuses": containers}
    return {"kind": "Pod", "metadata": {"name": "orders-1", "namespace": namespace}, "status": status}


def causes_of(objects: Sequence[dict[str, Any]], host: str | None) -> list[tuple[str, str, bool]]:
    """Return kind, certainty, and whether the words name the namespace."""
    known = [each for value in objects for each in happenings_of(value, "objects.json", 1, LocalZone())]
    found = Causes(known).of(removal(host))
    return [(each.kind, each.certainty, "namespace" in each.words) for each in found]


def test_the_address_tells_which_pod_it_was() -> None:
    """Of two pods of one name that of the member's host counts, and nothing of the other one."""
    both = [pod("shop", "10.0.0.1", AT_MS - 20_000), pod("bank", "10.0.0.2", None)]
    assert causes_of(both, "/10.0.0.1") == [("oom_killed", "certain", False)]
    assert causes_of(both, "/10.0.0.2") == []


def test_without_an_address_the_cause_is_possible() -> None:
    """The words say why, and of which namespace it is; with one namespace the name is enough."""
    killed, other = pod("shop", "10.0.0.1", AT_MS - 20_000), pod("bank", "10.0.0.2", None)
    for host in (None, "/192.168.0.9"):
        assert causes_of([killed, other], host) == [("oom_killed", "possible", True)]
        assert causes_of([killed], host) == [("oom_killed", "certain", False)]


def test_events_are_of_their_namespace() -> None:
    """An eviction in one namespace is no certain cause for a member of a pod of the other one."""
    about = {"kind": "Pod", "name": "orders-1", "namespace": "bank"}
    evicted = {"kind": "Event", "reason": "Evicted", "involvedObject": about, "lastTimestamp": moment(AT_MS - 9_000)}
    pods = [pod("shop", "10.0.0.1", None), pod("bank", "10.0.0.2", None)]
    assert causes_of([*pods, evicted], "/10.0.0.1") == []
    assert causes_of([*pods, evicted], "/10.0.0.2") == [("evicted", "certain", False)]
    assert causes_of([*pods, evicted], None) == [("evicted", "possible", True)]


@pytest.mark.parametrize("host", [None, "/10.0.0.1"])
def test_what_names_no_namespace_is_about_the_pod(host: str | None) -> None:
    """A log of a pod's garbage collector, or what a history of an earlier release has."""
    paused = Happening(
        kind=HappeningKind.PAUSED,
        time_ms=AT_MS - 5_000,
        began_ms=AT_MS - 45_000,
        pod="orders-1",
        file="gc.log",
        line=1,
    )
    known = [*happenings_of(pod("shop", "10.0.0.1", None), "objects.json", 1, LocalZone()), paused]
    assert [each.certainty for each in Causes(known).of(removal(host))] == ["certain"]


def test_two_namespaces_of_the_api(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both are asked, and the removal says that either pod may be meant, and what to change is not said."""
    log = tmp_path / "server.log"
    log.write_text(lines_of((3_600, "Member orders-1-5f7d in group g has failed, removing it from the group")))
    with KubernetesApi() as api:
        for namespace, killed_ms in (("shop", AT_MS - 20_000), ("bank", None)):
            api.put(f"/api/v1/namespaces/{namespace}/pods", pod(namespace, "10.0.0.1", killed_ms))
            api.put(f"/api/v1/namespaces/{namespace}/events", {"metadata": {"name": "old"}, "reason": "Pulled"})
        places = ["--causes", "kubernetes:shop", "--causes", "kubernetes:bank"]
        assert run(["explain", str(log), "--json", *places, "--set", f"watch.kubernetes_api={api.url}"]) == 0
    (event,) = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"expired"' in line]
    (cause,) = event["causes"]
    assert (cause["kind"], cause["certainty"]) == ("oom_killed", "possible")
    assert cause["words"].startswith("Possible, several namespaces have a pod of this name")
    assert "this was in shop: Its container app was OOM-killed 20.0 s before" in cause["words"]
    assert "memory limit" not in event["advice"]
