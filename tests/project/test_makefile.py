"""The Makefile: what the documents name exists, and a machine that lacks something learns what to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from heartwheel.front.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    *("README.md", "CONTRIBUTING.md", "checkpoints/README.md"),
    *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md"))),
)
MAKE = shutil.which("make") or "make"


def code_of(document: str) -> str:
    """Give the code blocks and code words of a document."""
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    words = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    return "\n".join([*blocks, *words])


def targets() -> set[str]:
    """List the targets that people call."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):.*##", text, re.MULTILINE))


def setup(tmp_path: Path, python: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `make setup` for an environment in the test's folder."""
    command = [MAKE, "setup", f"VENV={tmp_path / 'venv'}", f"PYTHON={python}"]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def fake_python(tmp_path: Path, *, fails_at: str) -> str:
    """Make a Python that only knows how to fail at a script with these words."""
    file = tmp_path / "python"
    file.write_text(f'#!/bin/sh\ncase "$2" in *{fails_at}*) exit 1;; esac\n')
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_name_targets_that_exist(document: str) -> None:
    """Every `make` command that a document shows is a target of the Makefile."""
    assert set(re.findall(r"\bmake ([a-z-]+)", code_of(document))) - targets() == set()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_name_commands_that_exist(document: str) -> None:
    """Every `heartwheel` command that a document shows is a command of the program."""
    shown = set(re.findall(r"(?:^|[ /])(?<!from )heartwheel ([a-z]+)", code_of(document), re.MULTILINE))
    assert shown - COMMANDS.keys() == set()


def test_help_lists_every_target() -> None:
    """Plain `make` says what there is, in words."""
    done = subprocess.run([MAKE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(re.findall(r"^  make ([\w-]+) +\S", done.stdout, re.MULTILINE)) == targets()


@pytest.mark.parametrize(
    ("fails_at", "hint"), [("version_info", "Python 3.11 or newer"), ("ensurepip", "apt install python3-venv")]
)
def test_wrong_python_is_told(tmp_path: Path, fails_at: str, hint: str) -> None:
    """An old Python, or one without venv, stops the setup with what to install."""
    done = setup(tmp_path, fake_python(tmp_path, fails_at=fails_at), PATH=os.environ["PATH"])
    assert done.returncode != 0
    assert hint in done.stderr
    assert "hint: " in done.stderr
    assert not (tmp_path / "venv").exists()


def test_missing_java_is_told(tmp_path: Path) -> None:
    """A machine without Java stops the setup with what to install, before anything is downloaded."""
    done = setup(tmp_path, sys.executable, PATH=str(tmp_path))
    assert done.returncode != 0
    assert "openjdk-17-jre-headless" in done.stderr
    assert "heartwheel explain needs none" in done.stderr
    assert not (tmp_path / "venv").exists()


def supply(tmp_path: Path, tool: str) -> str:
    """Make an environment of the tools for the supply chain in which `pip-audit` is a script."""
    folder = tmp_path / "supply"
    (folder / "bin").mkdir(parents=True)
    audit = folder / "bin" / "pip-audit"
    audit.write_text(f"#!/bin/sh\n{tool}\n")
    audit.chmod(0o755)
    (folder / ".installed").touch()
    return f"SUPPLY={folder}"


@pytest.mark.parametrize(
    ("tool", "code", "words"),
    [
        ("exit 0", 0, "requirements-build.lock: nothing known"),
        ("echo 'Found 1 known vulnerability in 1 package'; exit 1", 2, "Found 1 known vulnerability"),
        ("echo 'requests.exceptions.ConnectionError: x' >&2; exit 1", 2, "was NOT audited"),
    ],
)
def test_an_audit_that_could_not_ask_is_not_clean(tmp_path: Path, tool: str, code: int, words: str) -> None:
    """`make audit-deps` tells a hole from a service that does not answer, and fails for both."""
    command = [MAKE, "audit-deps", supply(tmp_path, tool)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert words in done.stdout + done.stderr
    assert ("nothing known" in done.stdout) == (code == 0)


DIGEST = f"sha256:{'0123456789abcdef' * 4}"


@pytest.mark.parametrize(("answer", "code"), [(f"echo {DIGEST}", 0), ("echo sha256:short", 1), ("exit 1", 1)])
def test_images_are_pinned_all_or_not_at_all(tmp_path: Path, answer: str, code: int) -> None:
    """Each tag gets the digest that the registry tells, also a second time; else the file stays as it was."""
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\necho "$6" >>{tmp_path}/asked\n{answer}\n')
    docker.chmod(0o755)
    file = tmp_path / "images.env"
    before = (ROOT / "docker" / "images.env").read_text()
    file.write_text(before)
    command = [str(ROOT / "docker" / "pin_images.sh"), str(file)]
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    runs = [subprocess.run(command, env=env, capture_output=True, text=True, check=False) for _ in range(2)]
    assert [run.returncode for run in runs] == [code, code]
    images = re.findall(r"^[A-Z_]+=([^@\n]+)(?:@\S+)?$", before, re.MULTILINE)
    if code:
        assert file.read_text() == before
        assert "as it was" in runs[0].stderr
    else:
        assert re.findall(r"^[A-Z_]+=(.*)$", file.read_text(), re.MULTILINE) == [
            f"{image}@{DIGEST}" for image in images
        ]
        assert (tmp_path / "asked").read_text().split() == 2 * images
    assert len(list(tmp_path.glob("images.env*"))) == 1


def test_images_are_those_of_the_files() -> None:
    """The Dockerfile and the compose file name the images of docker/images.env, by the same variables."""
    images = dict(re.findall(r"^(\w+)=([^@\n]+)", (ROOT / "docker" / "images.env").read_text(), re.MULTILINE))
    compose = (ROOT / "docker" / "compose.yaml").read_text()
    assert dict(re.findall(r"\$\{(HEARTWHEEL_\w+_IMAGE):-([^}]+)\}", compose)) == images
    assert f"ARG BASE={images['HEARTWHEEL_BASE_IMAGE']}\n" in (ROOT / "docker" / "Dockerfile").read_text()


@pytest.mark.parametrize(("spark", "venv"), [("", ".venv"), ("4.3.0", ".venv-spark-4.3.0")])
def test_another_pyspark_has_an_environment_of_its_own(spark: str, venv: str) -> None:
    """With SPARK=VERSION the lock is installed into an environment of its own, and then that version of PySpark."""
    command = [MAKE, "--always-make", "--dry-run", "setup", f"SPARK={spark}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"{venv}/bin/python -m pip" in done.stdout
    assert ("pyspark==4.3.0" in done.stdout) is bool(spark)
    if spark:
        assert done.stdout.index("-r requirements.lock") < done.stdout.index("pyspark==4.3.0")
