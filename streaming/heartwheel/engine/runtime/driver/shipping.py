"""The way of heartwheel's own code to the executors of a cluster.

Executors are other processes, often on other machines, and their Python has the dependencies but not heartwheel. So the
driver packs the very packages that it runs into one archive and lets Spark hand it to every executor that joins, now or
later: driver and executors can never run different releases.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from pyspark import SparkContext

import heartwheel
import timing_wheel

PACKAGES: Final = (heartwheel, timing_wheel)
"""The packages that executors need and that no index gives them."""

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


def pack_code(folder: Path) -> Path:
    """Pack heartwheel's packages into an archive that Python can import from.

    Returns:
        The archive. The same code gives the same bytes.
    """
    archive = folder / "heartwheel-code.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, file in _modules():
            packed.writestr(zipfile.ZipInfo(name, _EPOCH), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return archive


def ship_code(context: SparkContext) -> None:
    """Send heartwheel's code to every executor, now and later.

    Args:
        context: of the session, which serves the archive for as long as it lives.
    """
    folder = Path(tempfile.mkdtemp(prefix="heartwheel-code-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    context.addPyFile(str(pack_code(folder)))


def _modules() -> Iterator[tuple[str, Traversable]]:
    for package in PACKAGES:
        yield from _below(resources.files(package), package.__name__)


def _below(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    """List the modules in a folder, which may lie in a wheel."""
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.is_dir():
            yield from _below(file, f"{name}/{file.name}")
        elif file.name.endswith(".py"):
            yield f"{name}/{file.name}", file
