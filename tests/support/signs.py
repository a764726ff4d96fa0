"""What a job's topics make people see: the sentence on the page, the figures of Prometheus, the words of the doctor."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, generate_latest

from heartwheel.readers.live.health import Signs, health_of
from heartwheel.readers.live.health_states import Health
from heartwheel.readers.metrics.job_collector import JobCollector
from heartwheel.wire.job import JobRow
from heartwheel.wire.status import StatusRow
from support.job import Job, Topics


def job_row(topics: Topics) -> JobRow:
    """Return the newest row of the job."""
    return msgspec.json.decode(topics.read("job")[-1].value or b"", type=JobRow)


def page_of(topics: Topics) -> Health:
    """Judge the job as the page does."""
    newest: dict[int, StatusRow] = {}
    for record in topics.read("status"):
        if record.value is not None:  # else the doctor has looked at the broker's clock
            row = msgspec.json.decode(record.value, type=StatusRow)
            newest[row.shard] = row
    return health_of(
        Signs(True, 0, topics.bootstrap, job_row(topics), tuple(newest.values())), now_ms=int(time.time() * 1000)
    )


def metrics_of(topics: Topics) -> str:
    """Return what Prometheus is told of the job."""
    registry = CollectorRegistry()
    JobCollector(registry).take(job_row(topics))
    return generate_latest(registry).decode()


def doctor_of(job: Job) -> dict[str, dict[str, Any]]:
    """Run `heartwheel doctor` with the job's settings, and return its checks by name."""
    flags = [word for flag in job.flags for word in ("--set", flag)]
    command = [sys.executable, "-m", "heartwheel", "doctor", "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    return {check["name"]: check for check in json.loads(done.stdout)}
