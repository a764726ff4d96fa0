"""What a session gets beside what a person asks for: an archive of classes, jars, a file system."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from heartwheel.engine.runtime.driver.session import archive_file, session_conf
from heartwheel.settings import load_settings

JARS = [Path("/cache/jars/one.jar")]


def _options(jars: list[Path], *flags: str) -> str:
    settings = load_settings(overrides=["checkpoint.shared=true", "spark.shuffle_partitions=2", *flags]).settings
    return session_conf(settings, jars, shuffle_partitions=2)["spark.driver.extraJavaOptions"]


def test_a_local_jvm_takes_the_archive_that_was_made_for_it(tmp_path: Path) -> None:
    """Without an archive the JVM is told of none; one for other jars is not ours; a cluster's JVMs have other paths."""
    ours = [tmp_path / "jars" / "one.jar"]
    for jars in ([*ours, tmp_path / "jars" / "two.jar"], ours):
        assert "SharedArchiveFile" not in _options(ours)
        archive_file(jars).parent.mkdir(exist_ok=True)
        archive_file(jars).touch()
    assert len(list((tmp_path / "classes").iterdir())) == 2
    assert f"-XX:SharedArchiveFile={archive_file(ours)}" in _options(ours)
    assert "SharedArchiveFile" not in _options(ours, "spark.master=yarn")


def test_another_pyspark_has_an_archive_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two releases may have the same connector, and other classes: the archive of one is none for the other."""
    before = archive_file(JARS)
    monkeypatch.setattr("pyspark.__version__", "4.9.0")
    assert archive_file(JARS) != before


@pytest.mark.parametrize("mode", [0o664, 0o646])
@pytest.mark.parametrize("of", ["file", "folder"])
def test_an_archive_that_others_can_change_is_not_loaded(tmp_path: Path, of: str, mode: int) -> None:
    """Classes of an archive are code: where others could have put them there, the JVM reads its jars."""
    ours = [tmp_path / "jars" / "one.jar"]
    file = archive_file(ours)
    file.parent.mkdir()
    file.touch()
    assert "SharedArchiveFile" in _options(ours)
    (file if of == "file" else file.parent).chmod(mode | 0o111)
    assert "SharedArchiveFile" not in _options(ours)


def test_paths_with_spaces_stay_whole(tmp_path: Path) -> None:
    """Spark cuts the options of a JVM at spaces; in a folder of such a name no job would start."""
    log = tmp_path / 'a "b" \\ c' / "spark.log"
    ours = [tmp_path / "d e" / "jars" / "one.jar"]
    archive_file(ours).parent.mkdir(parents=True)
    archive_file(ours).touch()
    options = session_conf(load_settings().settings, ours, shuffle_partitions=2, log_file=log)[
        "spark.driver.extraJavaOptions"
    ]
    assert {f"-Dheartwheel.log.file={log}", f"-XX:SharedArchiveFile={archive_file(ours)}"} <= set(shlex.split(options))


def test_jars_that_a_person_adds_come_to_ours() -> None:
    """The connector stays on the class path of a local JVM and in the jars of a cluster, whatever else is asked for."""
    flags = ["checkpoint.shared=true", "spark.shuffle_partitions=2"]
    more = ["spark.conf.spark.driver.extraClassPath=/a.jar", "spark.conf.spark.jars=/b.jar"]
    local = session_conf(load_settings(overrides=[*flags, *more]).settings, JARS, shuffle_partitions=2)
    yarn = [*flags, *more, "spark.master=yarn"]
    remote = session_conf(load_settings(overrides=yarn).settings, JARS, shuffle_partitions=2)
    assert (local["spark.driver.extraClassPath"], local["spark.jars"]) == ("/cache/jars/one.jar:/a.jar", "/b.jar")
    assert (remote["spark.driver.extraClassPath"], remote["spark.jars"]) == ("/a.jar", "/cache/jars/one.jar,/b.jar")


def test_rocksdb_gets_the_file_system_that_it_needs() -> None:
    """RocksDB copies its snapshots by a class of Hadoop's own local file system, in place of which ours has another."""
    name, store = (
        "spark.hadoop.fs.file.impl",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    chosen = [f"spark.conf.spark.sql.streaming.stateStore.providerClass={store}"]
    confs = [session_conf(load_settings(None, {}, each).settings, [], shuffle_partitions=2) for each in ([], chosen)]
    assert [name in conf for conf in confs] == [True, False]
