"""The code that executors get is the code that the driver runs, and it can be imported from the archive alone."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import heartwheel
import timing_wheel
from heartwheel.settings import load_settings
from heartwheel.spark.session import session_conf
from heartwheel.spark.shipping import pack_code


def test_the_archive_holds_both_packages_whole(tmp_path: Path) -> None:
    """Every module of both packages is in it, byte for byte, and nothing else."""
    roots = {package.__name__: Path(package.__path__[0]) for package in (heartwheel, timing_wheel)}
    with zipfile.ZipFile(pack_code(tmp_path)) as packed:
        found = {name: packed.read(name) for name in packed.namelist()}
    assert found == {
        f"{name}/{file.relative_to(root)}": file.read_bytes()
        for name, root in roots.items()
        for file in root.rglob("*.py")
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
        "import heartwheel.spark.query, heartwheel.operations_job.job, timing_wheel\n"
        "print(heartwheel.spark.query.__file__, timing_wheel.__file__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert all(str(archive) in file for file in done.stdout.split())


def test_a_cluster_uses_its_own_python_and_a_local_master_ours() -> None:
    """`spark.executor_python` goes to a cluster; with a local master it means nothing."""
    flags = ["spark.executor_python=env/bin/python", "spark.shuffle_partitions=2", "checkpoint.shared=true"]
    local = load_settings(overrides=flags).settings
    remote = load_settings(overrides=[*flags, "spark.master=spark://m:7077"]).settings
    submitted = load_settings(overrides=[*flags, "spark.master=submitted"]).settings
    confs = [session_conf(settings, [], shuffle_partitions=2) for settings in (local, remote, submitted)]
    assert [conf.get("spark.pyspark.python") for conf in confs] == [None, *2 * ["env/bin/python"]]
    assert [conf.get("spark.driver.host") for conf in confs] == ["127.0.0.1", None, None]
    assert [conf.get("spark.master") for conf in confs] == ["local[*]", "spark://m:7077", None]
