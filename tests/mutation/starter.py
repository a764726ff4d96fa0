"""Run pytest in forks of a process that has loaded the libraries: to load them takes longer than most tests do.

Started by `mutation.sandbox`, in a copy of the project; of the project it loads nothing itself. Each line that it reads
is a list of pytest's arguments in JSON; for each it writes a line, pytest's exit code and output. It ends with its
input.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from typing import Final

import pytest

LIBRARIES: Final = (
    "httpx",
    "hypothesis",
    "kafka",
    "msgspec",
    "pandas",
    "playwright.sync_api",
    "pyarrow.parquet",
    "pydantic",
    "pyspark.sql.streaming.state",
    "rich",
    "typer",
)


def main() -> None:
    """Serve until the input ends."""
    for name in LIBRARIES:
        importlib.import_module(name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_run(json.loads(line))) + "\n")
        sys.stdout.flush()


def _run(arguments: list[str]) -> tuple[int, str]:
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            os._exit(_code(arguments))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        return code, output.read().decode(errors="replace")


def _code(arguments: list[str]) -> int:
    """Run pytest here, as a process of its own would."""
    try:
        return int(pytest.main(arguments))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    main()
