"""A wall clock that a test puts forward and back, for processes that were started with it."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Final

COMPILER: Final = "cc"

_SOURCE: Final = Path(__file__).with_name("stepping_clock.c")


def can_be_built() -> bool:
    """Tell whether this machine has what builds it."""
    return shutil.which(COMPILER) is not None


class SteppingClock:
    """The clock of the processes that have `environment`: the JVM's, Python's, that of whatever they start.

    Their wall clock alone is stepped, as when a machine's is set; time goes on as ever for whatever waits.

    Args:
        folder: where the library and the offset lie.
    """

    def __init__(self, folder: Path) -> None:
        library = folder / "stepping_clock.so"
        subprocess.run([COMPILER, "-O2", "-shared", "-fPIC", "-o", library, _SOURCE, "-ldl"], check=True)
        self._offset = folder / "offset"
        self.set(0)
        self.environment = {"LD_PRELOAD": str(library), "HEARTWHEEL_TEST_CLOCK": str(self._offset)}

    def set(self, seconds: float) -> None:
        """Set it that far off from the true time, s; negative: behind it."""
        with self._offset.open("r+b" if self._offset.exists() else "w+b") as file:
            file.write(struct.pack("=q", round(seconds * 1e9)))
