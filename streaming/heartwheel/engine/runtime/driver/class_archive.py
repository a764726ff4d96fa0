"""The archive of Spark's classes, parsed and verified once: a job that finds it starts in six tenths of the time.

It is made for this installation and this machine, from the jars of Kafka's connector, by `make classes` or by:

    python -m heartwheel.kafka.broker.jars spark | xargs python -m heartwheel.engine.runtime.driver.class_archive

Without an archive, or with one that does not fit any more, as after a change of Java or of a jar, the JVM reads its
jars as ever.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession

from heartwheel.engine.runtime.driver import query as queries
from heartwheel.engine.runtime.driver.session import archive_file, end_session, jvm_option, session_conf, start_session
from heartwheel.engine.runtime.state.output import Output, OutputRecord, ProgressFigures, frame_of_output
from heartwheel.engine.runtime.state.schema import NEW_STATE, PACKED
from heartwheel.kafka.broker.java import new_class_archive
from heartwheel.settings import Settings, load_settings

_BATCHES: Final = 3
_PATIENCE_S: Final = 600
_KAFKA: Final = (
    "org.apache.kafka.clients.consumer.KafkaConsumer",
    "org.apache.kafka.clients.producer.KafkaProducer",
    "org.apache.kafka.clients.admin.KafkaAdminClient",
    "org.apache.kafka.common.requests.FetchResponse",
    "org.apache.spark.sql.kafka010.KafkaMicroBatchStream",
    "org.apache.spark.sql.kafka010.KafkaWriter",
)


def make_archive(jars: Sequence[Path]) -> Path:
    """Run a query like the job's without Kafka, and keep the classes that it has loaded.

    Args:
        jars: the Kafka connector's.

    Returns:
        The archive.

    Raises:
        OSError: it cannot be written.
        RuntimeError: the JVM has written none.
    """
    file = archive_file(jars)
    with new_class_archive(file) as made:
        folder = made.parent
        settings = load_settings(
            None, {}, ["spark.master=local[2]", f"checkpoint.location={folder}/checkpoint"]
        ).settings
        conf = session_conf(settings, jars, shuffle_partitions=2, archive=False)
        conf["spark.driver.extraJavaOptions"] += f" {jvm_option(f'-XX:ArchiveClassesAtExit={made}')} -Xlog:cds*=off"
        log = folder / "spark.log"
        spark = start_session(conf, log_file=log)
        _train(spark, settings)
        end_session(spark, _PATIENCE_S)
        if not made.exists():
            raise RuntimeError(f"the JVM has written no archive:\n{log.read_text()}")
    return file


def _train(spark: SparkSession, settings: Settings) -> None:
    """Load what a job loads: a streaming query with both kinds of Python workers and state, and Kafka's clients."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark offers no other way
    for name in _KAFKA:
        jvm.java.lang.Class.forName(name)
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 8).load()
    packed = source.coalesce(2).mapInArrow(_pack, PACKED)
    rows = queries.records(queries.observed(queries.advanced(packed, _advance)))
    query = (
        rows.writeStream.format("noop")
        .option("checkpointLocation", settings.checkpoint.location)
        .trigger(processingTime="0 seconds")
        .start()
    )
    give_up_s = time.monotonic() + _PATIENCE_S
    while query.lastProgress is None or query.lastProgress["batchId"] < _BATCHES:
        if not query.isActive or time.monotonic() > give_up_s:
            raise RuntimeError(f"the query does not run: {query.exception()}")
        time.sleep(0.2)
    query.stop()


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        slots = batch.column("value").cast(pa.int32())
        kinds = pa.array([0] * len(slots), pa.int32())
        yield pa.record_batch([slots, kinds, pa.array([b""] * len(slots), pa.binary())], ["slot", "kind", "payload"])


def _advance(_: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    for _frame in frames:
        pass
    state.update(NEW_STATE)
    yield frame_of_output(
        Output([OutputRecord("status", "key", "{}", "id", "type", 0)], ProgressFigures()), {"status": "status"}
    )


if __name__ == "__main__":
    sys.stdout.write(f"written: {make_archive([Path(name) for name in sys.argv[1:]])}\n")
