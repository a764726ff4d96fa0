"""Jars arrive whole and hash-checked, or the error says which did not and why."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from heartwheel.kafka.broker import jars as jars_module
from heartwheel.kafka.broker import repository
from heartwheel.kafka.broker.jars import Jar, JarError, fetch, fetch_jars, locked_jars, read_lock

CONTENT = {"alpha": b"first jar", "beta": b"second, longer jar"}


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Serve two jars from a folder in Maven's layout; nothing else is asked."""
    monkeypatch.setenv("HEARTWHEEL_MAVEN_REPO", (tmp_path / "remote").as_uri())
    monkeypatch.setenv("MAVEN_LOCAL_REPO", str(tmp_path / "local"))
    for jar in locked():
        file = tmp_path / "remote" / jar.path
        file.parent.mkdir(parents=True)
        file.write_bytes(CONTENT[jar.coordinate.split(":")[1]])
    return tmp_path / "remote"


def locked() -> list[Jar]:
    """Lock the two jars of the tests."""
    return [
        Jar(hashlib.sha256(content).hexdigest(), len(content), ("test",), f"org.example:{name}:1.0")
        for name, content in CONTENT.items()
    ]


def test_lock_line_names_the_file_of_mavens_layout() -> None:
    """A line of the lock says where its file lies in a repository."""
    (jar,) = read_lock("# a comment\n\nab12  7 broker,image org.apache.kafka:kafka-raft:4.4.0  # and another\n")
    assert jar.path == "org/apache/kafka/kafka-raft/4.4.0/kafka-raft-4.4.0.jar"
    assert (jar.sha256, jar.size, jar.sets) == ("ab12", 7, ("broker", "image"))


@pytest.mark.parametrize(
    "line", ["<<<<<<< HEAD", "ab12", "ab12 seven broker g:a:1", "ab12 7 broker org.apache.kafka:kaf"]
)
def test_a_damaged_lock_is_refused_with_the_line(line: str) -> None:
    """A lock that is half written, or half merged, is an error with the number of the line."""
    with pytest.raises(JarError, match=r"^line 2 of the lock of jars is no jar: "):
        read_lock(f"# a comment\n{line}\n")


def test_packaged_lock_has_the_sets_and_keeps_two_clients_apart() -> None:
    """Each set is one class path: no artifact is in it twice, and broker and connector each have their own client."""
    versions = {}
    spark = ("spark", "spark-4.0", "spark-4.1", "spark-4.2", "spark-4.3")
    for name in ("broker", "image", "broker-4.3", *spark, "streams", "streams-4.3", "tools"):
        artifacts = [jar.coordinate.rpartition(":")[0] for jar in locked_jars(name)]
        assert len(artifacts) == len(set(artifacts))
        versions[name] = {c.split(":")[2] for c in (j.coordinate for j in locked_jars(name)) if ":kafka-clients:" in c}
    assert versions["broker"] == {"4.4.0"}
    assert versions["broker-4.3"] == {"4.3.1"}
    assert [versions[name] for name in spark] == [{"3.9.2"}] * 5
    assert {jar.coordinate for jar in locked_jars("broker")} < {jar.coordinate for jar in locked_jars("image")}


def test_unknown_set_is_refused_with_the_known_ones() -> None:
    """A misspelt set name is an error that lists the right names."""
    with pytest.raises(JarError, match=r"'brokr'") as caught:
        locked_jars("brokr")
    spark = "spark-4.0, spark-4.1, spark-4.2, spark-4.3"
    assert caught.value.hint == f"it has broker, broker-4.3, image, {spark}, streams, streams-4.3, tools"


def test_fetched_once_then_offline(remote: Path, tmp_path: Path) -> None:
    """What was fetched once is there without a network, and the progress ends at the whole size."""
    seen: list[tuple[int, int]] = []
    total = sum(map(len, CONTENT.values()))
    paths = fetch(locked(), tmp_path / "cache", progress=lambda done, of: seen.append((done, of)))
    assert [path.read_bytes() for path in paths] == list(CONTENT.values())
    assert seen[0] == (0, total)
    assert seen[-1] == (total, total)
    for file in remote.rglob("*.jar"):
        file.unlink()
    assert fetch(locked(), tmp_path / "cache", offline=True) == paths
    assert not list((tmp_path / "cache").glob(".*"))


def test_offline_with_an_empty_cache_names_every_jar(remote: Path, tmp_path: Path) -> None:
    """Offline asks nobody, and says which jars are missing and where to put them."""
    assert remote.exists()
    with pytest.raises(JarError) as caught:
        fetch(locked(), tmp_path / "cache", offline=True)
    assert "org.example:alpha:1.0" in str(caught.value)
    assert "org.example:beta:1.0" in str(caught.value)
    assert f"put them into {tmp_path / 'cache'}" in str(caught.value.hint)


