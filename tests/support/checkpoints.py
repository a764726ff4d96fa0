"""A checkpoint as a test sees it from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Literal


def newest_batch(checkpoint: Path, kind: Literal["offsets", "commits"]) -> int:
    """Tell the newest batch that Spark has planned (`offsets`) or finished (`commits`); -1 for none."""
    return max((int(path.name) for path in (checkpoint / kind).glob("*") if path.name.isdigit()), default=-1)
