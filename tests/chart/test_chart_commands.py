"""What the chart's containers start: commands of this release, which really start, listen and answer their probes."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
import yaml

from heartwheel.front.cli.app import app
from heartwheel.front.cli.topic_specs import topic_specs
from heartwheel.kafka.broker.node_process import free_port
from heartwheel.settings import FIELDS, load_settings
from support.chart import ALL, MONITORED, ROOT, SCRAM, SECURED, STRIMZI, VALUES, merged, of_kind, rendered
from support.chart_containers import containers, mounted, read_only_root, running, secrets_in
from support.dockerfile import Step, stages

every_values = pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)


@every_values
def test_commands_and_variables_exist(values: dict[str, Any], tmp_path: Path) -> None:
    """Arguments are a command of this release, variables are settings, and both together are a valid configuration."""
    secrets_in(tmp_path)
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, (command, *arguments), env in containers(rendered(values)):
        with commands[command].make_context(command, list(arguments)) as context:
            flags = [
                *(
                    f"{_setting(command, option)}={_text(value)}"
                    for option, value in context.params.items()
                    if _given(value)
                ),
                *(context.params["set_"] or ()),
            ]
        variables = {variable: mounted(tmp_path, value) for variable, value in env.items()}
        flags = [mounted(tmp_path, flag) for flag in flags if not flag.startswith("None=")]
        settings = load_settings(None, variables, flags).settings
        if command == "watch":  # needs no Kafka
            assert settings.watch.history_file == mounted(tmp_path, "/var/lib/heartwheel/history.db"), name
        else:
            assert settings.kafka.bootstrap_servers == "kafka.kafka.svc:9092", name


def _text(value: object) -> str:
    return "true" if value is True else str(value)


def _given(value: object) -> bool:
    return isinstance(value, str) or value is True


def _setting(command: str, option: str) -> str | None:
    """Return the key that an option of a command sets, if it sets one."""
    section = {"notify": "notify", "dashboard": "dashboard", "gateway": "gateway", "watch": "watch"}.get(command, "")
    known = {
        "bootstrap_servers": "kafka.bootstrap_servers",
        "checkpoint": "checkpoint.location",
        "history": "watch.history_file",
        "master": "spark.master",
    }
    key = known.get(option, f"{section}.{option}")
    return key if key in FIELDS else None


def test_the_application_is_what_the_images_hold() -> None:
    """Its main file, its Python and its version of Spark are those of the image; its processes ask for a secret."""
    (spec,) = (each["spec"] for each in of_kind(rendered(ALL), "SparkApplication").values())
    steps = stages()["job"]
    assert Step("WORKDIR", "/opt/heartwheel") in steps
    assert Step("COPY", "docker/spark spark") in steps
    main = Path(spec["mainApplicationFile"].removeprefix("local://")).relative_to("/opt/heartwheel/spark")
    assert (ROOT / "docker" / "spark" / main).is_file()
    assert Step("ENTRYPOINT", '["/opt/heartwheel/spark/entrypoint.sh"]') in steps
    (python,) = (word.split("=", 1)[1] for word in spec["arguments"] if word.startswith("spark.executor_python="))
    assert any(f"PYSPARK_PYTHON={python}" in step.value for step in steps)
    assert Step("RUN", f"python3 -m venv {Path(python).parents[1]}") in steps
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert f"\npyspark=={spec['sparkVersion']} " in lock
    assert spec["arguments"][spec["arguments"].index("--master") + 1] == "submitted"
    conf = spec["sparkConf"]
    assert conf["spark.authenticate"] == conf["spark.network.crypto.enabled"] == "true"
    assert spec["restartPolicy"]["type"] == "Always"


def test_the_job_has_a_core_for_each_state_partition() -> None:
    """Its executors run all state partitions at once, on a checkpoint that all of them mount, or at an address."""
    sized = merged(ALL, {"job": {"executor": {"instances": 4, "cores": 3}}})
    (spec,) = (each["spec"] for each in of_kind(rendered(sized), "SparkApplication").values())
    assert "spark.shuffle_partitions=12" in spec["arguments"]
    assert "checkpoint.shared=true" in spec["arguments"]
    location = spec["arguments"][spec["arguments"].index("--checkpoint") + 1]
    for role in ("driver", "executor"):
        assert any(location.startswith(f"{mount['mountPath']}/") for mount in spec[role]["volumeMounts"])
    (spec,) = (each["spec"] for each in of_kind(rendered(VALUES["elsewhere"]), "SparkApplication").values())
    assert "s3a://bucket/checkpoint" in spec["arguments"]
    assert "checkpoint.shared=true" not in spec["arguments"]


def _asked(probe: dict[str, Any], port: int) -> int:
    """Ask as the kubelet does, which checks no certificate; return the status, 0 while nobody listens."""
    get = probe["httpGet"]
    headers = {each["name"]: each["value"] for each in get["httpHeaders"]}
    url = f"{get['scheme'].lower()}://127.0.0.1:{port}{get['path']}"
    try:
        return httpx.get(url, headers=headers, verify=False, timeout=10).status_code  # noqa: S501 - as the kubelet
    except httpx.TransportError:
        return 0


def test_the_root_of_these_processes_is_read_only() -> None:
    """What the other tests start can write to no folder of the machine but /tmp, as in the containers."""
    if not read_only_root():
        pytest.skip("mounts need root: dashboard, gateway and notifier ran on a root that can be written")
    words = [*read_only_root(), "touch", str(Path.home() / "heartwheel-was-here")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "Read-only file system" in done.stderr


@pytest.mark.parametrize("kind", ["dashboard", "gateway"])
@pytest.mark.parametrize("values", [SECURED, VALUES["open"]], ids=["secured", "open"])
def test_a_server_starts_and_answers_its_probes(tmp_path: Path, kind: str, values: dict[str, Any]) -> None:
    """With what the chart gives it, it starts without Kafka, and answers each probe under the probe's name."""
    secrets_in(tmp_path)
    port = free_port()
    with running(tmp_path, kind, values, port) as (container, process):
        words = container["args"]
        (served,) = container["ports"]
        defaults = load_settings(None, {}, []).settings
        assert words[words.index("--port") + 1] == str(served["containerPort"]) == str(getattr(defaults, kind).port)
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[probe]["httpGet"]["port"] == served["name"]
            end = time.monotonic() + 60
            while (status := _asked(container[probe], port)) == 0 and time.monotonic() < end:
                assert process.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.1)
            assert status == 200, (tmp_path / "log").read_text()
        (allowed,) = {each["value"] for each in container["startupProbe"]["httpGet"]["httpHeaders"]}
        assert words[words.index("--allow-host") + 1] == allowed
    (service,) = (
        each
        for each in of_kind(rendered(values), "Service").values()
        if each["metadata"]["name"] == f"heartwheel-{kind}"
    )
    assert service["metadata"]["name"] == allowed
    assert [each["targetPort"] for each in service["spec"]["ports"]] == [served["name"]]


