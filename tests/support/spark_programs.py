"""Spark's own programs, `spark-submit` and its like, started with the classes that `make classes` keeps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pyspark

from heartwheel.engine.runtime.driver.session import archive_file, jvm_option
from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.kafka.broker.java import class_archive_options

BIN: Final = Path(pyspark.__file__).parent / "bin"


def driver_options() -> list[str]:
    """Return the options by which a driver's JVM gets Kafka's connector, and the archive of classes if there is one.

    An archive fits only a JVM whose class path begins with the jars for which it was made, so a program that does not
    need the connector gets it as well. Its start then takes 5 s of CPU time instead of 9.
    """
    jars = fetch_jars("spark")
    options = ["--driver-class-path", os.pathsep.join(map(str, jars))]
    if archive := class_archive_options(archive_file(jars)):
        options += ["--driver-java-options", " ".join(map(jvm_option, archive))]
    return options
