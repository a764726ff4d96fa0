"""The Dockerfile as its stages, read without Docker."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "docker" / "Dockerfile"


class Step(NamedTuple):
    """One instruction of a stage: its keyword in capitals and what follows."""

    keyword: str
    value: str

    @property
    def words(self) -> list[str]:
        """Return the words of the value, as a shell splits them."""
        return shlex.split(self.value)


def stages() -> dict[str, list[Step]]:
    """Return the steps of each stage by its name, those of the stage that it begins with first."""
    lines = [line for line in DOCKERFILE.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
    found: dict[str, list[Step]] = {}
    current: list[Step] = []
    for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines():
        keyword, _, value = line.strip().partition(" ")
        if keyword == "FROM":
            source, _, name = re.split(r"\s+", value)
            current = found[name] = list(found.get(source, ()))
        elif keyword and found:
            current.append(Step(keyword, value.strip()))
    return found
