"""Wheels and source distributions of the project, and environments that hold one of its extras."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FOLDERS = {"heartwheel": ROOT, "heartwheel-beats": ROOT / "streaming" / "beats"}
"""The folder of each distribution."""


def build(folder: Path, into: Path, **environment: str) -> tuple[Path, Path]:
    """Build a distribution, with the build tools of the lock and without an index.

    Args:
        folder: where its pyproject.toml is.
        into: where the files go.
        environment: variables of the build.

    Returns:
        The wheel and the source distribution.
    """
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(into)]
    subprocess.run(command, cwd=folder, env=os.environ | environment, check=True, capture_output=True)
    return next(into.glob("*.whl")), next(into.glob("*.tar.gz"))


def requirements_of(wheel: Path) -> list[str]:
    """Return what a wheel asks for."""
    with ZipFile(wheel) as opened:
        (name,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        lines = opened.read(name).decode().splitlines()
    return [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]


def needed(requirements: Iterable[str], extra: str) -> set[str]:
    """Return the names of all that requirements and an extra install, by what is installed here."""
    found: set[tuple[str, str]] = set()
    waiting = [(text, extra) for text in requirements]
    while waiting:
        text, of = waiting.pop()
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": of}):
            continue
        for each in ("", *requirement.extras):
            key = (canonicalize_name(requirement.name), each)
            if key not in found:
                found.add(key)
                waiting += [(inner, each) for inner in metadata.requires(requirement.name) or []]
    return {name for name, _ in found}


def environment(folder: Path, wheel: Path, extra: str) -> Path:
    """Make an environment with a wheel and what it asks for: the latter as links to what is installed here.

    Nothing is fetched, and Spark's 450 MB are not copied. What is not asked for is not there.

    Returns:
        Its interpreter.
    """
    python = empty_environment(folder)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in needed(requirements_of(wheel), extra):
        for file in metadata.files(name) or ():
            target = site / file.parts[0]
            if file.parts[0] not in ("..", "__pycache__") and not target.is_symlink():
                target.symlink_to(Path(str(file.locate())).parents[len(file.parts) - 1] / file.parts[0])
    pip(python, "install", "--no-index", "--no-deps", "--no-compile", str(wheel)).check_returncode()
    return python


def empty_environment(folder: Path) -> Path:
    """Make an empty environment, without pip; return its interpreter."""
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


def pip(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run this environment's pip for another one."""
    command = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", *words]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)