def test_the_notifier_starts_and_touches_what_its_probes_look_at(tmp_path: Path) -> None:
    """It starts with its address and key in files; the command of its probes succeeds once it runs, and not before."""
    secrets_in(tmp_path)
    with running(tmp_path, "notifier", SECURED, 0) as (container, process):
        command = [mounted(tmp_path, word) for word in container["livenessProbe"]["exec"]["command"]]
        assert container["startupProbe"]["exec"] == container["livenessProbe"]["exec"]
        end = time.monotonic() + 60
        while (done := subprocess.run(command, capture_output=True, check=False)).returncode and time.monotonic() < end:
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.1)
        assert done.returncode == 0, (tmp_path / "log").read_text()
    minutes = re.search(r"-mmin -(\d+)", command[-1])
    assert minutes is not None
    assert int(minutes[1]) * 60_000 > 2 * 120_000  # the longest notify.timeout
    (tmp_path / "var/lib/heartwheel/notify/alive").unlink()
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_prometheus_reads_what_is_served() -> None:
    """Monitors select the Services and the driver, at ports that these have, with the token that they ask for."""
    objects = rendered(SECURED)
    services = of_kind(objects, "Service")
    monitors = of_kind(objects, "ServiceMonitor")
    assert monitors.keys() == services.keys()
    for name, monitor in monitors.items():
        assert monitor["spec"]["selector"]["matchLabels"].items() <= services[name]["metadata"]["labels"].items()
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["port"] == services[name]["spec"]["ports"][0]["name"]
        assert (endpoint["path"], endpoint["scheme"]) == ("/metrics", "https")
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitors["heartwheel-dashboard"]["spec"]["endpoints"][0]["authorization"]["credentials"] == {
        "name": "dashboard-token",
        "key": "token",
    }
    (monitor,) = of_kind(objects, "PodMonitor").values()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    (spec,) = (each["spec"] for each in of_kind(objects, "SparkApplication").values())
    assert f"metrics.port={endpoint['portNumber']}" in spec["arguments"]
    assert monitor["spec"]["selector"]["matchLabels"] == {**spec["driver"]["labels"], "spark-role": "driver"}
    plain = merged(ALL, MONITORED)
    assert "scheme" not in of_kind(rendered(plain), "ServiceMonitor")["heartwheel-gateway"]["spec"]["endpoints"][0]


