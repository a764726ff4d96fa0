"""What a heartbeat costs as members, partitions and shards grow, and on a cluster: `make scale`.

For each size: first contact, drain, a live batch, memory, state and what a batch writes of it. Then the same work on
more partitions and shards, and on a standalone cluster of two workers with a core each beside one process with two. CPU
is counted for the job alone, JVM and workers: broker and feeder share the cores, so wall time says less.

Each row is written down as soon as it is measured: tables on stderr, `scale.json` and `scale.md` in `--out`, JSON on
stdout. After `--minutes` no further row is begun. A row that fails says why, and the next one gets a session anew.
Topics and checkpoint of a row are removed with it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.cluster_ratio import ratio
from heartwheel.base.percentiles import percentile
from heartwheel.engine.heartbeats.config import JobConfig
from heartwheel.engine.heartbeats.plugin import HeartbeatPlugin
from heartwheel.engine.runtime.driver.job import start_query
from heartwheel.engine.runtime.driver.ticker import Ticker, new_run
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.bench import RECORDS_MAX, Run, Session, Usage, resident_mib, say, state_bytes
from support.rawfeed import RawFeed, RawMembers

BEAT_S: Final = 3
RATE_MAX: Final = 330_000
MEMBERS_PER_SHARD: Final = 60_000
FLAT_FROM: Final = 100_000
COST: Final = "job's core-us/heartbeat"

_MIB: Final = 2**20
_SHAPES: Final = ((8, 8), (8, 32), (64, 8), (64, 32))


def main() -> None:
    """Measure, and print."""
    chosen = _arguments()
    report: dict[str, Any] = {"members": [], "shapes": [], "cluster": []}
    with tempfile.TemporaryDirectory(prefix="heartwheel-scale-") as folder, EmbeddedKafka(heap="1g") as broker:
        rows = Rows(broker, Path(folder), report, chosen)
        for members in chosen.members:
            shards = max(8, members // MEMBERS_PER_SHARD)
            what = {"members": members, "shards": shards}
            rows.take("members", what, partial(rows.size, members, shards, chosen.records, chosen.live))
        if chosen.shapes:
            for partitions, shards in _SHAPES:
                what = {"partitions": partitions, "shards": shards, "members": chosen.shapes}
                rows.take("shapes", what, partial(rows.shape, chosen.shapes, chosen.records, partitions, shards))
        rows.close()
        if chosen.cluster:
            work = partial(ratio, broker, Path(folder), chosen.cluster, chosen.records, chosen.live)
            rows.take("cluster", {"members": chosen.cluster}, work)
    say("flatness", {"most / least, a heartbeat's cost from 100 thousand members": report.get("flatness", "not known")})
    sys.stdout.write(json.dumps(report) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10 and 100 thousand members, and fewer heartbeats")
    parser.add_argument("--members", type=int, nargs="*", help="sizes (default: 10 thousand to 10 million)")
    parser.add_argument("--records", type=int, help="least heartbeats of each drain (default: 6 million)")
    parser.add_argument("--live", type=int, help="seconds of each live load; 0 leaves it out (default: 30)")
    parser.add_argument(
        "--shapes", type=int, help="members of the drains by shape; 0 leaves it out (default: 1 million)"
    )
    parser.add_argument("--cluster", type=int, help="members on a cluster; 0 leaves it out (default: 500 thousand)")
    parser.add_argument("--minutes", type=float, default=60, help="no row is begun after that (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("artifacts"), help="where scale.json and scale.md go")
    full = {"members": [10_000, 100_000, 1_000_000, 3_000_000, 10_000_000], "records": 6_000_000, "live": 30}
    full |= {"shapes": 1_000_000, "cluster": 500_000}
    quick = {"members": [10_000, 100_000], "records": 1_000_000, "live": 10, "shapes": 100_000, "cluster": 100_000}
    chosen = parser.parse_args()
    for name, value in (quick if chosen.quick else full).items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, value)
    return chosen


class Rows:
    """The rows of all tables, each measured on a session that the last one has left whole.

    Args:
        folder: for checkpoints and logs.
        report: what is filled.
        chosen: the arguments.
    """

    def __init__(self, broker: EmbeddedKafka, folder: Path, report: dict[str, Any], chosen: argparse.Namespace) -> None:
        self._broker, self._folder = broker, folder
        self._report, self._out = report, chosen.out
        self._ends_s = time.monotonic() + chosen.minutes * 60
        self._session: Session | None = None

    def size(self, *sizes: int) -> dict[str, Any]:
        """Measure one number of members; see `size`."""
        return size(self._ready(), *sizes)

    def shape(self, *sizes: int) -> dict[str, Any]:
        """Measure one number of partitions and shards; see `shape`."""
        return shape(self._ready(), *sizes)

    def take(self, table: str, what: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> None:
        """Measure a row, or say why there is none.

        Args:
            what: is measured.
            measure: does it.
        """
        began_s = time.monotonic()
        if began_s > self._ends_s:
            row: dict[str, Any] = {"left out": "the time was over"}
        else:
            try:
                row = measure()
            except Exception as error:  # noqa: BLE001 - whatever ends a row, the others are measured
                row = {"failed": f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"}
                self.close()
        row["row took, s"] = round(time.monotonic() - began_s)
        self._report[table].append(what | row)
        say(", ".join(f"{value:,} {name}" for name, value in what.items()), row)
        self._write()

    def _ready(self) -> Session:
        if self._session is None:
            self._session = Session(self._broker, self._folder, records_max=RECORDS_MAX)
            size(self._session, 10_000, 8, 500_000, 0)  # JVM and workers have then seen everything once
        return self._session

    def close(self) -> None:
        """Stop Spark; a session that cannot be stopped any more is left to the end of this process."""
        session, self._session = self._session, None
        if session is not None:
            try:
                session.close()
            except Exception as error:  # noqa: BLE001 - its JVM may be dead
                sys.stderr.write(f"Spark could not be stopped: {type(error).__name__}\n")

    def _write(self) -> None:
        costs = [row[COST] for row in self._report["members"] if COST in row and row["members"] >= FLAT_FROM]
        if costs and min(costs):
            self._report["flatness"] = round(max(costs) / min(costs), 2)
        self._out.mkdir(parents=True, exist_ok=True)
        (self._out / "scale.json").write_text(json.dumps(self._report, indent=2) + "\n")
        (self._out / "scale.md").write_text(markdown(self._report))


def markdown(report: dict[str, Any]) -> str:
    """Write a report as tables: a column each measurement, a row each figure."""
    parts = ["# Scale\n"]
    for name, title in (("members", "By members"), ("shapes", "By partitions and shards"), ("cluster", "On a cluster")):
        columns = [_flat(column) for column in report[name]]
        figures = dict.fromkeys(figure for column in columns for figure in column)
        lines = [[figure, *(_cell(column.get(figure, "")) for column in columns)] for figure in figures]
        if lines:
            ruled = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
            parts += [f"\n## {title}\n\n", *(f"| {' | '.join(line)} |\n" for line in ruled)]
    if "flatness" in report:
        words = "From 100 thousand members on the dearest heartbeat costs {} times the cheapest."
        parts.append(f"\n{words.format(report['flatness'])}\n")
    return "".join(parts)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        inner = value if isinstance(value, dict) else {"": value}
        found |= {f"{name}: {each}" if each else name: figure for each, figure in inner.items()}
    return found


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, (int, float)) else str(value).replace("|", "/")


def size(session: Session, members: int, shards: int, records: int, live_s: int) -> dict[str, Any]:
    """Measure one number of members, in batches as docs/cluster.md sets them, over a backlog of 18 s at least."""
    run = new_run()
    who = RawMembers(members=members, generation_id=1, session_timeout_ms=600_000)
    per_batch = max(1, min(4_000, members // 100))
    # Every batch reads and writes the whole state, so it is to bring each member more than once.
    topics = session.topics(shards=shards, runs=(run,), records_max=max(RECORDS_MAX, members * 8 // 5))
    with topics as config, session.fed(config, who, per_batch=per_batch) as feed:
        feed.run(rounds=1)
        first = session.drain(config)
        feed.run(records=max(records, 6 * members))
        source = session.source(config)
        usage = Usage()
        drained = session.drain(config)
        row = _costs(drained, usage) | {"first contact, members/s": first.per_s}
        row |= {"heartbeats": drained.records, "most a batch": config.records_max}
        row["drain / source"] = round(drained.per_s / source.per_s, 2) if source.per_s else 0
        state, written = state_bytes(config.checkpoint)
        row |= {
            "state, bytes/member": round(state / members, 1),
            "state, MiB": round(state / _MIB, 1),
            "checkpoint a batch, MiB": round(written / _MIB, 1),
        }
        if live_s:
            row |= _live(session, config, feed, members, run, live_s)
        row |= {f"resident, {name}, MiB": mib for name, mib in resident_mib().items()}
    return row


def shape(session: Session, members: int, records: int, partitions: int, shards: int) -> dict[str, Any]:
    """Measure one number of partitions and shards."""
    who = RawMembers(members=members, generation_id=1, session_timeout_ms=600_000)
    with session.topics(shards=shards, partitions=partitions) as config, session.fed(config, who) as feed:
        feed.run(rounds=1)
        session.drain(config)
        feed.run(records=records)
        usage = Usage()
        return _costs(session.drain(config), usage)


def _costs(drained: Run, usage: Usage) -> dict[str, Any]:
    spent = usage.seconds()
    return {
        "drain, heartbeats/s": drained.per_s,
        COST: round((spent["JVM"] + spent["workers"]) / max(1, drained.records) * 1e6, 2),
        "others, core-s": round(spent["others"], 1),
    }


def _live(session: Session, config: JobConfig, feed: RawFeed, members: int, run: str, seconds: int) -> dict[str, Any]:
    """Let all members beat, every three seconds if that is not more than the machine takes."""
    interval_s = max(BEAT_S, members / RATE_MAX)
    with Ticker(session.broker.bootstrap, config.source, run=run, interval_ms=config.tick_interval_ms):
        query = start_query(
            HeartbeatPlugin(), session.spark, config, processingTime=f"{config.trigger_interval_ms} milliseconds"
        )
        feed.run(interval_ms=round(interval_s * 1000), seconds=seconds)
        query.stop()
    batches = [batch for batch in query.recentProgress[len(query.recentProgress) // 4 :] if batch["numInputRows"]]
    took = [batch["durationMs"]["triggerExecution"] for batch in batches]
    return {
        "live, heartbeats/s": round(members / interval_s),
        "live batch p50, ms": percentile(took, 0.5),
        "live batch p99, ms": percentile(took, 0.99),
    }


if __name__ == "__main__":
    main()
