"""Import roots and data folders never hide another distribution's package of the same name."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("package", ["wheel", "docker", "kafka"])
def test_real_package_is_imported_from_the_project_folder(package: str) -> None:
    """With the project's folders first on the path, the import still finds the installed package, if there is one."""
    if importlib.util.find_spec(package) is None or not _installed(package):
        pytest.skip(f"{package} is not installed here")
    program = f"import sys, {package}; print({package}.__file__)"
    path = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tests')!r}]; "
    done = subprocess.run([sys.executable, "-c", path + program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not Path(done.stdout.strip()).is_relative_to(ROOT / package)
    assert "site-packages" in done.stdout


def test_lock_of_the_jars_is_installed_with_the_package() -> None:
    """The lock is package data: an installed package finds it beside its module."""
    spec = importlib.util.find_spec("heartwheel.kafka.broker")
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).with_name("jars.lock").is_file()


def test_editable_installation_copies_no_module(tmp_path: Path) -> None:
    """After `make setup` the folders of the project are imported: a copy would hide what is changed in them."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel:editable", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as wheel:
        assert {name for name in wheel.namelist() if ".dist-info/" not in name} == {"_heartwheel.pth"}


def _installed(package: str) -> bool:
    return package in metadata.packages_distributions()
