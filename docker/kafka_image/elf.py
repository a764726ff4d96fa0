"""Find the shared libraries that programs need at run time, also those that jars unpack for themselves."""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

# How the folders for our processor are called inside the jars of zstd, lz4 and snappy.
_FOLDERS: Final = {"x86_64": ("amd64", "x86_64"), "aarch64": ("aarch64",)}
# Opened by name at run time, so no list of needed libraries has them: for host names, and for natives built long ago.
_OPENED_LATE: Final = (
    *("libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"),
    *("libpthread.so.0", "libdl.so.2", "librt.so.1"),
)
_RESOLVED: Final = re.compile(r"(?:=> )?(/\S+) \(0x")


def shared_libraries(programs: Iterable[Path]) -> set[Path]:
    """List the libraries that the dynamic loader opens for programs, the loader among them, by their absolute paths.

    Args:
        programs: executables and libraries; a static one needs nothing.
    """
    found = {Path(path) for program in programs for path in _RESOLVED.findall(_ldd(program))}
    return found | {path for name in _OPENED_LATE for path in _beside(found, name)}


def unpack_natives(jars: Sequence[Path], folder: Path) -> Iterator[Path]:
    """Unpack the shared libraries for this machine out of jars.

    Without what they need the broker runs, and fails only on compressed batches.

    Args:
        folder: where they go, one folder a jar.
    """
    names = _FOLDERS.get(os.uname().machine, (os.uname().machine,))
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                parts = entry.lower().split("/")
                if entry.endswith(".so") and "linux" in parts and set(parts) & set(names):
                    yield Path(archive.extract(entry, folder / jar.stem))


def _ldd(program: Path) -> str:
    return subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout


def _beside(found: set[Path], name: str) -> list[Path]:
    """Find a library in the folders of the others."""
    return [folder / name for folder in sorted({path.parent for path in found}) if (folder / name).exists()][:1]
