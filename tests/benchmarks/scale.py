"""What a heartbeat costs as members, partitions and shards grow: `make scale`; tables on stderr, JSON on stdout.

For each size: first contact, drain, a live batch, memory, state and what a batch writes of it. Then the same work on
more partitions and shards, and on a standalone cluster of two workers with a core each beside one process with two. CPU
is counted for the job alone, JVM and workers: broker and feeder share the cores, so wall time says less.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from heartwheel.broker.embedded import EmbeddedKafka
from heartwheel.percentiles import percentile
from heartwheel.spark import query as queries
from heartwheel.spark.ticker import Ticker, new_run
from support.bench import Run, Session, Usage, resident_mib, say, state_bytes
from support.rawfeed import RawMembers

BEAT_S = 3
RATE_MAX = 330_000
MEMBERS_PER_SHARD = 60_000


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, nargs="*", default=[10_000, 100_000, 1_000_000, 3_000_000])
    parser.add_argument("--records", type=int, default=6_000_000, help="heartbeats of each drain")
    parser.add_argument("--live", type=int, default=20, help="seconds of each live load; 0 leaves it out")
    parser.add_argument("--shapes", type=int, default=1_000_000, help="members of the drains by shape; 0 leaves it out")
    chosen = parser.parse_args()
    report: dict[str, Any] = {"members": [], "shapes": []}
    with tempfile.TemporaryDirectory(prefix="heartwheel-scale-") as folder, EmbeddedKafka(heap="1g") as broker:
        session = Session(broker, Path(folder), records_max=1_500_000)
        size(session, 10_000, 500_000, 0)  # JVM and workers have then seen everything once
        for members in chosen.members:
            row = size(session, members, chosen.records, chosen.live)
            report["members"].append({"members": members, **row})
            say(f"{members:,} members", row)
        if chosen.shapes:
            for partitions, shards in ((8, 8), (8, 32), (64, 8), (64, 32)):
                row = shape(session, chosen.shapes, chosen.records, partitions, shards)
                report["shapes"].append({"partitions": partitions, "shards": shards, **row})
                say(f"{partitions} partitions, {shards} shards, {chosen.shapes:,} members", row)
        session.close()
    costs = [row["job's core-us/heartbeat"] for row in report["members"] if row["members"] >= 100_000]
    if costs:
        report["cost, most / least from 100 thousand members"] = round(max(costs) / min(costs), 2)
        say("flatness", {"most / least, a heartbeat's cost": report["cost, most / least from 100 thousand members"]})
    sys.stdout.write(json.dumps(report) + "\n")


def size(session: Session, members: int, records: int, live_s: int) -> dict[str, Any]:
    """Measure one number of members."""
    run = new_run()
    with session.topics(shards=max(8, members // MEMBERS_PER_SHARD), runs=(run,)) as config:
        who = RawMembers(members=members, generation_id=1, session_timeout_ms=600_000)
        session.feed(config, who, rounds=1)
        first = session.drain(config)
        session.feed(config, who, records=records)
        source = session.source(config)
        usage = Usage()
        drained = session.drain(config)
        row = _costs(drained, usage) | {"first contact, members/s": first.per_s}
        row["drain / source"] = round(drained.per_s / source.per_s, 2) if source.per_s else 0
        state, written = state_bytes(config.checkpoint)
        row |= {
            "state, bytes/member": round(state / members, 1),
            "written a batch, bytes/member": round(written / members, 1),
        }
        if live_s:
            row |= _live(session, config, who, run, live_s)
        row |= {f"resident, {name}, MiB": mib for name, mib in resident_mib().items()}
    return row


def shape(session: Session, members: int, records: int, partitions: int, shards: int) -> dict[str, Any]:
    """Measure one number of partitions and shards."""
    with session.topics(shards=shards, partitions=partitions) as config:
        who = RawMembers(members=members, generation_id=1, session_timeout_ms=600_000)
        session.feed(config, who, rounds=1)
        session.drain(config)
        session.feed(config, who, records=records)
        usage = Usage()
        return _costs(session.drain(config), usage)


def _costs(drained: Run, usage: Usage) -> dict[str, Any]:
    spent = usage.seconds()
    return {
        "drain, heartbeats/s": drained.per_s,
        "job's core-us/heartbeat": round((spent["JVM"] + spent["workers"]) / max(1, drained.records) * 1e6, 2),
        "others, core-s": round(spent["others"], 1),
    }


def _live(session: Session, config: Any, who: RawMembers, run: str, seconds: int) -> dict[str, Any]:
    interval_s = max(BEAT_S, who.members / RATE_MAX)
    with Ticker(session.broker.bootstrap, config.source, run=run, interval_ms=config.tick_interval_ms):
        query = queries.start(session.spark, config, processingTime=f"{config.trigger_interval_ms} milliseconds")
        per_batch = max(1, min(4_000, who.members // 100))
        session.feed(config, who, per_batch=per_batch, interval_ms=round(interval_s * 1000), seconds=seconds)
        query.stop()
    batches = [batch for batch in query.recentProgress[len(query.recentProgress) // 4 :] if batch["numInputRows"]]
    took = [batch["durationMs"]["triggerExecution"] for batch in batches]
    return {
        "live, heartbeats/s": round(who.members / interval_s),
        "live batch p50, ms": percentile(took, 0.5),
        "live batch p99, ms": percentile(took, 0.99),
    }


if __name__ == "__main__":
    main()
