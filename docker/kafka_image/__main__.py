"""Build the image and import it: `PYTHONPATH=docker python -m kafka_image [TAG]`.

The container follows the contract of Kafka's own image, whose wrapper class it runs: `KAFKA_*` variables become broker
properties, `CLUSTER_ID` names the cluster, and its storage is formatted at the first start.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from heartwheel.base.errors import HeartwheelError
from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.kafka.broker.java import find_java
from kafka_image.root import write_root

DEFAULT_TAG: Final = "heartwheel/kafka:4.4.0-local"
"""A name of our own: a log must show which image something ran on."""

_CHANGES: Final = (
    'CMD ["/etc/kafka/docker/run"]',
    "USER kafka",
    "EXPOSE 9092",
    "ENV PATH=/opt/java/bin:/bin",
    'VOLUME ["/var/lib/kafka/data"]',
)


class ImageError(HeartwheelError):
    """Tell that the image could not be imported, in Docker's own words."""


def build(tag: str) -> None:
    """Build the image and import it into the running Docker daemon.

    Args:
        tag: its name.

    Raises:
        ImageError: if there is no docker command, or it fails.
        JavaError: if there is no usable Java to put into it.
        JarError: if the jars cannot be had.
    """
    if not shutil.which("docker"):
        raise ImageError("there is no docker command on the PATH")
    jars = fetch_jars("image")
    java_home = find_java().resolve().parent.parent
    with tempfile.TemporaryDirectory(prefix="heartwheel-image-") as folder:
        tar_file = Path(folder, "root.tar")
        write_root(tar_file, java_home=java_home, jars=jars, work=Path(folder))
        _import(tar_file, tag)


def _import(tar_file: Path, tag: str) -> None:
    changes = [part for change in _CHANGES for part in ("--change", change)]
    done = subprocess.run(
        ["docker", "import", *changes, tar_file, tag], capture_output=True, text=True, check=False, env=os.environ
    )
    if done.returncode:
        raise ImageError(f"docker import failed: {done.stderr.strip()}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the image and print its name.

    Returns:
        The exit code of the command.
    """
    parser = argparse.ArgumentParser(prog="python -m kafka_image", description="Build a local Kafka image.")
    parser.add_argument("tag", nargs="?", default=DEFAULT_TAG)
    tag = parser.parse_args(arguments).tag
    try:
        build(tag)
    except HeartwheelError as error:
        sys.stderr.write(f"{error.report()}\n")
        return 1
    sys.stdout.write(f"{tag}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