def test_the_alerts_are_those_of_prometheus() -> None:
    """The rules for the operator are the file that promtool fires, word for word."""
    (rules,) = of_kind(rendered(SECURED), "PrometheusRule").values()
    file = ROOT / "docker" / "prometheus" / "rules" / "heartwheel.yml"
    assert rules["spec"] == yaml.safe_load(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("names", [{}, {"kafka.topics.heartbeats": "beats", "kafka.topics.status": "beats-status"}])
def test_topics_are_those_that_the_command_creates(names: dict[str, str]) -> None:
    """`heartwheel topics --create` and Strimzi make the same topics, with the settings' names."""
    flags = [f"{key}={name}" for key, name in names.items()]
    specs = topic_specs(load_settings(None, {}, flags).settings)
    topics = of_kind(rendered({"strimzi": {"topics": True, "cluster": "events"}, "settings": names}), "KafkaTopic")
    assert {name: (each["spec"]["partitions"], each["spec"]["config"]) for name, each in topics.items()} == {
        spec.name: (spec.partitions, spec.settings) for spec in specs
    }
    for each in topics.values():
        assert each["metadata"]["labels"]["strimzi.io/cluster"] == "events"
        assert each["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_users_are_those_that_log_in() -> None:
    """Each component that is enabled has a user of Strimzi, whose name and Secret it logs in with."""
    objects = rendered(merged(ALL, STRIMZI, SCRAM, {"notifier": {"enabled": False}, "job": {"kafkaUser": "engine"}}))
    users = of_kind(objects, "KafkaUser")
    assert users.keys() == {"heartwheel-dashboard", "heartwheel-gateway", "engine"}
    for name, _, env in containers(objects):
        user = users[env["HEARTWHEEL_KAFKA__CLIENT__SASL_USERNAME"]]
        assert user["spec"]["authentication"] == {"type": "scram-sha-512"}, name
    dashboard = of_kind(objects, "Deployment")["heartwheel-dashboard"]["spec"]["template"]["spec"]
    (secret,) = (each["secret"]["secretName"] for each in dashboard["volumes"] if each["name"] == "kafka-user")
    assert secret in users
    assert {
        each["spec"]["authentication"]["type"]
        for each in of_kind(rendered(VALUES["certificates"]), "KafkaUser").values()
    } == {"tls"}
