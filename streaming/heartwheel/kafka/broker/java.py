"""Find the Java that runs the broker and Spark."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.private import is_trustworthy, private_folder

JAVA_VERSION_MIN: Final = 17
"""Oldest major version that Kafka 4 brokers and Spark 4 run on."""


class JavaError(HeartwheelError):
    """There is no Java, or only one that is too old."""


def find_java() -> Path:
    """Find a Java of `JAVA_VERSION_MIN` or newer: `$JAVA_HOME` if it is set, else the `PATH`.

    Raises:
        JavaError: if there is none, it does not run, or it is too old.
    """
    java = _java_of_environment()
    version = java_version(java)
    if version < JAVA_VERSION_MIN:
        raise JavaError(
            f"{java} is Java {version}, {JAVA_VERSION_MIN} or newer is needed", hint="set JAVA_HOME to a newer one"
        )
    return java


def class_archive_file(jars: Sequence[Path], *names: str) -> Path:
    """Return where an archive of the classes of these jars is kept: beside the cache that they are in.

    Args:
        names: what else the archive depends on.
    """
    words = "\n".join((*names, os.environ.get("JAVA_HOME", ""), *map(str, jars)))
    return jars[0].parent.with_name("classes") / f"{hashlib.sha256(words.encode()).hexdigest()[:16]}.jsa"


def class_archive_options(file: Path) -> list[str]:
    """Return the options by which a JVM uses an archive; none if there is no archive, or others may change it.

    An archive that does not fit is passed over by the JVM, without the warnings that it would print.
    """
    return [f"-XX:SharedArchiveFile={file}", "-Xlog:cds*=off"] if is_trustworthy(file) else []


@contextmanager
def new_class_archive(file: Path) -> Iterator[Path]:
    """Give the path at which a JVM is to write an archive, in a private folder; then move it to its place.

    Raises:
        OSError: there is none at the end of the block, or it cannot be moved.
    """
    private_folder(file.parent)
    with tempfile.TemporaryDirectory(prefix="heartwheel-classes-", dir=file.parent) as folder:
        made = Path(folder) / file.name
        yield made
        made.chmod(0o644)  # whatever the umask is: what others may write is not loaded
        made.replace(file)


def java_version(java: Path) -> int:
    """Ask a Java for its major version.

    Raises:
        JavaError: if it does not run or does not say.
    """
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise JavaError(f"{java} does not run: {error.strerror}", hint="check JAVA_HOME") from None
    found = re.search(r'version "(\d+)', done.stderr)
    if not found:
        raise JavaError(f"{java} does not tell its version: {(done.stderr or done.stdout).strip()[:200]!r}")
    return int(found[1])


def _java_of_environment() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        return Path(home, "bin", "java")
    found = shutil.which("java")
    if not found:
        raise JavaError("no Java found", hint=f"install Java {JAVA_VERSION_MIN} or newer, or set JAVA_HOME")
    return Path(found)
