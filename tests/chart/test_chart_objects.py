"""The chart's objects: Kubernetes and the operators take them, they fit together, and no pod may do too much."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import kubernetes_validate
import pytest
import yaml

from heartwheel.settings import FIELDS
from heartwheel.settings.keys import TABLES
from heartwheel.settings.secret import is_secret
from support.chart import (
    ALL,
    COMPONENTS,
    ROOT,
    SECURED,
    VALUES,
    Object,
    merged,
    name_of,
    of_kind,
    refusal,
    rendered,
    run_helm,
)
from support.dockerfile import stages

SCHEMAS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("schemas.yaml").read_text(encoding="utf-8"))
every_values = pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)


class Pod(NamedTuple):
    """What all kinds of pods of the chart have."""

    labels: dict[str, str]
    security: dict[str, Any]
    mounts: dict[str, str]
    volumes: dict[str, dict[str, Any]]
    image: str
    env: dict[str, str]


def pods_of(objects: list[Object]) -> dict[str, Pod]:
    """Return the pods that objects make, by name; those of Spark by their role."""
    found = {}
    for name, each in of_kind(objects, "Deployment").items():
        template = each["spec"]["template"]
        (container,) = template["spec"]["containers"]
        found[name] = _pod(
            template["metadata"]["labels"], template["spec"], container, container["image"], template["spec"]
        )
    for each in of_kind(objects, "SparkApplication").values():
        for role in ("driver", "executor"):
            part = each["spec"][role]
            pod = {"securityContext": part["podSecurityContext"]}
            found[role] = _pod(part["labels"] | {"spark-role": role}, pod, part, each["spec"]["image"], each["spec"])
    return found


def _pod(labels: dict[str, str], pod: Object, container: Object, image: str, holder: Object) -> Pod:
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in holder["volumes"]}
    env = {each["name"]: each["value"] for each in container.get("env", ())}
    return Pod(labels, pod["securityContext"] | container["securityContext"], mounts, volumes, image, env)


def selected(objects: list[Object], selector: Mapping[str, Any]) -> set[str]:
    """Return the names of the pods that a selector selects."""
    wanted = selector.get("matchLabels", {}).items()
    return {name for name, pod in pods_of(objects).items() if wanted <= pod.labels.items()}


@every_values
def test_helm_finds_no_fault(values: dict[str, Any]) -> None:
    """`helm lint` has no warning."""
    done = run_helm("lint --strict", values)
    assert done.returncode == 0, done.stdout + done.stderr


@every_values
def test_kubernetes_and_operators_take_the_objects(values: dict[str, Any]) -> None:
    """Each is valid by an older and a newer Kubernetes, or by its operator's schema, with no unknown field."""
    objects = rendered(values)
    assert len({(each["metadata"].get("namespace"), name_of(each)) for each in objects}) == len(objects) > 0
    for each in objects:
        # A right is where the pods are that may be read by it.
        assert each["metadata"]["namespace"] == "heartwheel" or each["kind"] in {"Role", "RoleBinding"}
        schema = SCHEMAS.get(f"{each['apiVersion']} {each['kind']}")
        if schema:
            jsonschema.validate(each, schema)
        else:
            for version in ("1.31", "1.35"):
                kubernetes_validate.validate(each, version, strict=True)


def test_the_page_shows_values_that_install() -> None:
    """The file of values in docs/cluster.md installs the components that it names, and every object is valid."""
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    values = yaml.safe_load(block)
    test_kubernetes_and_operators_take_the_objects(values)
    objects = rendered(values)
    assert pods_of(objects).keys() == {"driver", "executor", "heartwheel-dashboard", "heartwheel-notifier"}
    assert len(of_kind(objects, "KafkaTopic")) == 6
    assert of_kind(objects, "KafkaUser").keys() == {"heartwheel-job", "heartwheel-dashboard", "heartwheel-notifier"}


def test_the_checks_see_a_mistake() -> None:
    """A field with a wrong name is refused by both kinds of schemas."""
    (policy, *_) = of_kind(rendered(ALL), "NetworkPolicy").values()
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(policy | {"spec": {"podSelectors": {}}}, "1.31", strict=True)
    (job,) = of_kind(rendered(ALL), "SparkApplication").values()
    job["spec"]["driver"]["memorySize"] = "1g"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(job, SCHEMAS["sparkoperator.k8s.io/v1beta2 SparkApplication"])


