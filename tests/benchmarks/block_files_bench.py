"""Measure one shard with block files and without, in turns: CPU and bytes written of a live batch.

Run it as `PYTHONPATH=tests python tests/benchmarks/block_files_bench.py [--members 500000] [--beating 40000]`: a table
on stderr, JSON on stdout. Both ways get the same records, batch by batch. CPU is that of one core for the state
function, and for the state row through `pickle`, there and back, as PySpark moves it. Bytes are those of the row and of
new block files; Spark compresses the row before it writes it. `--joining` lets members come that were never seen, in
each batch.
"""

from __future__ import annotations

import argparse
import json
import pickle
import random
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa

from benchmarks.shard_bench import JOB, T0, SparkState, heartbeat
from heartwheel.engine.heartbeats.advance import advance_shard
from heartwheel.engine.heartbeats.packer import Packer
from heartwheel.engine.runtime.map.packed import PayloadKind
from heartwheel.engine.runtime.state.output import frame_of_output
from heartwheel.engine.runtime.state.schema import StateRow
from heartwheel.engine.runtime.state.state_function import state_function
from heartwheel.engine.shard.block_store import FOLDER
from heartwheel.engine.time import Reading, ReadingsBuilder, encode_readings
from heartwheel.proof.testing import ProducedRecord, frame_of
from heartwheel.settings import Settings

BATCH_MS = 200
FIGURES = ("CPU, ms", "row, bytes", "files, bytes")


class Way(SparkState):
    """One shard, as Spark would call it.

    Args:
        from_bytes: `engine.block_files_from`.
    """

    def __init__(self, checkpoint: Path, from_bytes: int) -> None:
        super().__init__()
        self._checkpoint = checkpoint
        self._batch = -1
        job = replace(JOB, block_location=str(checkpoint), block_files_from=from_bytes)
        shape = partial(frame_of_output, topics=job.topics)
        self._function = state_function(job, advance_shard, shape, lambda: self._batch)

    def run(self, frame: pd.DataFrame, now_ms: int) -> tuple[float, float, float]:
        """Run a batch, and return its `FIGURES`."""
        self._batch, self._now_ms = self._batch + 1, now_ms
        before = self._filed_bytes()
        start = time.process_time()
        self.get = _pickled(self.get)
        list(self._function((0,), [frame], self))
        _pickled(self.get)
        spent = time.process_time() - start
        return spent * 1e3, float(len(self.get.blob)), float(self._filed_bytes() - before)

    def _filed_bytes(self) -> int:
        return sum(path.stat().st_size for path in (self._checkpoint / FOLDER).glob("*/*"))


def _pickled(row: StateRow) -> StateRow:
    return StateRow(*pickle.loads(pickle.dumps(tuple(row))))  # noqa: S301 - its own


def _value(number: int) -> bytes:
    return heartbeat(number, groups=500)


def _frame(packer: Packer, values: list[bytes], now_ms: int, span_ms: int = BATCH_MS) -> pd.DataFrame:
    records = [ProducedRecord(now_ms - span_ms + at * span_ms // len(values), v, 0, at) for at, v in enumerate(values)]
    rows = packer.pack(frame_of(records), ReadingsBuilder((), 3_000))
    packs = [(PayloadKind.RECORDS, payload) for _, kind, payload in rows if kind is PayloadKind.RECORDS]
    readings = encode_readings([Reading(0, 1 << 60, now_ms, now_ms, now_ms)])
    return pd.DataFrame([*packs, (PayloadKind.READINGS, readings)], columns=["kind", "payload"])


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=500_000, help="members of the shard (default: %(default)s)")
    parser.add_argument("--beating", type=int, default=40_000, help="of which beat in a batch (default: %(default)s)")
    parser.add_argument("--joining", type=int, default=0, help="new ones in each batch (default: %(default)s)")
    parser.add_argument("--batches", type=int, default=9, help="batches, of which the median counts")
    arguments = parser.parse_args()
    pa.set_cpu_count(1)
    packer, now_ms = Packer("beats", 1), T0 + BATCH_MS
    values = list(map(_value, range(arguments.members)))
    random.Random(1).shuffle(values)
    found: dict[str, list[tuple[float, float, float]]] = {"without": [], "with": []}
    with tempfile.TemporaryDirectory(prefix="heartwheel-bench-") as folder:
        from_bytes = Settings().engine.block_files_from_bytes
        ways = {name: Way(Path(folder, name), from_bytes if name == "with" else 0) for name in found}
        # Spread over the time in which each beats once, as they will be from then on.
        first = _frame(packer, values, now_ms, BATCH_MS * arguments.members // arguments.beating)
        for way in ways.values():
            way.run(first, now_ms)
        for batch in range(arguments.batches):
            now_ms += BATCH_MS
            at = batch * arguments.beating % arguments.members
            beating = values[at : at + arguments.beating]
            beating += [_value(arguments.members + batch * arguments.joining + one) for one in range(arguments.joining)]
            frame = _frame(packer, beating, now_ms)
            for name, way in ways.items():
                found[name].append(way.run(frame, now_ms))
    report = {
        name: {figure: statistics.median(run[at] for run in runs) for at, figure in enumerate(FIGURES)}
        | {"files, bytes, mean": statistics.mean(run[2] for run in runs)}
        for name, runs in found.items()
    }
    for figure in report["with"]:
        row = "".join(f"{figures[figure]:>16,.1f}" for figures in report.values())
        sys.stderr.write(f"{figure:24}{row}\n")
    sys.stdout.write(json.dumps({**vars(arguments), **report}) + "\n")


if __name__ == "__main__":
    main()
