"""The code that executors get is the code that the driver runs, and it can be imported from the archive alone."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import heartwheel
import timing_wheel
from heartwheel.engine.runtime.driver.session import session_conf, start_session
from heartwheel.engine.runtime.driver.shipping import pack_code
from heartwheel.kafka.broker.spark_release import UnfitSparkError
from heartwheel.settings import load_settings

SECRET = {"HEARTWHEEL_SPARK__AUTH_SECRET": "hunter2"}


def test_the_archive_holds_both_packages_whole(tmp_path: Path) -> None:
    """Every module of both packages is in it, byte for byte, and nothing else."""
    roots = {package.__name__: Path(package.__path__[0]) for package in (heartwheel, timing_wheel)}
    with zipfile.ZipFile(pack_code(tmp_path)) as packed:
        found = {name: packed.read(name) for name in packed.namelist()}
    assert found == {
        f"{name}/{Path(folder, file).relative_to(root)}": Path(folder, file).read_bytes()
        for name, root in roots.items()
        for folder, _, files in os.walk(root, followlinks=True)
        for file in files
        if file.endswith(".py")
    }


def test_the_same_code_makes_the_same_archive(tmp_path: Path) -> None:
    """No time and no order of files is in it, so that two drivers of one release ship the same bytes."""
    first = pack_code(tmp_path).read_bytes()
    assert pack_code(tmp_path).read_bytes() == first


def test_a_worker_can_work_from_the_archive_alone(tmp_path: Path) -> None:
    """What a worker unpickles, the state function and the packer, is imported from the archive, not from a folder."""
    archive = pack_code(tmp_path)
    code = (
        f"import sys\nsys.path[:] = [{str(archive)!r}, *(p for p in sys.path if '/lib/' in p)]\n"
        "import heartwheel.engine.runtime.driver.query, heartwheel.engine.operations_job.plugin, timing_wheel\n"
        "print(heartwheel.engine.runtime.driver.query.__file__, timing_wheel.__file__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert all(str(archive) in file for file in done.stdout.split())


def test_a_cluster_uses_its_own_python_and_a_local_master_ours() -> None:
    """`spark.executor_python` goes to a cluster; with a local master it means nothing."""
    flags = ["spark.executor_python=env/bin/python", "spark.shuffle_partitions=2", "checkpoint.shared=true"]
    local = load_settings(overrides=flags).settings
    remote = load_settings(None, SECRET, [*flags, "spark.master=spark://m:7077"]).settings
    submitted = load_settings(overrides=[*flags, "spark.master=submitted"]).settings
    confs = [session_conf(settings, [], shuffle_partitions=2) for settings in (local, remote, submitted)]
    assert [conf.get("spark.pyspark.python") for conf in confs] == [None, *2 * ["env/bin/python"]]
    assert [conf.get("spark.driver.host") for conf in confs] == ["127.0.0.1", None, None]
    assert [conf.get("spark.master") for conf in confs] == ["local[*]", "spark://m:7077", None]


def test_what_crosses_a_clusters_network_is_guarded_by_itself() -> None:
    """With a master elsewhere processes ask each other for a secret and encrypt; `[spark.conf]` goes over that."""
    flags = ["spark.shuffle_partitions=2", "checkpoint.shared=true"]
    off = [*flags, "spark.master=yarn", "spark.conf.spark.authenticate=false"]
    chosen = [[], [*flags, "spark.master=spark://m:7077"], [*flags, "spark.master=submitted"], off]
    confs = [session_conf(load_settings(None, SECRET, each).settings, [], shuffle_partitions=2) for each in chosen]
    names = ("spark.authenticate", "spark.network.crypto.enabled", "spark.authenticate.secret")
    assert [tuple(conf.get(name) for name in names) for conf in confs] == [
        (None, None, None),
        ("true", "true", "hunter2"),
        ("true", "true", "hunter2"),
        ("false", "true", "hunter2"),
    ]


@pytest.mark.parametrize("started", [True, False])
def test_secrets_reach_a_jvm_that_runs_already(started: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001 - a column
    """A JVM of spark-submit reads no file any more: it gets secrets over its socket; ours gets them in a file alone."""
    told: dict[str, str] = {}

    class Builder:
        def config(self, name: str, value: str) -> Builder:
            told[name] = value
            return self

        def getOrCreate(self) -> None:  # noqa: N802 - PySpark's name
            raise ZeroDivisionError

    monkeypatch.setattr(
        "heartwheel.engine.runtime.driver.session.SparkSession", type("Stub", (), {"builder": Builder()})
    )
    if started:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    else:
        monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with pytest.raises(ZeroDivisionError):
        start_session({"spark.authenticate": "true", "spark.authenticate.secret": "hunter2"})
    assert told == {"spark.authenticate": "true"} | ({"spark.authenticate.secret": "hunter2"} if started else {})


def test_spark_connect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through Spark Connect nobody reaches the driver's JVM: the job says so before it asks for a session."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1")
    with pytest.raises(UnfitSparkError, match="Spark Connect"):
        start_session({})
