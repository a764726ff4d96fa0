"""The Helm chart, rendered: every object that it makes of some values, or why it refuses them."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "docker" / "chart"
NAMESPACE = "heartwheel"

Object = dict[str, Any]
Values = dict[str, Any]

DASHBOARD: Values = {
    "dashboard": {"enabled": True, "login": {"usersSecret": "viewers", "tokenSecret": "dashboard-token"}}
}
GATEWAY: Values = {"gateway": {"enabled": True, "accessSecret": "worker-tokens"}}
NOTIFIER: Values = {"notifier": {"enabled": True, "webhookSecret": "chat"}}
WATCHER: Values = {
    "watcher": {
        "enabled": True,
        "logs": {"claim": "broker-logs", "files": ["kafka-0/server.log", "kafka-1/server.log"]},
        "login": {"tokenSecret": "watcher-token"},
    }
}
JOB: Values = {"job": {"enabled": True}}
COMPONENTS: dict[str, Values] = {"dashboard": DASHBOARD, "gateway": GATEWAY, "notifier": NOTIFIER, "job": JOB}
ALL = DASHBOARD | GATEWAY | NOTIFIER | JOB

MONITORED = {"monitoring": {"monitors": True, "rules": True, "labels": {"release": "prometheus"}}}
STRIMZI = {"strimzi": {"topics": True, "users": True, "cluster": "events"}}
SCRAM = {"kafka": {"security": {"protocol": "SASL_SSL", "caSecret": "events-cluster-ca-cert"}}}
MTLS = {"kafka": {"security": {"protocol": "SSL", "caSecret": "events-cluster-ca-cert"}}}


def merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with those of later parts over the earlier ones, as Helm merges files of values."""
    result: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
            result[key] = merged(result[key], value) if both else copy.deepcopy(value)
    return result


SECURED = merged(
    ALL,
    MONITORED,
    STRIMZI,
    SCRAM,
    {"images": {"pullSecrets": ["registry"], "watch": {"digest": "sha256:" + "0" * 64}}},
    {"settings": {"engine.feeds": "tap-1", "kafka.topics.heartbeats": "beats"}},
    {"dashboard": {"canary": True, "tlsSecret": "dashboard-tls", "login": {"sessionSecret": "sessions"}}},
    {"gateway": {"tlsSecret": "gateway-tls", "settings": {"gateway.timeout": "3s"}}},
    {"job": {"metricsTokenSecret": "job-token", "scheduling": {"nodeSelector": {"pool": "spark"}}}},
    {"job": {"sparkConf": {"spark.kubernetes.executor.deleteOnTermination": "true"}}},
)
"""Everything at once, with every login and certificate."""

VALUES: dict[str, Values] = {
    **COMPONENTS,
    "all": ALL,
    "secured": SECURED,
    "certificates": merged(ALL, STRIMZI, MTLS),
    "watcher": WATCHER,
    "watcher with messages": merged(
        WATCHER, MONITORED, {"watcher": {"webhookSecret": "chat", "state": {"claim": "kept"}}}
    ),
    "watcher of pods": merged(
        WATCHER,
        {
            "watcher": {
                "pods": "kafka/strimzi.io/kind=Kafka",
                "causesIn": ["shop", "kafka"],
                "logs": {"claim": "", "files": []},
            }
        },
    ),
    "topics": {"strimzi": {"topics": True}},
    "proxy": {
        "dashboard": {"enabled": True, "login": {"trustedProxies": "10.0.0.0/8", "userHeader": "X-Forwarded-User"}}
    },
    "open": {
        "dashboard": {"enabled": True, "insecure": True},
        "gateway": {"enabled": True, "insecure": True},
        "networkPolicies": {"enabled": False},
    },
    "elsewhere": {
        "job": {"enabled": True, "checkpoint": "s3a://bucket/checkpoint"},
        "notifier": {**NOTIFIER["notifier"], "state": {"claim": "kept"}},
        "networkPolicies": {"prometheus": [], "kubernetesApi": [{"ipBlock": {"cidr": "10.96.0.1/32"}}]},
    },
}
"""Values of each kind of installation that is rendered and checked."""


def helm() -> str:
    """Return the path of Helm, or skip the test where there is none."""
    built = sorted((ROOT / "build" / "helm").glob("v*/helm"))
    found = shutil.which("helm") or (str(built[-1]) if built else None)
    if found is None:
        pytest.skip("there is no Helm here; docker/helm.sh builds one with Go")
    return found


def run_helm(command: str, values: Mapping[str, Any], *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Helm on the chart with these values."""
    line = [helm(), *command.split(), str(CHART), "--namespace", NAMESPACE, "--values", "-", *words]
    return subprocess.run(line, input=json.dumps(values), capture_output=True, text=True, check=False)


def rendered(values: Mapping[str, Any]) -> list[Object]:
    """Return the objects of a release called heartwheel."""
    return copy.deepcopy(_rendered(json.dumps(values)))


@cache
def _rendered(values: str) -> list[Object]:
    done = run_helm("template heartwheel", json.loads(values))
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each is not None]


def refusal(values: Mapping[str, Any]) -> str:
    """Return why the chart refuses values."""
    done = run_helm("template heartwheel", values)
    assert done.returncode != 0
    assert done.stdout == ""
    return done.stderr


def of_kind(objects: list[Object], kind: str) -> dict[str, Object]:
    """Return the objects of a kind by their names."""
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}


def name_of(thing: Object) -> str:
    """Return kind and name of an object."""
    return f"{thing['kind']}/{thing['metadata']['name']}"
