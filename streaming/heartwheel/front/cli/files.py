"""Files that a command reads at its start and replaces at its end, with errors that people can act on."""

from __future__ import annotations

import os
from pathlib import Path

from heartwheel.base.errors import HeartwheelError


def read_file(path: Path) -> bytes:
    """Read a whole file.

    Raises:
        HeartwheelError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise HeartwheelError(f"{path} cannot be read: {error.strerror}") from error


def write_file(path: Path, data: bytes) -> None:
    """Write a file atomically: it is complete, or does not exist.

    Raises:
        HeartwheelError: it cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise HeartwheelError(f"{path} cannot be written: {error.strerror}") from error
