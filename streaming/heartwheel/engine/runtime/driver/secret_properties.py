"""Properties of Spark that are secrets: given to the JVM in a file, for PySpark writes all others on a command line."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import Final

_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"


@contextlib.contextmanager
def properties_file(properties: Mapping[str, str]) -> Iterator[None]:
    """Keep some properties, for a JVM that is started in the block, in a file that only this user can read.

    The file is gone at the end of the block. A command line can be read by every user of the machine for as long as
    the process runs (`test_secret_properties_of_spark_travel_in_a_file_of_ours_alone`).

    Args:
        properties: value by name; with none of them nothing is written.
    """
    if not properties:
        yield
        return
    before = os.environ.get(_ARGUMENTS)
    with tempfile.NamedTemporaryFile("w", suffix=".properties", encoding="utf-8") as file:  # its mode is 0600
        file.write(properties_text(properties))
        file.flush()
        # Without the first option the file would be read in place of the machine's own spark-defaults.conf.
        words = ("--load-spark-defaults", "--properties-file", file.name, before or "pyspark-shell")
        os.environ[_ARGUMENTS] = " ".join(words)
        try:
            yield
        finally:
            os.environ.pop(_ARGUMENTS)
            if before is not None:
                os.environ[_ARGUMENTS] = before


def properties_text(properties: Mapping[str, str]) -> str:
    """Write properties as Java reads them, whatever characters are in the values."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in properties.items())


def _escaped(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"\\{text}" if text.startswith(" ") else text
