"""Measure what a verdict of a mass expiry costs from the shard to Kafka: CPU of workers, JVM and broker for each.

Run it as `PYTHONPATH=tests python tests/benchmarks/verdict_bench.py [--batches 5]`: a table on stderr, JSON on stdout.
In every batch four shards of 50 thousand members, as `shard_bench.py` makes them, fall silent at once; each batch finds
them as the one before did. The first batches, in which the JVM compiles, are a table of their own. To compare another
commit, put this file into a checkout of it, and run both in turns.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.shard_bench import Scene
from heartwheel.engine.heartbeats.advance import advance_shard
from heartwheel.engine.heartbeats.config import JobConfig
from heartwheel.engine.runtime.driver import query as queries
from heartwheel.engine.runtime.map.packed import PayloadKind
from heartwheel.engine.runtime.state.output import frame_of_output, total
from heartwheel.engine.runtime.state.schema import StateRow
from heartwheel.engine.runtime.state.state_function import state_function
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.bench import Session, Usage, say, until

_SHARDS: Final = 4
_MEMBERS: Final = 50_000
_SILENT_MS: Final = 90_000


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=5, help="batches of each table (default: %(default)s)")
    chosen = parser.parse_args()
    report: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="heartwheel-verdicts-") as folder, EmbeddedKafka(heap="1g") as broker:
        session = Session(broker, Path(folder), records_max=1_000_000)
        with session.topics(shards=_SHARDS) as config:
            query = _start(session, config)
            for name in ("cold", "warm"):
                report[name] = _measured(query, chosen.batches)
                say(f"core-us a verdict, {name}", report[name])
            query.stop()
        session.close()
    sys.stdout.write(json.dumps(report) + "\n")


def _start(session: Session, config: JobConfig) -> StreamingQuery:
    config = dataclasses.replace(config, slots=tuple(range(_SHARDS)))
    rows = session.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", _SHARDS).load()
    packed = rows.selectExpr(f"cast(value % {_SHARDS} as int) slot", "0 kind", "cast('' as binary) payload")
    function = state_function(config, _falling_silent(), partial(frame_of_output, topics=config.topics), lambda: None)
    return queries.write(queries.advanced(packed, function), config, name="verdicts", processingTime="0 seconds")


def _falling_silent() -> Callable[..., Any]:
    """Make what advances a shard: whatever came and was before, all of its members are there and fall silent."""
    scene = Scene(_MEMBERS, 50, 1)
    scene.first_contact()
    there, now_ms = scene.get, scene.pass_time(_SILENT_MS)
    readings = scene.readings()

    def advance(
        config: JobConfig, shard: int, _: StateRow, _frames: Any, *, batch_ms: int, batch: int | None = None
    ) -> Any:
        del batch_ms, batch  # the driver's clock shows another time than this log
        frame = pd.DataFrame([(PayloadKind.READINGS, readings)], columns=["kind", "payload"])
        return advance_shard(config, shard, there, [frame], batch_ms=now_ms)

    return advance


def _measured(query: StreamingQuery, batches: int) -> dict[str, float]:
    first = _finished(query)
    until(lambda: _finished(query) > first)
    usage, begin = Usage(), _finished(query)
    until(lambda: _finished(query) >= begin + batches)
    spent, ran = usage.seconds(), _finished(query) - begin
    last: Any = query.lastProgress
    figures = total(last["observedMetrics"]["heartwheel"]["shards"])
    verdicts = ran * (figures.expired + figures.triggers)
    used = {who: round(spent[who] / verdicts * 1e6, 2) for who in ("workers", "JVM", "broker", "driver")}
    return {**used, "all": round(sum(used.values()), 2), "verdicts": verdicts}


def _finished(query: StreamingQuery) -> int:
    if (error := query.exception()) is not None:
        raise error
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


if __name__ == "__main__":
    main()
