"""The watcher of the chart: it runs `heartwheel watch` on a volume of logs, with a history, a login and messages."""

from __future__ import annotations

from typing import Any

import pytest
import typer.main

from heartwheel.front.cli.app import app
from support.chart import VALUES, WATCHER, merged, of_kind, refusal, rendered


def container(values: dict[str, Any]) -> dict[str, Any]:
    """Return the container of the watcher."""
    (deployment,) = of_kind(rendered(values), "Deployment").values()
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]["containers"][0]
    return found


def test_it_runs_the_command_on_the_logs_of_all_brokers() -> None:
    """Words that the command has, the files below a mount that is only read, and the history on a claim."""
    found = container(WATCHER)
    command, *words = found["args"]
    assert command == "watch"
    assert words[:2] == ["/var/log/brokers/kafka-0/server.log", "/var/log/brokers/kafka-1/server.log"]
    known = {word for each in typer.main.get_command(app).commands["watch"].params for word in each.opts}  # type: ignore[attr-defined]
    assert {word for word in words if word.startswith("--")} <= known
    mounts = {each["mountPath"]: each for each in found["volumeMounts"]}
    assert mounts["/var/log/brokers"]["readOnly"]
    assert words[words.index("--history") + 1].startswith("/var/lib/heartwheel/")
    assert "/var/lib/heartwheel" in mounts
    assert of_kind(rendered(WATCHER), "PersistentVolumeClaim").keys() == {"heartwheel-watcher"}


def test_it_posts_and_is_read_where_that_is_asked_for() -> None:
    """The webhook's secrets by file, a way out of the cluster for them, and a monitor with the token."""
    values = VALUES["watcher with messages"]
    env = {each["name"]: each["value"] for each in container(values)["env"]}
    assert env["HEARTWHEEL_NOTIFY__URL"] == "file:/run/secrets/webhook/url"
    objects = rendered(values)
    assert "heartwheel-watcher-webhook" in of_kind(objects, "NetworkPolicy")
    assert "heartwheel-watcher-webhook" not in of_kind(rendered(WATCHER), "NetworkPolicy")
    (monitor,) = of_kind(objects, "ServiceMonitor").values()
    assert monitor["spec"]["endpoints"][0]["authorization"]["credentials"]["name"] == "watcher-token"
    assert of_kind(objects, "PersistentVolumeClaim") == {}


def test_it_reads_the_logs_of_pods_with_no_more_rights_than_that_takes() -> None:
    """A token of its own; logs of the brokers' namespace, events where causes are asked for, and only to read."""
    values = VALUES["watcher of pods"]
    found = container(values)
    words = found["args"]
    assert words[1:7] == [
        *("--kubernetes", "kafka/strimzi.io/kind=Kafka"),
        *("--causes", "kubernetes:shop", "--causes", "kubernetes:kafka"),
    ]
    assert "/var/log/brokers" not in {each["mountPath"] for each in found["volumeMounts"]}
    objects = [each for each in rendered(values) if each["kind"] in {"Role", "RoleBinding"}]
    rights = {
        each["metadata"]["namespace"]: {name: rule["verbs"] for rule in each["rules"] for name in rule["resources"]}
        for each in objects
        if each["kind"] == "Role"
    }
    read = ["get", "list", "watch"]
    assert rights == {
        "kafka": {"pods": read, "events": read, "pods/log": ["get"]},
        "shop": {"pods": read, "events": read},
    }
    bound = {
        each["metadata"]["namespace"]: each["subjects"][0]["name"] for each in objects if each["kind"] == "RoleBinding"
    }
    assert bound == dict.fromkeys(rights, "heartwheel-watcher")
    assert "heartwheel-watcher-kubernetes" in of_kind(rendered(values), "NetworkPolicy")


def test_it_may_look_at_nodes_where_that_is_asked_for() -> None:
    """By a role of the cluster, which has no namespace, and only to read."""
    values = VALUES["watcher of pods"]
    assert "ClusterRole" not in {each["kind"] for each in rendered(values)}
    objects = rendered(merged(values, {"watcher": {"nodes": True}}))
    (role,) = of_kind(objects, "ClusterRole").values()
    (binding,) = of_kind(objects, "ClusterRoleBinding").values()
    assert "namespace" not in role["metadata"] | binding["metadata"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == "heartwheel-heartwheel-watcher"
    assert binding["subjects"][0]["name"] == "heartwheel-watcher"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"watcher": {"login": {"tokenSecret": ""}}}, "it asks for no login"),
        ({"watcher": {"logs": {"claim": ""}}}, "watcher: it has no log"),
        ({"watcher": {"logs": {"files": []}}}, "name the claim with the brokers' logs"),
        ({"watcher": {"settings": {"notify.url": "https://chat.example"}}}, "is a secret"),
    ],
)
def test_what_cannot_work_is_refused(values: dict[str, Any], words: str) -> None:
    """Before anything is installed, with what to set."""
    assert words in refusal(merged(WATCHER, values))
