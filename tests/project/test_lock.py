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
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

PINS = {
    canonicalize_name(name): Version(version)
    for name, version in re.findall(r"^([\w.-]+)==([^ ;\\]+)", LOCK, re.MULTILINE)
}

WANTED = [
    *PROJECT["project"]["dependencies"],
    *(text for extra in PROJECT["project"]["optional-dependencies"].values() for text in extra),
    *PROJECT["dependency-groups"]["build"],
    *PROJECT["build-system"]["requires"],
]


@pytest.mark.parametrize("text", WANTED)
def test_every_requirement_is_pinned(text: str) -> None:
    """What pyproject.toml asks for, extras and the build backend included, is in the lock at a version it accepts."""
    requirement = Requirement(text)
    assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)])


def test_every_pin_has_hashes() -> None:
    """Nothing is installed whose bytes the lock does not know."""
    blocks = re.split(r"^(?=[\w.-]+==)", LOCK, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(PINS) > 20
    assert [block.splitlines()[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_lock_names_no_place() -> None:
    """The lock holds pins, hashes and comments: no address, index, local folder or editable path."""
    line = re.compile(r"#.*|[\w.-]+==\S+( ; .+?)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?|    # .*")
    assert [text for text in LOCK.splitlines() if not line.fullmatch(text)] == []
    assert "://" not in LOCK
