"""docker/helm.sh: the Helm that is installed, or one that Go builds once; else it says what to install."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "docker" / "helm.sh"
TOOLS = ("bash", "dirname", "mkdir", "mktemp", "mv", "nice", "rm", "sed", "tail", "touch", "chmod")


def _machine(folder: Path, **commands: str) -> Path:
    """Make a machine with the usual tools, the script of a project, and commands that do what their script says."""
    (folder / "bin").mkdir()
    for tool in TOOLS:
        (folder / "bin" / tool).symlink_to(shutil.which(tool) or tool)
    for name, script in commands.items():
        file = folder / "bin" / name
        file.write_text(f"#!/bin/bash\n{script}\n")
        file.chmod(0o755)
    (folder / "docker").mkdir()
    shutil.copy(SCRIPT, folder / "docker" / "helm.sh")
    return folder


def _find(machine: Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": str(machine / "bin"), "TMPDIR": str(machine)}
    command = [str(machine / "bin" / "bash"), str(machine / "docker" / "helm.sh")]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def _go(version: str, install: str) -> str:
    return f'if [ "$1" = env ]; then echo {version}; exit; fi; echo "$@" >>"$TMPDIR/asked"; {install}'


def test_the_installed_one_is_taken(tmp_path: Path) -> None:
    """A Helm on the PATH is named, and nothing is built."""
    found = _find(_machine(tmp_path, helm="", go=_go("go1.26.0", "exit 1")))
    assert (found.returncode, found.stdout) == (0, f"{tmp_path}/bin/helm\n")
    assert not (tmp_path / "asked").exists()


def test_go_builds_one_once(tmp_path: Path) -> None:
    """Without one Go builds the version that is named, into the folder build, and leaves nothing else; once."""
    machine = _machine(tmp_path, go=_go("go1.26.0", 'mkdir -p "$GOBIN"; touch "$GOBIN/helm"; chmod +x "$GOBIN/helm"'))
    runs = [_find(machine) for _ in range(2)]
    (built,) = (tmp_path / "build" / "helm").glob("v3.*/helm")
    assert [(run.returncode, run.stdout) for run in runs] == [(0, f"{built}\n")] * 2
    assert (tmp_path / "asked").read_text() == f"install helm.sh/helm/v3/cmd/helm@{built.parent.name}\n"
    assert list(tmp_path.glob("helm.*")) == []


def test_a_build_that_fails_says_why(tmp_path: Path) -> None:
    """The end of what Go says is shown, nothing is left behind, and the exit code is 1."""
    found = _find(_machine(tmp_path, go=_go("go1.26.0", "echo 'no space left' >&2; exit 1")))
    assert (found.returncode, found.stdout) == (1, "")
    assert "no space left\nerror: Helm v3." in found.stderr
    assert list(tmp_path.glob("helm.*")) == []


def test_a_machine_without_go_learns_what_to_install(tmp_path: Path) -> None:
    """No Go, or one too old to fetch a newer one, is named with what to install."""
    for name, commands in {"none": {}, "old": {"go": _go("go1.19.8", "exit 1")}}.items():
        (tmp_path / name).mkdir()
        found = _find(_machine(tmp_path / name, **commands))
        assert (found.returncode, found.stdout) == (1, "")
        assert found.stderr.startswith("error: no helm here, and no Go 1.21 or newer")
        assert "hint: install Helm 3" in found.stderr
