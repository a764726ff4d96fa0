"""Measure one shard without Spark: a live batch step by step, first contact, mass expiry, and the bytes of its state.

Run it as `PYTHONPATH=tests python tests/benchmarks/shard_bench.py [--members 50000] [--before CHECKOUT] [--rules]`:
tables on stderr, JSON on stdout. Times are CPU time of one core, the median of some repetitions. `--before` names
another checkout of this project, whose own bench is run in turns with this one, so that both see the same machine.
`--rules` adds a column in which every group goes to the rules, event by event: what the fast path and the crowds save.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from heartwheel.engine.heartbeats.advance import advance_shard
from heartwheel.engine.heartbeats.config import JobConfig
from heartwheel.engine.heartbeats.packer import Packer
from heartwheel.engine.heartbeats.repeats import BatchOf
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.runtime.map.packed import PayloadKind
from heartwheel.engine.runtime.state.output import frame_of_output
from heartwheel.engine.runtime.state.schema import NEW_STATE, StateRow
from heartwheel.engine.runtime.state.state_function import state_function
from heartwheel.engine.shard import Shard, ShardLimits, arrivals, rules_path
from heartwheel.engine.shard import shard as shard_module
from heartwheel.engine.shard.fast_path import Route
from heartwheel.engine.shard.sent_pack import decode_sent
from heartwheel.engine.shard.status import status_of
from heartwheel.engine.time import Reading, ReadingsBuilder, encode_readings
from heartwheel.proof.testing import ProducedRecord, frame_of
from heartwheel.wire.event_codec import encode_event
from heartwheel.wire.events import Event

T0 = 1_795_239_789_000
SESSION_MS = 45_000
BEAT_MS = 3_000
LIMITS = ShardLimits(members_max=10_000_000, verdicts_max=10_000_000)
COORDINATOR = CoordinatorConfig()
JOB = JobConfig(
    checkpoint="",
    kafka_options={},
    source="beats",
    topics={name: name for name in ("heartbeats", "expirations", "triggers", "status", "rejects")},
    slots=(0,),
    limits=LIMITS,
)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=50_000, help="members of the shard (default: %(default)s)")
    parser.add_argument("--groups", type=int, default=50, help="groups of the shard (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions, of which the median counts")
    parser.add_argument("--before", type=Path, help="another checkout, measured in turns with this one")
    parser.add_argument("--rules", action="store_true", help="measure the rules alone too, in turns")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    pa.set_cpu_count(1)  # the times are of one core
    if arguments.child:
        if arguments.rules:
            _leave_out_the_fast_ways()
        sys.stdout.write(json.dumps(measure(arguments.members, arguments.groups)))
        return
    here = Path(__file__).parents[2]
    columns: dict[str, tuple[Path, bool]] = {"now": (here, False)}
    columns |= {"before": (arguments.before, False)} if arguments.before else {}
    columns |= {"by the rules": (here, True)} if arguments.rules else {}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in columns}
    for _ in range(arguments.repeat):
        for name, (checkout, by_rules) in columns.items():
            runs[name].append(_in_process(checkout, arguments, by_rules=by_rules))
    report = {
        name: {figure: statistics.median(run[figure] for run in of_name) for figure in of_name[0]}
        for name, of_name in runs.items()
    }
    _print(report)
    sys.stdout.write(json.dumps({"members": arguments.members, "groups": arguments.groups, **report}) + "\n")


def _leave_out_the_fast_ways() -> None:
    """Send every group of this process to the rules, record by record and timer by timer."""

    def all_busy(_log: object, route: Route, *_: object) -> None:
        route.busy[:] = True

    modules = (
        (shard_module, "mark_busy", all_busy),
        (arrivals, "may_arrive_at_once", _no),
        (rules_path, "expire_at_once", _no),
    )
    for module, name, replacement in modules:
        assert hasattr(module, name), name
        setattr(module, name, replacement)


def _no(*_: object) -> bool:
    return False


def _in_process(checkout: Path, arguments: argparse.Namespace, *, by_rules: bool) -> dict[str, float]:
    folders = (checkout / "wheel", checkout / "streaming", checkout / "streaming" / "beats", checkout / "tests")
    bench = f"benchmarks.{Path(__file__).stem}"  # its own, as modules have moved
    command = [sys.executable, "-m", bench, "--child", f"--members={arguments.members}", f"--groups={arguments.groups}"]
    command += ["--rules"] if by_rules else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def _print(report: dict[str, dict[str, float]]) -> None:
    sys.stderr.write(f"{'':44}" + "".join(f"{name:>14}" for name in report) + "\n")
    for figure in report["now"]:
        row = "".join(f"{figures.get(figure, math.nan):>14,.2f}" for figures in report.values())
        sys.stderr.write(f"{figure:44}{row}\n")


def measure(members: int, groups: int) -> dict[str, float]:
    """Measure everything once."""
    figures: dict[str, float] = {}
    for kind, generation in (("loaded", 1), ("presence", -1)):
        scene = Scene(members, groups, generation)
        for name, value in scene.first_contact().items():
            figures[f"{kind}: {name}"] = value
        if kind == "loaded":
            figures |= scene.live()
            figures |= scene.packing()
        for name, value in scene.mass_expiry().items():
            figures[f"{kind}: {name}"] = value
    return figures


class SparkState:
    """What a state function sees of Spark."""

    def __init__(self) -> None:
        self._now_ms = T0
        self.get: StateRow = NEW_STATE

    @property
    def exists(self) -> bool:
        """Whether the state was ever updated."""
        return self.get is not NEW_STATE

    def update(self, row: StateRow) -> None:
        """Take the new state."""
        self.get = row

    def getCurrentProcessingTimeMs(self) -> int:  # noqa: N802 - Spark's own name
        """Return the timestamp of the batch, epoch ms."""
        return self._now_ms


def heartbeat(number: int, *, groups: int, generation: int = 1) -> bytes:
    """Encode the heartbeat of one member.

    Args:
        number: of the member.
        groups: over how many groups members are spread, in turn.
        generation: that it carries; -1 makes presence groups.
    """
    return encode_event(
        Event(
            group_id=f"group-{number % groups}",
            member_id=f"member-{number * 2654435761 % 2**32:08x}-{number}",
            generation_id=generation,
            session_timeout_ms=SESSION_MS,
            client_id=f"worker-{number}",
            client_host=f"/10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        )
    )


class Scene(SparkState):
    """One shard through its life.

    Args:
        members: how many beat.
        groups: over how many groups they are spread, in turn.
        generation: that their heartbeats carry; -1 makes presence groups.
    """

    def __init__(self, members: int, groups: int, generation: int) -> None:
        super().__init__()
        self._members = members
        self._values = [heartbeat(number, groups=groups, generation=generation) for number in range(members)]
        self._packer = Packer("beats", 1)
        self._function = state_function(JOB, advance_shard, partial(frame_of_output, topics=JOB.topics), lambda: None)

    def _beat(self) -> list[bytes]:
        """Let every member beat once, and return the packs."""
        return self._pack(self._records())

    def _records(self) -> pa.RecordBatch:
        order = random.Random(self._now_ms).sample(self._values, self._members)
        records = [
            ProducedRecord(self._now_ms + number * BEAT_MS // self._members, value, 0, number)
            for number, value in enumerate(order)
        ]
        self._now_ms += BEAT_MS
        return frame_of(records)

    def _pack(self, records: pa.RecordBatch) -> list[bytes]:
        rows = self._packer.pack(records, ReadingsBuilder((), 3_000))
        return [payload for _, kind, payload in rows if kind is PayloadKind.RECORDS]

    def packing(self) -> dict[str, float]:
        """Pack some batches in which every member beats once, with the bytes of known heartbeats and without."""
        figures: dict[str, float] = {}
        for name, query in (("with all bytes", None), ("without known bytes", "q")):
            spent = []
            for number in range(8):
                self._packer.begin(BatchOf(query, number) if query else None)
                records, start = self._records(), time.process_time()
                payloads = self._pack(records)
                spent.append(time.process_time() - start)
            figures[f"pack {name}, us a heartbeat"] = statistics.median(spent) / self._members * 1e6
            figures[f"pack {name}, bytes a heartbeat"] = sum(map(len, payloads)) / self._members
        self._packer.begin(None)
        return figures

    def first_contact(self) -> dict[str, float]:
        """Let a new shard meet all members at once."""
        payloads = self._beat()
        spent, rows = self._advance(payloads)
        return {
            "first contact, us a member": spent / self._members * 1e6,
            "rows written": float(rows),
        }

    def _advance(self, payloads: list[bytes]) -> tuple[float, int]:
        frame = pd.DataFrame(
            [*((PayloadKind.RECORDS, payload) for payload in payloads), (PayloadKind.READINGS, self.readings())],
            columns=["kind", "payload"],
        )
        start = time.process_time()
        (output,) = self._function((0,), [frame], self)
        table = pa.RecordBatch.from_pandas(output, preserve_index=False)
        spent = time.process_time() - start
        # In a checkout from before a row had many records, each has one.
        values = table["vals"].flatten() if "vals" in table.schema.names else table["value"]
        return spent, len(values)

    def readings(self) -> bytes:
        """Say that everything up to now has been read."""
        return encode_readings([Reading(0, 1 << 60, self._now_ms, self._now_ms, self._now_ms)])

    def live(self) -> dict[str, float]:
        """Take some batches in which every member beats once, step by step."""
        steps: dict[str, list[float]] = {}
        for _ in range(7):
            payloads = self._beat()
            took, blob = self._live_batch(payloads)
            self.get = StateRow(*self.get[:5], blob)
            for step, spent in took.items():
                steps.setdefault(step, []).append(spent * 1e3)
        medians = {f"live batch: {step}, ms": statistics.median(times) for step, times in steps.items()}
        return {
            **medians,
            "live batch: all, ms": sum(medians.values()),
            "state, bytes a member": len(self.get.blob) / self._members,
        }

    def _live_batch(self, payloads: list[bytes]) -> tuple[dict[str, float], str]:
        took: dict[str, float] = {}

        def step(name: str, work: Callable[[], Any]) -> Any:
            start = time.process_time()
            result = work()
            took[name] = time.process_time() - start
            return result

        reading = Reading(0, 1 << 60, self._now_ms, self._now_ms, self._now_ms)
        packs = step("read packs", lambda: [decode_sent(payload) for payload in payloads])
        shard = step("decode state", lambda: Shard(coordinator=COORDINATOR, limits=LIMITS, blob=self.get.blob))
        outcome = step("apply", lambda: shard.apply(packs, [reading]))
        blob = step("encode state", shard.encode)
        step(
            "status row",
            lambda: status_of(
                shard, outcome, index=0, batch_ms=self._now_ms, held=False, at_risk_count=10, state_bytes=len(blob)
            ),
        )
        assert outcome.counts["records_fast"] in (self._members, 0), "every heartbeat is known"
        return took, blob

    def pass_time(self, time_ms: int) -> int:
        """Let time pass, ms; gives the time then, epoch ms."""
        self._now_ms += time_ms
        return self._now_ms

    def mass_expiry(self) -> dict[str, float]:
        """Let all members fall silent at once."""
        self.pass_time(2 * SESSION_MS)
        spent, rows = self._advance([])
        return {"mass expiry, us a verdict": spent / rows * 1e6, "mass expiry, rows": float(rows)}


if __name__ == "__main__":
    main()
