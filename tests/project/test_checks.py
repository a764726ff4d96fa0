"""What `make check` reads: every folder of ours, as strictly as the engine."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MYPY: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]


def test_mypy_reads_every_folder_of_python() -> None:
    """Tests and what builds images are held to types like the engine, by the same strict settings."""
    with_python = {
        path.relative_to(ROOT).parts[0]
        for path in ROOT.glob("[!.]*/**/*.py")
        if path.relative_to(ROOT).parts[0] not in {"build", "dist", "artifacts", "node_modules"}
    }
    assert with_python == set(MYPY["files"])
    assert MYPY["strict"] is True


def test_mypy_is_relaxed_for_other_peoples_packages_alone() -> None:
    """No exception names a package of ours: it only says which imports have no types."""
    for override in MYPY["overrides"]:
        assert override.keys() <= {"module", "ignore_missing_imports", "follow_imports"}
        assert not [name for name in override["module"] if name.startswith(("heartwheel", "timing_wheel", "support"))]
