"""The archive of a broker's classes, parsed and verified once: a broker that finds it starts with half the CPU time.

    python -m heartwheel.kafka.broker.class_archive

It is made for this Java and the jars of the lock. Without an archive, or with one that does not fit any more, as after
a change of Java or of a jar, the JVM reads its jars as ever.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.kafka.broker.java import class_archive_file, new_class_archive
from heartwheel.kafka.client import admin_client

_OPTIONS: Final = "JAVA_TOOL_OPTIONS"
_PATIENCE_MS: Final = 600_000


def make_broker_archive(jars: Sequence[Path]) -> Path:
    """Run a broker, and keep the classes that it has loaded; the tool that formats its storage uses them, too.

    Returns:
        The archive.

    Raises:
        KafkaStartError: the broker does not start.
        OSError: the archive cannot be written.
    """
    file = class_archive_file(jars)
    file.unlink(missing_ok=True)  # a JVM that uses an archive writes none
    with new_class_archive(file) as made:
        before = os.environ.get(_OPTIONS)
        os.environ[_OPTIONS] = f'"-XX:ArchiveClassesAtExit={made}" -Xlog:cds*=off'
        try:
            with (
                EmbeddedKafka(jars=jars, ready_timeout_ms=_PATIENCE_MS, stop_timeout_ms=_PATIENCE_MS) as broker,
                admin_client(broker.bootstrap) as admin,
            ):
                admin.create_topics({"classes": {"num_partitions": 1}})
        finally:
            os.environ.pop(_OPTIONS)
            if before is not None:
                os.environ[_OPTIONS] = before
    return file


if __name__ == "__main__":
    sys.stdout.write(f"written: {make_broker_archive(fetch_jars('broker'))}\n")