def test_nothing_is_installed_that_is_not_enabled() -> None:
    """Without values there is no object; each component brings its own pods and accounts and no other's."""
    assert rendered({}) == []
    for name, values in COMPONENTS.items():
        objects = rendered(values)
        expected = {"driver", "executor"} if name == "job" else {f"heartwheel-{name}"}
        assert pods_of(objects).keys() == expected
        account = "heartwheel-job" if name == "job" else "heartwheel-reader"
        assert of_kind(objects, "ServiceAccount").keys() == {account}
        assert bool(of_kind(objects, "Role")) == (name == "job")
    kinds = {each["kind"] for each in rendered(VALUES["topics"])}
    assert kinds == {"KafkaTopic"}


@every_values
def test_containers_can_do_little(values: dict[str, Any]) -> None:
    """No root, no more rights than at the start, no capability, the usual filter of system calls, a read-only root."""
    for pod in pods_of(rendered(values)).values():
        assert pod.security == {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "fsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


@every_values
def test_where_they_write_is_mounted(values: dict[str, Any]) -> None:
    """Every mount has a volume, every volume its claim, and what Spark and the notifier write lies on one."""
    objects = rendered(values)
    claims = of_kind(objects, "PersistentVolumeClaim").keys() | {"kept", "broker-logs"}
    cache = re.findall(r"HEARTWHEEL_CACHE=(\S+)", " ".join(step.value for step in stages()["job"]))[0]
    for name, pod in pods_of(objects).items():
        assert pod.mounts.keys() <= pod.volumes.keys()
        assert pod.mounts["tmp"] == "/tmp"  # noqa: S108 - of a container
        for volume in pod.volumes.values():
            assert volume.get("persistentVolumeClaim", {"claimName": "kept"})["claimName"] in claims
        if name in {"driver", "executor"}:
            assert {pod.mounts["work"], pod.mounts["logs"]} == {"/opt/spark/work-dir", f"{cache}/logs"}
    used = {mount for pod in pods_of(objects).values() for mount in pod.mounts}
    assert used == {volume for pod in pods_of(objects).values() for volume in pod.volumes}
    for each in of_kind(objects, "PersistentVolumeClaim").values():
        assert each["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_images_are_the_targets() -> None:
    """Readers run the image without a JVM, Spark's pods that of the job; a digest is taken before a tag."""
    images = {name: pod.image for name, pod in pods_of(rendered(SECURED)).items()}
    assert set(images) == {"heartwheel-dashboard", "heartwheel-gateway", "heartwheel-notifier", "driver", "executor"}
    assert {image for name, image in images.items() if name.startswith("heartwheel-")} == {
        "heartwheel-watch@sha256:" + "0" * 64
    }
    chart = yaml.safe_load((ROOT / "docker" / "chart" / "Chart.yaml").read_text(encoding="utf-8"))
    assert images["driver"] == f"heartwheel-job:{chart['appVersion']}"
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{chart["appVersion"]}' in project
    assert {"watch", "job"} < stages().keys()


@every_values
def test_every_deployment_is_probed_and_bounded(values: dict[str, Any]) -> None:
    """It has probes for its start and its life, requests and a bound of its memory, and finds its own pods."""
    objects = rendered(values)
    for name, each in of_kind(objects, "Deployment").items():
        (container,) = each["spec"]["template"]["spec"]["containers"]
        assert {"startupProbe", "livenessProbe"} <= container.keys()
        assert container["resources"]["limits"]["memory"]
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert selected(objects, each["spec"]["selector"]) == {name}
        if name.endswith("notifier"):
            assert (each["spec"]["replicas"], each["spec"]["strategy"]) == (1, {"type": "Recreate"})


@every_values
def test_secrets_are_names(values: dict[str, Any]) -> None:
    """No object is a Secret, and every variable that is one by its name holds a file below a mount of a Secret."""
    objects = rendered(values)
    assert of_kind(objects, "Secret") == {}
    for pod in pods_of(objects).values():
        secret_mounts = [path for name, path in pod.mounts.items() if "secret" in pod.volumes[name]]
        for variable, value in pod.env.items():
            path = variable.removeprefix("HEARTWHEEL_").lower().replace("__", ".")
            assert not is_secret(path) or re.match(r"(file:)?/run/secrets/", value), variable
            if "/run/secrets/" in value:
                assert any(value.removeprefix("file:").startswith(f"{mount}/") for mount in secret_mounts)
                (file,) = [
                    item["path"]
                    for name, mount in pod.mounts.items()
                    if value.removeprefix("file:").startswith(f"{mount}/")
                    for item in pod.volumes[name]["secret"]["items"]
                    if value.endswith(f"{mount}/{item['path']}")
                ]
                assert file


def test_an_executor_has_no_login_of_its_own() -> None:
    """The driver alone mounts Kafka's password and its own token; executors mount the authority that they need."""
    pods = pods_of(rendered(SECURED))
    assert {"kafka-user", "metrics"} <= pods["driver"].mounts.keys()
    assert {"kafka-user", "metrics"} & pods["executor"].mounts.keys() == set()
    assert "kafka-ca" in pods["executor"].mounts


SECRETS = sorted(path for path in FIELDS if is_secret(path) and path not in TABLES and not path.endswith("tls_key"))


@pytest.mark.parametrize("path", [*SECRETS, "kafka.client.sasl.password", "kafka.client.sasl.jaas.config"])
def test_a_secret_is_refused_as_a_value(path: str) -> None:
    """A setting whose value would be a secret does not get into an argument, which everybody may read."""
    values = merged(ALL, {"job": {"settings": {path: "hunter2hunter2"}}})
    assert f"{path} is a secret, and values hold none" in refusal(values)


def test_a_secret_is_refused_as_a_property_of_spark() -> None:
    """The same of Spark's own properties."""
    values = merged(ALL, {"job": {"sparkConf": {"spark.hadoop.fs.s3a.secret.key": "hunter2"}}})
    assert "spark.hadoop.fs.s3a.secret.key is a secret" in refusal(values)


POLICIES = {"Ingress": "from", "Egress": "to"}


@every_values
def test_nothing_is_allowed_but_what_is_named(values: dict[str, Any]) -> None:
    """One policy takes everything from every pod; each other one selects pods that exist, and names ports and peers."""
    objects = rendered(values)
    policies = of_kind(objects, "NetworkPolicy")
    if not policies:
        assert values.get("networkPolicies", {}).get("enabled") is False or not pods_of(objects)
        return
    every_pod = policies["heartwheel-names-and-kafka"]["spec"]
    assert every_pod["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in every_pod
    assert selected(objects, every_pod["podSelector"]) == pods_of(objects).keys()
    for policy in policies.values():
        spec = policy["spec"]
        assert selected(objects, spec["podSelector"])
        for way, peers in POLICIES.items():
            assert way in spec["policyTypes"] or way.lower() not in spec
            for rule in spec.get(way.lower(), ()):
                assert rule["ports"]
                # Only the API of Kubernetes has no peer: its ports say what it is.
                assert rule.get(peers) or {port["port"] for port in rule["ports"]} == {443, 6443}


def _ports(objects: list[Object], way: str, one: str, other: str) -> set[int]:
    """Return the ports at which policies of a pod let it reach another, or be reached by it."""
    return {
        port["port"]
        for policy in of_kind(objects, "NetworkPolicy").values()
        if one in selected(objects, policy["spec"]["podSelector"])
        for rule in policy["spec"].get(way.lower(), ())
        for peer in rule.get(POLICIES[way], ())
        if "podSelector" in peer and other in selected(objects, peer["podSelector"])
        for port in rule["ports"]
    }


def test_whoever_must_talk_may() -> None:
    """Driver and executors reach each other at the ports that are fixed, on both sides; all reach names and Kafka."""
    objects = rendered(ALL)
    conf = of_kind(objects, "SparkApplication")["heartwheel-job"]["spec"]["sparkConf"]
    driver_ports = {int(conf[f"spark.driver.{kind}"]) for kind in ("port", "blockManager.port")}
    executor_ports = {int(conf["spark.blockManager.port"])}
    for source, target, ports in (
        ("executor", "driver", driver_ports),
        ("driver", "executor", executor_ports),
        ("executor", "executor", executor_ports),
    ):
        for way, one, other in (("Egress", source, target), ("Ingress", target, source)):
            assert ports <= _ports(objects, way, one, other)
    every_pod = of_kind(objects, "NetworkPolicy")["heartwheel-names-and-kafka"]["spec"]["egress"]
    assert {port["port"] for rule in every_pod for port in rule["ports"]} == {53, 9092}


def test_nobody_is_no_peer() -> None:
    """An empty list of peers lets nobody in: to Kubernetes it would be everybody."""
    closed = merged(ALL, {"networkPolicies": {"prometheus": [], "dashboard": [], "gateway": []}})
    policies = of_kind(rendered(closed), "NetworkPolicy")
    assert "ingress" not in policies["heartwheel-dashboard"]["spec"]
    assert "ingress" not in policies["heartwheel-gateway"]["spec"]
    assert [rule["ports"][0]["port"] for rule in policies["heartwheel-driver"]["spec"]["ingress"]] == [7078]


@every_values
def test_the_driver_and_a_watcher_of_pods_alone_may_ask_kubernetes(values: dict[str, Any]) -> None:
    """The driver's account may make executors, the watcher's may read pods, neither secrets; others get no token."""
    objects = rendered(values)
    accounts = of_kind(objects, "ServiceAccount")
    for each in of_kind(objects, "Deployment").values():
        pod = each["spec"]["template"]["spec"]
        if pod["serviceAccountName"].endswith("-watcher"):
            assert pod["automountServiceAccountToken"] is True
            continue
        assert pod["automountServiceAccountToken"] is False
        assert accounts[pod["serviceAccountName"]]["automountServiceAccountToken"] is False
    for each in of_kind(objects, "SparkApplication").values():
        (role,) = of_kind(objects, "Role").values()
        (binding,) = of_kind(objects, "RoleBinding").values()
        assert binding["roleRef"]["name"] == role["metadata"]["name"]
        assert binding["subjects"][0]["name"] == each["spec"]["driver"]["serviceAccount"]
        assert "serviceAccount" not in each["spec"]["executor"]
        for rule in role["rules"]:
            assert set(rule["resources"]) == {"pods", "configmaps", "services", "persistentvolumeclaims"}
            assert "*" not in rule["verbs"]


def _wrong() -> Iterator[tuple[dict[str, Any], str]]:
    yield {"dashbord": {"enabled": True}}, "additional properties 'dashbord' not allowed"
    yield {"dashboard": {"enable": True}}, "at '/dashboard': additional properties 'enable' not allowed"
    yield {"kafka": {"bootstrapServers": "kafka"}}, "at '/kafka/bootstrapServers': 'kafka' does not match"
    yield (
        {"kafka": {"security": {"protocol": "TLS"}}},
        "must be one of 'PLAINTEXT', 'SASL_PLAINTEXT', 'SSL', 'SASL_SSL'",
    )
    yield {"gateway": {"replicas": "2"}}, "at '/gateway/replicas': got string, want integer"
    yield {"settings": {"engine.shards": 32}}, "at '/settings/engine.shards': got number, want string"
    yield {"images": {"job": {"digest": "sha256:12"}}}, "at '/images/job/digest'"
    yield {"notifier": {"resources": {"limits": {"memory": None}}}}, "at '/notifier/resources/limits': missing property"
    yield {"networkPolicies": {"kafka": []}}, "at '/networkPolicies/kafka': minItems: got 0, want 1"
    yield {"job": {"executor": {"memory": "2Gi"}}}, "at '/job/executor/memory': '2Gi' does not match"
    yield {"strimzi": {"topicSpecs": {"other": {}}}}, "additional properties 'other' not allowed"
    yield (
        {"dashboard": {"enabled": True}},
        "dashboard: others can reach it, and it asks for no login. Set dashboard.login",
    )
    yield (
        {"gateway": {"enabled": True}},
        "gateway: everybody who reaches it could send heartbeats. Set gateway.accessSecret",
    )
    yield {"notifier": {"enabled": True}}, "notifier.webhookSecret is empty: name a Secret"
    yield merged(ALL, {"settings": {"dashboard.port": "80"}}), "settings: dashboard.port is set by the chart"
    yield {"strimzi": {"users": True}}, "strimzi.users: users have no login with these settings"
    yield (
        merged(VALUES["proxy"], {"monitoring": {"monitors": True}}),
        "the dashboard asks for a login, and Prometheus has none. Set dashboard.login.tokenSecret",
    )


WRONG = list(_wrong())


@pytest.mark.parametrize(("values", "why"), WRONG, ids=[why[:50] for _, why in WRONG])
def test_wrong_values_are_refused_by_name(values: dict[str, Any], why: str) -> None:
    """What cannot work is refused before anything is installed, with the value's place and what is wrong."""
    assert why in refusal(values)
