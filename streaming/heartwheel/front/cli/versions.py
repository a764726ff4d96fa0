"""What `heartwheel --version` shows: the versions found here, without starting a Java or importing PySpark."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata, resources
from pathlib import Path
from typing import Final

_NOT_HERE: Final = "not installed"


def version_lines() -> Iterator[str]:
    """Yield a line for heartwheel and for each part that it runs on."""
    yield f"heartwheel {_installed('heartwheel')}"
    yield f"Python {platform.python_version()} at {sys.executable}"
    yield f"PySpark {_installed('pyspark')}, {_java()}"
    yield f"Kafka clients: kafka-python {_installed('kafka-python')}, confluent-kafka {_installed('confluent-kafka')}"
    yield f"Kafka broker: {_jars('org.apache.kafka:kafka_2.13')}"
    yield f"Spark's Kafka connector: {_jars('org.apache.spark:spark-sql-kafka-0-10_2.13')}"


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return _NOT_HERE


def _java() -> str:
    """Return the version of Java in the file `release` of its folder: to ask it would start a JVM."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else Path(shutil.which("java") or "")
    if not found.is_file():
        return f"Java {_NOT_HERE}"
    java = found.resolve()
    try:
        text = (java.parents[1] / "release").read_text(encoding="utf-8")
    except OSError:
        text = ""
    version = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return f"Java {version[1] if version else 'of unknown version'} at {java}"


def _jars(artifact: str) -> str:
    """Return the locked versions of an artifact, and whether its jar is in the cache."""
    from heartwheel.kafka.broker import jars

    lock = jars.read_lock(resources.files("heartwheel.kafka.broker").joinpath("jars.lock").read_text(encoding="utf-8"))
    cache = jars.default_cache_dir()
    return ", ".join(
        f"{jar.coordinate.rpartition(':')[2]} {'in' if (cache / jar.name).is_file() else 'not yet in'} {cache}"
        for jar in lock
        if jar.coordinate.startswith(f"{artifact}:")
    )
