"""A checkpoint as a test sees it from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

MOUNT: Final = "viewfs://shared/jobs"
"""An address that Hadoop's file systems alone can read, as an object store's."""


def mounted(folder: Path) -> str:
    """Mount a folder at `MOUNT`, by a `--set` text; nobody but the mount table knows that it is on this machine."""
    return f"spark.conf.spark.hadoop.fs.viewfs.mounttable.shared.link./jobs={folder.as_uri()}"


def newest_batch(checkpoint: Path, kind: Literal["offsets", "commits"]) -> int:
    """Tell the newest batch that Spark has planned (`offsets`) or finished (`commits`); -1 for none."""
    return max((int(path.name) for path in (checkpoint / kind).glob("*") if path.name.isdigit()), default=-1)
