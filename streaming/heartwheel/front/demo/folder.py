"""The demo's folder: the broker's data, the checkpoint, the truth and the logs of one demo at a time."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.file_lock import locked_file
from heartwheel.base.private import private_folder

_MARKER: Final = ".heartwheel-demo"


class DemoFolder(NamedTuple):
    """The paths in a demo's folder."""

    root: Path

    @property
    def broker(self) -> Path:
        """The broker's data, configuration and logs."""
        return self.root / "broker"

    @property
    def checkpoint(self) -> Path:
        """The job's checkpoint; stays after the demo, to be inspected."""
        return self.root / "checkpoint"

    @property
    def truth(self) -> Path:
        """What the feeder did to its members."""
        return self.root / "truth.jsonl"

    @property
    def tap(self) -> Path:
        """The positions of the tap, if real consumers are run."""
        return self.root / "tap"

    @property
    def spark_log(self) -> Path:
        """What Spark logs."""
        return self.root / "spark.log"


class DemoFolderError(HeartwheelError):
    """A folder cannot be used for a demo."""


@contextlib.contextmanager
def fresh_folder(root: Path) -> Iterator[DemoFolder]:
    """Clear a folder and keep it for one demo.

    Args:
        root: a new or empty folder, or one of an earlier demo.

    Raises:
        DemoFolderError: it holds something else, or another demo runs in it.
    """
    folder = DemoFolder(root.absolute())
    marker = folder.root / _MARKER
    if folder.root.exists() and not marker.exists() and (not folder.root.is_dir() or any(folder.root.iterdir())):
        raise DemoFolderError(
            f"{root} holds something that is not a demo's, and a demo starts by clearing its folder",
            hint="name a new folder: --folder artifacts/another-demo",
        )
    private_folder(folder.root)
    hint = "stop it, or name another folder with --folder"
    with locked_file(marker, DemoFolderError(f"another demo runs in {root}", hint=hint)):
        for left in (folder.broker, folder.checkpoint, folder.tap):
            shutil.rmtree(left, ignore_errors=True)
        for left in (folder.truth, folder.spark_log):
            left.unlink(missing_ok=True)
        yield folder
