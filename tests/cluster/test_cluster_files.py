"""The files for Kubernetes and Compose: what they name exists, and what they set is understood."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from heartwheel.settings import FIELDS, Settings, load_settings

ROOT = Path(__file__).parents[2]
SPARK = ROOT / "docker" / "spark"

FLAGS = {
    "--bootstrap-servers": "kafka.bootstrap_servers",
    "--checkpoint": "checkpoint.location",
    "--master": "spark.master",
}


def _settings(words: list[str]) -> Settings:
    """Check the arguments of `heartwheel run` as the command line does."""
    assert words[0] == "run"
    pairs = zip(words[1::2], words[2::2], strict=True)
    flags = [v if flag == "--set" else f"{FLAGS[flag]}={v}" for flag, v in pairs]
    return load_settings(None, {"HEARTWHEEL_SPARK__AUTH_SECRET": "as the cluster has it"}, flags).settings


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["driver", "--class", "C", "main.py", "run"],
            "spark-submit --conf spark.driver.bindAddress=10.0.0.1 --deploy-mode client --class C main.py run",
        ),
        (
            ["executor"],
            (
                "java -Dfirst=1 -Dsecond=a b -Xms1g -Xmx1g -cp CONF:HOME/jars/*: "
                "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend --driver-url spark://d "
                "--executor-id 7 --cores 2 --app-id app --hostname 10.0.0.2 --resourceProfileId 0 --podName pod"
            ),
        ),
        (["doctor"], "heartwheel doctor"),
        ([], "heartwheel"),
    ],
)
def test_the_entrypoint_starts_what_spark_asks_for(words: list[str], expected: str, tmp_path: Path) -> None:
    """Driver, executor with its Java options in order, or a command of heartwheel, each below tini."""
    home = tmp_path / "HOME"
    (home / "work-dir").mkdir(parents=True)
    tini = tmp_path / "tini"
    tini.write_text('#!/bin/bash\npwd >&2\nprintf "%s\\n" "$@"\n')
    tini.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": "CONF",
        "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.1",
        "SPARK_JAVA_OPT_0": "-Dfirst=1",
        "SPARK_JAVA_OPT_1": "-Dsecond=a b",
        "SPARK_EXECUTOR_MEMORY": "1g",
        "SPARK_DRIVER_URL": "spark://d",
        "SPARK_EXECUTOR_ID": "7",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_APPLICATION_ID": "app",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_EXECUTOR_POD_NAME": "pod",
    }
    command = ["bash", str(SPARK / "entrypoint.sh"), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert said[:2] == ["-s", "--"]
    assert " ".join(said[2:]).replace(f"{home}/bin/", "").replace(str(home), "HOME") == expected
    assert (Path(done.stderr.strip()) == home / "work-dir") == (words[:1] in (["driver"], ["executor"]))


def test_the_page_on_clusters_names_settings_that_exist() -> None:
    """The command for a cluster that the page shows passes the checks of the configuration."""
    page = (ROOT / "docs" / "cluster.md").read_text().replace("\\\n", " ")
    (command,) = re.findall(r"^ *heartwheel (run --master .*)$", page, re.MULTILINE)
    assert _settings(shlex.split(command)).spark.executor_python.endswith("bin/python")
    dotted = set(re.findall(r"`((?:engine|spark|checkpoint|kafka)\.[a-z_]+)(?:=\S+)?`", page))
    assert dotted - set(FIELDS) == {"spark.authenticate", "spark.jars"}


def test_the_cluster_of_compose_fits_together() -> None:
    """The job's master is the master service, its Python that of the image, and master and workers share its volume."""
    services = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())["services"]
    members = {name: service for name, service in services.items() if "cluster" in service.get("profiles", [])}
    assert members.keys() == {"spark-master", "spark-worker", "cluster-job"}
    settings = _settings(shlex.split(members["cluster-job"]["command"]))
    assert settings.spark.master == "spark://spark-master:7077" == members["spark-worker"]["command"][-1]
    assert settings.checkpoint.shared
    assert settings.spark.shuffle_partitions == members["spark-worker"]["scale"]
    assert settings.spark.conf["spark.driver.host"] == members["cluster-job"]["hostname"]
    assert members["cluster-job"]["volumes"] == members["spark-worker"]["volumes"] == services["job"]["volumes"]
    homes = [Path(mount.partition(":")[2]) for mount in members["cluster-job"]["volumes"]]
    assert homes[0] in Path(settings.checkpoint.location).parents


def _daemon(folder: Path, words: list[str]) -> subprocess.Popen[str]:
    """Start what the compose file starts for a master or worker, with a `spark-class` that prints its arguments."""
    services = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())["services"]
    shell = [word.replace("$$", "$") for word in services["spark-master"]["entrypoint"]]
    (folder / "spark-class").write_text('#!/bin/sh\necho "$@"\n')
    (folder / "spark-class").chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "HEARTWHEEL_CLUSTER": str(folder / "cluster")}
    return subprocess.Popen([*shell, *words], env=environment, stdout=subprocess.PIPE, text=True)


def test_the_cluster_of_compose_has_a_secret(tmp_path: Path) -> None:
    """The master makes it once, for this user alone; workers wait for it; the job is given the same."""
    services = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())["services"]
    master, worker = ([services[name]["command"][0], "--x", "a b"] for name in ("spark-master", "spark-worker"))
    assert services["spark-master"]["entrypoint"] == services["spark-worker"]["entrypoint"]
    waiting = _daemon(tmp_path, worker)
    seen = set()
    for _ in range(2):
        assert _daemon(tmp_path, master).communicate(timeout=60)[0].startswith(f"{master[0]} --properties-file ")
        seen.add((tmp_path / "cluster" / "secret").read_text())
    (secret,) = seen
    assert len(secret.strip()) == 44
    assert waiting.communicate(timeout=60)[0].endswith("spark.properties --x a b\n")
    properties = dict(
        line.split(" ", 1) for line in (tmp_path / "cluster" / "spark.properties").read_text().splitlines()
    )
    assert properties == {
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.authenticate.secret": secret.strip(),
    }
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "cluster").iterdir()} == {0o600}
    given = services["cluster-job"]["environment"]["HEARTWHEEL_SPARK__AUTH_SECRET"]
    assert given == "file:/var/lib/heartwheel/cluster/secret"
    assert services["spark-master"]["volumes"] == services["spark-worker"]["volumes"]
