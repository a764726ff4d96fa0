"""The files for Kubernetes: each is one that it takes, they fit together, and they give away nothing they need not."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml

from heartwheel.front.cli.app import app
from heartwheel.settings import FIELDS, env_name

FOLDER = Path(__file__).parents[2] / "docker" / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))
OBJECTS: list[dict[str, Any]] = [
    each for file in FILES for each in yaml.safe_load_all(file.read_text(encoding="utf-8"))
]
DEPLOYMENTS = [each for each in OBJECTS if each["kind"] == "Deployment"]
POLICIES = [each for each in OBJECTS if each["kind"] == "NetworkPolicy"]
(APPLICATION,) = (each for each in OBJECTS if each["kind"] == "SparkApplication")
PART_OF = {"app.kubernetes.io/part-of": "heartwheel"}


def name_of(thing: dict[str, Any]) -> str:
    """Name an object in the words of a test's id."""
    return f"{thing['kind']}/{thing['metadata']['name']}"


def pods() -> dict[str, dict[str, Any]]:
    """Give the labels of every pod that these files make; Spark adds its role."""
    spark = {role: {**APPLICATION["spec"][role]["labels"], "spark-role": role} for role in ("driver", "executor")}
    return spark | {each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"] for each in DEPLOYMENTS}


def selected(selector: dict[str, Any]) -> set[str]:
    """Name the pods that a selector selects."""
    wanted = selector.get("matchLabels", {}).items()
    return {name for name, labels in pods().items() if wanted <= labels.items()}


def containers() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """List pods with their own and their container's settings of security, those of Spark among them."""
    for role in ("driver", "executor"):
        pod = APPLICATION["spec"][role]
        yield role, pod["podSecurityContext"] | pod["securityContext"], pod["securityContext"]
    for each in DEPLOYMENTS:
        pod = each["spec"]["template"]["spec"]
        for container in pod["containers"]:
            yield each["metadata"]["name"], pod["securityContext"], container["securityContext"]


@pytest.mark.parametrize("thing", [each for each in OBJECTS if each is not APPLICATION], ids=name_of)
def test_kubernetes_takes_it(thing: dict[str, Any]) -> None:
    """It is valid by the schema of an older and of a newer Kubernetes, without a field that they do not know."""
    for version in ("1.31", "1.35"):
        kubernetes_validate.validate(thing, version, strict=True)


def test_the_check_sees_a_mistake() -> None:
    """A field with a wrong name is one that the schemas refuse."""
    thing = {**POLICIES[0], "spec": {"podSelectors": {}}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(thing, "1.31", strict=True)


@pytest.mark.parametrize("thing", OBJECTS, ids=name_of)
def test_everything_is_in_one_namespace(thing: dict[str, Any]) -> None:
    """Roles and policies hold for the namespace that the pods are in."""
    assert thing["metadata"]["namespace"] == "heartwheel"


@pytest.mark.parametrize(("name", "pod", "container"), list(containers()), ids=[each[0] for each in containers()])
def test_containers_can_do_little(name: str, pod: dict[str, Any], container: dict[str, Any]) -> None:
    """No root, no more rights than at the start, no capability, the usual filter of system calls, a read-only root."""
    assert name in pods()
    assert pod["runAsNonRoot"] is True
    assert pod["runAsUser"] == 1000
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["allowPrivilegeEscalation"] is False
    assert container["readOnlyRootFilesystem"] is True
    assert container["capabilities"] == {"drop": ["ALL"]}


def test_where_they_write_is_mounted() -> None:
    """What the images or the arguments say is written lies on a volume that exists, and every mount has one."""
    for role in ("driver", "executor"):
        mounted = {mount["mountPath"] for mount in APPLICATION["spec"][role]["volumeMounts"]}
        image = (FOLDER.parent / "Dockerfile").read_text()
        cache = re.findall(r"HEARTWHEEL_CACHE=(\S+)", image)
        folders = {"/tmp", "/opt/spark/work-dir", f"{cache[0]}/logs", "/var/lib/heartwheel"}  # noqa: S108 - of a container
        assert folders == mounted
    claims = {each["metadata"]["name"] for each in OBJECTS if each["kind"] == "PersistentVolumeClaim"}
    pods_of = [each["spec"]["template"]["spec"] for each in DEPLOYMENTS]
    parts = [(pod["volumes"], pod["containers"][0]["volumeMounts"]) for pod in pods_of]
    spec = APPLICATION["spec"]
    for volumes, mounts in [*parts, (spec["volumes"], spec["driver"]["volumeMounts"])]:
        assert {mount["name"] for mount in mounts} == {volume["name"] for volume in volumes}
        named = [
            volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume
        ]
        assert set(named) <= claims


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=name_of)
def test_commands_and_variables_exist(deployment: dict[str, Any]) -> None:
    """Its arguments are a command of this release, its variables settings, and its secrets no arguments."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    command, *arguments = container["args"]
    commands[command].make_context(command, list(arguments)).close()
    known = {env_name(path) for path in FIELDS}
    assert {each["name"] for each in container.get("env", ())} <= known
    assert "secret" not in shlex.join(arguments).lower()


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=name_of)
def test_every_deployment_is_probed_and_bounded(deployment: dict[str, Any]) -> None:
    """It has probes for its start and its life, requests and a bound of its memory, and finds its own pods."""
    spec = deployment["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert {"startupProbe", "livenessProbe"} <= container.keys()
    assert container["resources"]["limits"]["memory"]
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert selected(spec["selector"]) == {deployment["metadata"]["name"]}


@pytest.mark.parametrize("name", ["heartwheel-dashboard", "heartwheel-gateway"])
def test_probes_and_service_find_it(name: str) -> None:
    """Probes ask for a path that is served, at the port where it listens, under a name that it may be asked by."""
    (deployment,) = (each for each in DEPLOYMENTS if each["metadata"]["name"] == name)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    words = container["args"]
    (port,) = container["ports"]
    assert words[words.index("--port") + 1] == str(port["containerPort"])
    allowed = {words[at + 1] for at, word in enumerate(words) if word == "--allow-host"}
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = container[kind]["httpGet"]
        (host,) = probe["httpHeaders"]
        assert (probe["path"], probe["port"], host["name"]) == ("/healthz", port["name"], "Host")
        assert host["value"] in allowed
    (service,) = (each for each in OBJECTS if each["kind"] == "Service" and each["metadata"]["name"] == name)
    assert selected({"matchLabels": service["spec"]["selector"]}) == {name}
    assert [each["targetPort"] for each in service["spec"]["ports"]] == [port["name"]]
    assert service["metadata"]["name"] in allowed


def test_the_notifiers_probes_look_at_what_it_touches() -> None:
    """The file lies in its folder, has the name that the notifier gives it, and may be older than one slow answer."""
    (notifier,) = (each for each in DEPLOYMENTS if each["metadata"]["name"].endswith("notifier"))
    (container,) = notifier["spec"]["template"]["spec"]["containers"]
    folder = container["args"][container["args"].index("--state-dir") + 1]
    for kind in ("startupProbe", "livenessProbe"):
        words = container[kind]["exec"]["command"][-1]
        found = re.fullmatch(r"find (\S+)/alive -mmin -(\d+) \| grep -q \.", words)
        assert found is not None
        assert found[1] == folder
        assert int(found[2]) * 60_000 > 2 * 120_000  # the longest notify.timeout
    assert notifier["spec"]["replicas"] == 1
    assert notifier["spec"]["strategy"] == {"type": "Recreate"}


def test_nothing_is_allowed_but_what_is_named() -> None:
    """One policy refuses everything of every pod; each other one selects pods that exist, and names ports."""
    refusing = [each["spec"] for each in POLICIES if each["spec"]["podSelector"] == {}]
    assert refusing == [{"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}]
    for policy in POLICIES:
        spec = policy["spec"]
        for way in ("ingress", "egress"):
            assert (way in spec) <= (way.capitalize() in spec["policyTypes"])
            assert all(rule["ports"] for rule in spec.get(way, ()))
        assert spec["podSelector"] == {} or selected(spec["podSelector"])
    assert all(labels.items() >= PART_OF.items() for labels in pods().values())


def test_whoever_must_talk_may() -> None:
    """Driver and executors reach each other at the ports that are fixed, on both sides; all reach names and Kafka."""
    conf = APPLICATION["spec"]["sparkConf"]
    driver_ports = {int(conf[f"spark.driver.{kind}"]) for kind in ("port", "blockManager.port")}
    executor_ports = {int(conf["spark.blockManager.port"])}
    for source, target, ports in (
        ("executor", "driver", driver_ports),
        ("driver", "executor", executor_ports),
        ("executor", "executor", executor_ports),
    ):
        for way, one, other in (("egress", source, target), ("ingress", target, source)):
            assert ports <= _ports(way, one, other)
    for name in pods():
        assert {53, 9092} <= {
            port["port"]
            for policy in POLICIES
            if name in selected(policy["spec"]["podSelector"])
            for rule in policy["spec"].get("egress", ())
            for port in rule["ports"]
        }


def _ports(way: str, one: str, other: str) -> set[int]:
    side = {"egress": "to", "ingress": "from"}[way]
    return {
        port["port"]
        for policy in POLICIES
        if one in selected(policy["spec"]["podSelector"])
        for rule in policy["spec"].get(way, ())
        if any(other in selected(peer["podSelector"]) for peer in rule.get(side, ()) if "podSelector" in peer)
        for port in rule["ports"]
    }


def test_the_driver_alone_may_ask_kubernetes() -> None:
    """One account has the rights to make executors, and no right to secrets; the others get no token."""
    accounts = {each["metadata"]["name"]: each for each in OBJECTS if each["kind"] == "ServiceAccount"}
    (role,) = (each for each in OBJECTS if each["kind"] == "Role")
    (binding,) = (each for each in OBJECTS if each["kind"] == "RoleBinding")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (subject,) = binding["subjects"]
    assert subject["name"] == APPLICATION["spec"]["driver"]["serviceAccount"]
    for rule in role["rules"]:
        assert set(rule["resources"]) == {"pods", "configmaps", "services", "persistentvolumeclaims"}
        assert "*" not in rule["verbs"]
    for deployment in DEPLOYMENTS:
        pod = deployment["spec"]["template"]["spec"]
        assert pod["automountServiceAccountToken"] is False
        assert accounts[pod["serviceAccountName"]]["automountServiceAccountToken"] is False
    assert accounts.keys() == {subject["name"], "heartwheel-reader"}


def test_the_application_is_guarded() -> None:
    """Its processes ask each other for a secret and encrypt, also without heartwheel's own defaults."""
    conf = APPLICATION["spec"]["sparkConf"]
    assert conf["spark.authenticate"] == conf["spark.network.crypto.enabled"] == "true"
