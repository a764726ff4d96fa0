"""The lock can be made anew: what Ivy resolves, with the hashes of the files it got."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from heartwheel.kafka.broker import lock
from heartwheel.kafka.broker.jars import JarError, read_lock

POM = (
    "<project><modelVersion>4.0.0</modelVersion>"
    "<groupId>org.example</groupId><artifactId>{name}</artifactId><version>1.0</version>{more}</project>"
)
NEEDS_BETA = (
    "<dependencies><dependency><groupId>org.example</groupId><artifactId>beta</artifactId><version>1.0</version>"
    "</dependency></dependencies>"
)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Serve alpha, which needs beta, from a folder in Maven's layout."""
    for name, more in (("alpha", NEEDS_BETA), ("beta", "")):
        folder = tmp_path / "remote" / "org" / "example" / name / "1.0"
        folder.mkdir(parents=True)
        (folder / f"{name}-1.0.pom").write_text(POM.format(name=name, more=more))
        (folder / f"{name}-1.0.jar").write_bytes(name.encode())
    monkeypatch.setenv("HEARTWHEEL_MAVEN_REPO", (tmp_path / "remote").as_uri())
    return tmp_path / "remote"


def test_lines_hold_what_was_resolved(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Dependencies come along, with the hashes of their files, as lines that the fetcher reads."""
    assert repository.exists()
    assert lock.main(["test", "org.example:alpha:1.0"]) == 0
    jars = read_lock(capsys.readouterr().out)
    assert [jar.coordinate for jar in jars] == ["org.example:alpha:1.0", "org.example:beta:1.0"]
    assert [jar.sha256 for jar in jars] == [hashlib.sha256(name).hexdigest() for name in (b"alpha", b"beta")]
    assert {jar.sets for jar in jars} == {("test",)}


def test_what_is_not_wanted_is_left_out(repository: Path) -> None:
    """A jar can be locked alone, or without some of what it names."""
    assert repository.exists()
    alone = lock.resolve("test", ["org.example:alpha:1.0"], transitive=False)
    without = lock.resolve("test", ["org.example:alpha:1.0"], without={"beta"})
    assert [jar.name for jar in alone] == [jar.name for jar in without] == ["alpha-1.0.jar"]


def test_what_can_not_be_resolved_is_named(repository: Path) -> None:
    """A missing version ends with its name, not with Ivy's report."""
    assert repository.exists()
    with pytest.raises(JarError, match=r"^Ivy cannot resolve: org.example#alpha;2.0$"):
        lock.resolve("test", ["org.example:alpha:2.0"])
