"""Spark's Kafka connector finds all that it names in the PySpark that is installed and in its Kafka client."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from heartwheel.kafka.broker.jars import fetch_jars
from support.class_files import unlinked


@pytest.mark.parametrize("package", ["org/apache/spark/", "org/apache/kafka/"])
def test_the_connector_links(package: str) -> None:
    """No class, field or method that connector and token provider name is missing: a call of it would end the job."""
    jars = fetch_jars("spark")
    spark = [jar for jar in jars if jar.name.startswith("spark-")]
    others = [*(jar for jar in jars if jar not in spark), *Path(pyspark.__file__).parent.glob("jars/spark-*.jar")]
    assert len(spark) == 2
    assert list(unlinked(spark, others, package)) == []
