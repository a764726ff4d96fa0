"""Whether the topic got partitions while nobody read it.

Groups move when a topic grows: what they sent before lies in one partition, what they send after in another. A backlog
that is read in several batches is read from each partition in proportion, newer records of such a group before older
ones, and what keeps a member alive would come too late. So the backlog of a topic that has grown is read in one batch,
in which the order of append times is exact (`test_p1_p5_a_topic_that_grew_while_the_job_was_down_is_read_at_once`).
"""

from __future__ import annotations

import json
from typing import Final

from pyspark.sql import SparkSession

from heartwheel.errors import HeartwheelError
from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
from heartwheel.kafka.topics import count_partitions
from heartwheel.settings import Settings
from heartwheel.spark.places import place_of

OFFSETS: Final = "offsets"
"""Spark's folder in a checkpoint: a file a batch, with the end offsets of each partition."""


class GrowthUnknownError(HeartwheelError):
    """Tell that nobody can say now whether the topic has grown."""


def partitions_read(offsets: bytes | None, topic: str) -> int | None:
    """Count the partitions that a batch read.

    Args:
        offsets: Spark's file of the batch: a version, then JSON a line, of which one has the offsets by topic.
        topic: which one.

    Returns:
        How many; `None` if there is no such file, or it is not in order, which Spark then says itself.
    """
    for line in (offsets or b"").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get(topic), dict):
            return len(entry[topic])
    return None


def has_grown(settings: Settings, topic: str, spark: SparkSession | None) -> bool:
    """Tell whether a topic has partitions that the newest batch in the checkpoint did not know.

    Args:
        settings: the checked configuration, with the checkpoint in it.
        topic: that is read.
        spark: the session, by which a checkpoint is reached that is no folder.

    Returns:
        Whether it has grown; `False` for a new checkpoint, for which nothing is old.

    Raises:
        GrowthUnknownError: Kafka or the checkpoint can not be asked.
    """
    location, kafka = settings.checkpoint.location, settings.kafka
    try:
        place = place_of(location, spark)
        before = partitions_read(place.newest(OFFSETS) if place is not None else None, topic)
        if before is None:
            return False
        now = count_partitions(kafka.bootstrap_servers, topic, properties=kafka.client)
    except (KafkaUnreachableError, KafkaRefusedError, OSError) as error:
        raise GrowthUnknownError(str(error), hint=getattr(error, "hint", None)) from error
    return now > before
