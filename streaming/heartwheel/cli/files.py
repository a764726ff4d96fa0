"""Files that a command carries on from and writes anew, with errors that people can act on."""

from __future__ import annotations

import os
from pathlib import Path

from heartwheel.errors import HeartwheelError


def read_file(path: Path) -> bytes:
    """Read a whole file.

    Args:
        path: where it is.

    Raises:
        HeartwheelError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise HeartwheelError(f"{path} cannot be read: {error.strerror}") from error


def write_file(path: Path, data: bytes) -> None:
    """Write a file that is whole or not there at all.

    Args:
        path: where it goes.
        data: what is in it.

    Raises:
        HeartwheelError: it cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise HeartwheelError(f"{path} cannot be written: {error.strerror}") from error