def test_missing_jar_fails_without_losing_the_others(remote: Path, tmp_path: Path) -> None:
    """One jar that is nowhere is named alone; the rest is in the cache for the next try."""
    next(remote.rglob("beta*.jar")).unlink()
    with pytest.raises(JarError, match=r"1 jars cannot be had.*\n  org.example:beta:1.0: no such file$") as caught:
        fetch(locked(), tmp_path / "cache")
    assert "alpha" not in str(caught.value)
    assert (tmp_path / "cache" / "alpha-1.0.jar").read_bytes() == CONTENT["alpha"]


def test_jar_with_a_wrong_hash_never_gets_into_the_cache(remote: Path, tmp_path: Path) -> None:
    """A jar of the right length and other bytes is refused by its hash."""
    next(remote.rglob("alpha*.jar")).write_bytes(CONTENT["alpha"].upper())
    with pytest.raises(JarError, match=r"alpha:1.0: its SHA-256 is \w{64}, the lock says \w{64}"):
        fetch(locked(), tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*alpha*"))


def test_damaged_cache_is_repaired(remote: Path, tmp_path: Path) -> None:
    """Every use verifies the cache; a damaged file is fetched again."""
    assert remote.exists()
    alpha, _ = fetch(locked(), tmp_path / "cache")
    alpha.write_bytes(b"damaged!!")
    fetch(locked(), tmp_path / "cache")
    assert alpha.read_bytes() == CONTENT["alpha"]


def test_local_maven_repository_serves_when_the_remote_is_gone(remote: Path, tmp_path: Path) -> None:
    """What a build tool has fetched before is used, after a look at its hash."""
    remote.rename(tmp_path / "local")
    assert len(fetch(locked(), tmp_path / "cache")) == len(CONTENT)


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`HEARTWHEEL_CACHE` moves the cache, else it is in the user's cache folder."""
    monkeypatch.setenv("HEARTWHEEL_CACHE", str(tmp_path))
    assert jars_module.default_cache_dir() == tmp_path / "jars"
    monkeypatch.delenv("HEARTWHEEL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert jars_module.default_cache_dir() == tmp_path / "xdg" / "heartwheel" / "jars"


def test_command_prints_paths_or_a_plain_error(
    remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command ends with 1 and a message, never with a traceback."""
    assert remote.exists()
    monkeypatch.setattr(jars_module, "locked_jars", lambda _: locked())
    assert jars_module.main(["test", "--cache-dir", str(tmp_path / "cache")]) == 0
    assert capsys.readouterr().out.splitlines() == [str(path) for path in sorted((tmp_path / "cache").iterdir())]
    assert jars_module.main(["test", "--cache-dir", str(tmp_path / "other"), "--offline"]) == 1
    assert capsys.readouterr().err.startswith("error: 2 jars cannot be had")


class TestRepositoryAddress:
    """The repository is the user's choice first, then what pyspark's Ivy would ask."""

    @pytest.fixture(autouse=True)
    def _no_choice(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        for name in repository.REPOSITORY_VARIABLES:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("MAVEN_SETTINGS", str(tmp_path / "settings.xml"))

    def test_variables_win_in_order(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Our own variable goes before the one that Spark reads."""
        monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "https://spark.example/m2")
        assert repository.repository_address() == "https://spark.example/m2/"
        monkeypatch.setenv("HEARTWHEEL_MAVEN_REPO", "https://own.example/m2/")
        assert repository.repository_address() == "https://own.example/m2/"

    @pytest.mark.parametrize(
        ("mirrored", "used"), [("central", True), ("*,!x", True), ("*,!central", False), ("x", False)]
    )
    def test_mirror_of_central_in_the_users_settings(self, tmp_path: Path, mirrored: str, used: bool) -> None:  # noqa: FBT001 - a parameter of the table
        """A mirror counts if it stands for the central repository."""
        mirror = f"<mirror><mirrorOf>{mirrored}</mirrorOf><url>https://mirror.example/m2</url></mirror>"
        namespace = "http://maven.example/SETTINGS/1.0.0"
        (tmp_path / "settings.xml").write_text(f'<settings xmlns="{namespace}"><mirrors>{mirror}</mirrors></settings>')
        assert (repository.repository_address() == "https://mirror.example/m2/") is used

    def test_default_is_the_one_inside_pysparks_ivy(self) -> None:
        """Without any choice there is still an address, over TLS."""
        address = repository.repository_address()
        assert address.startswith("https://")
        assert address.endswith("/")


def test_whole_sets_can_be_had() -> None:
    """The real lock leads to real files: both class paths are there, from the cache if it was filled before."""
    for name, count in (("broker", 33), ("spark", 4)):
        assert len({path.name for path in fetch_jars(name)}) == count
