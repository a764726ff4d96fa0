"""The distribution for workers: built alone, installed alone, and it beats."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from support.gateway_double import gateway_double

PROJECT = Path(__file__).parents[2] / "streaming" / "beats"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the project's folder, without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "wheel", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--no-build-isolation", "--wheel-dir", str(folder), str(PROJECT)], check=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_its_package_alone(wheel: Path) -> None:
    """Nothing of heartwheel itself is in it, and it requires nothing unless asked for Kafka."""
    with zipfile.ZipFile(wheel) as archive:
        roots = {name.partition("/")[0] for name in archive.namelist()}
        metadata = archive.read(next(name for name in archive.namelist() if name.endswith("/METADATA"))).decode()
    assert {root for root in roots if not root.endswith(".dist-info")} == {"heartwheel_beats"}
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:")]
    assert all("extra == 'kafka'" in line for line in required)
    assert len(required) == 1


def test_it_beats_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """Installed alone into a fresh environment it beats through a gateway, and loads nothing that is not Python's."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--python", python]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True)
    script = """if True:
        import sys, time
        from heartwheel_beats import beats
        with beats("orders", member="alone") as beat:
            end = time.monotonic() + 20
            while not beat.acknowledged and time.monotonic() < end: time.sleep(0.01)
        print(*{name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - {"__main__"})
    """
    with gateway_double() as gateway:
        environment = {"PATH": os.environ["PATH"], "HEARTWHEEL_BEATS_TO": gateway.url}
        done = subprocess.run(
            [python, "-I", "-c", script], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
        )
    assert done.stdout.split() == ["heartwheel_beats"]
    assert gateway.heartbeats("alone") >= 1
    assert gateway.leaves("alone") == ["done"]
