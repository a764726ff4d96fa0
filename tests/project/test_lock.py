"""The lock: everything the project asks for, at a version it accepts, with hashes and without an address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCKS = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in (
        "requirements.lock",
        *(f"requirements-{part}.lock" for part in ("build", "supply", "watch", "release")),
    )
}
LOCK = LOCKS["requirements.lock"]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pins_of(lock: str) -> dict[str, Version]:
    """Read the version that a lock gives each package."""
    found = re.findall(r"^([\w.-]+)==([^ ;\\]+)", lock, re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in found}


PINS = pins_of(LOCK)

WANTED = [
    *PROJECT["project"]["dependencies"],
    *(
        text
        for extra in PROJECT["project"]["optional-dependencies"].values()
        for text in extra
        if not text.startswith("heartwheel[")
    ),
    *PROJECT["dependency-groups"]["build"],
    *PROJECT["build-system"]["requires"],
]


@pytest.mark.parametrize("text", WANTED)
def test_every_requirement_is_pinned(text: str) -> None:
    """What pyproject.toml asks for, extras and the build backend included, is in the lock at a version it accepts."""
    requirement = Requirement(text)
    assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)])


@pytest.mark.parametrize("group", ["build", "supply", "release"])
def test_every_group_is_pinned_in_its_lock(group: str) -> None:
    """What builds, what audits and what releases has a lock of its own, with everything that is asked for."""
    pins = pins_of(LOCKS[f"requirements-{group}.lock"])
    for requirement in map(Requirement, PROJECT["dependency-groups"][group]):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)])


def test_the_image_without_a_jvm_has_the_extra_page() -> None:
    """The image `watch` runs what the extra `page` has, and the base; the lock of it names all of that."""
    extras, pins = PROJECT["project"]["optional-dependencies"], pins_of(LOCKS["requirements-watch.lock"])
    wanted = [*PROJECT["project"]["dependencies"], *extras["kafka"], *extras["page"]]
    for requirement in (Requirement(text) for text in wanted if not text.startswith("heartwheel[")):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)])


@pytest.mark.parametrize("part", ["build", "watch"])
def test_parts_have_the_versions_of_the_whole(part: str) -> None:
    """The second step of the setup changes nothing that the first has installed, and each part runs as it is tested."""
    assert pins_of(LOCKS[f"requirements-{part}.lock"]).items() <= PINS.items()


@pytest.mark.parametrize("file", ["Makefile", "docker/Dockerfile"])
def test_nothing_is_built_with_what_no_lock_names(file: str) -> None:
    """Whatever is installed has a hash, and what is built is built by what the lock of the build has installed."""
    text = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(r"pip install ([^\n|&]+)", text)
    installs = [line for line in found if "atheris" not in line and "$(SPARK)" not in line]  # asked for by hand
    assert len(installs) >= 3
    for words in map(str.split, installs):
        assert "--no-deps" in words
        assert "--require-hashes" in words or words[-1] in {".", "/dist/*.whl"}
        assert "--no-build-isolation" in words or ("--only-binary" in words and ":all:" in words)
    assert text.index("requirements-build.lock") < text.index("-r requirements.lock")


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_every_pin_has_hashes(lock: str) -> None:
    """Nothing is installed whose bytes the lock does not know."""
    blocks = re.split(r"^(?=[\w.-]+==)", lock, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(pins_of(lock)) > 5
    assert [block.splitlines()[0] for block in blocks if "--hash=sha256:" not in block] == []


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_locks_name_no_place(lock: str) -> None:
    """A lock holds pins, hashes and comments: no address, index, local folder or editable path."""
    line = re.compile(r"#.*|[\w.-]+==\S+( ; .+?)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?|    # .*")
    assert [text for text in lock.splitlines() if not line.fullmatch(text)] == []
    assert "://" not in lock
