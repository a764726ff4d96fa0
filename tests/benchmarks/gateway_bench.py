"""How many beats one gateway takes, in batches and one by one: every figure counts what Kafka has acknowledged.

Run it with `PYTHONPATH=tests`. The gateway is a process of its own; its use of a core stands beside each figure, for
load, broker and gateway share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.topic_specs import TopicNames, engine_topics
from heartwheel.kafka.topics import ensure_topics
from support.processes import cpu_of

SINGLE = b"POST /beat/group-%d/member-%d?session=30s HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"
LINE = '{"group_id":"group-%d","member_id":"member-%d","session_timeout_ms":30000}\n'


def requests(batch: int, numbers: range) -> list[bytes]:
    """Write the requests of one connection."""
    if batch == 1:
        return [SINGLE % (number % 100, number) for number in numbers]
    body = "".join(LINE % (number % 100, number) for number in range(batch)).encode()
    head = "POST /beat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ncontent-length: "
    return [head.encode() + b"%d\r\n\r\n" % len(body) + body] * len(numbers)


async def load(port: int, *, batch: int, connections: int, seconds: float) -> tuple[int, int]:
    """Send for a while, one request at a time on each connection.

    Returns:
        How many requests were accepted, and how many were not.
    """
    end = time.perf_counter() + seconds
    counts = [0, 0]

    async def beat(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        written = requests(batch, range(number * 1000, number * 1000 + 50))
        at = 0
        while time.perf_counter() < end:
            writer.write(written[at % len(written)])
            at += 1
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            counts[not head.startswith(b"HTTP/1.1 202")] += 1
        writer.close()

    await asyncio.gather(*map(beat, range(connections)))
    return counts[0], counts[1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    figures = {}
    with EmbeddedKafka() as broker:
        specs = engine_topics(TopicNames(), heartbeat_partitions=8, output_partitions=1)
        ensure_topics(broker.bootstrap, specs, create=True)
        flags = ["--set", "gateway.records_per_second_max=10000000", "--port", "0"]
        command = [sys.executable, "-m", "heartwheel", "gateway", "--bootstrap-servers", broker.bootstrap, *flags]
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as gateway:
            assert gateway.stdout is not None
            port = int(gateway.stdout.readline().strip().rpartition(":")[2])
            asyncio.run(load(port, batch=1, connections=4, seconds=1))
            for batch, connections in ((1, 64), (1000, 4)):
                before, start = cpu_of(gateway.pid), time.perf_counter()
                accepted, refused = asyncio.run(load(port, batch=batch, connections=connections, seconds=given.seconds))
                wall, used = time.perf_counter() - start, cpu_of(gateway.pid) - before
                figures[f"batches of {batch}"] = {
                    "beats_per_s": round(accepted * batch / wall),
                    "beats_per_core_s": round(accepted * batch / used),
                    "refused": refused,
                    "cores": round(used / wall, 2),
                }
                print(f"batches of {batch:5}", figures[f"batches of {batch}"])  # noqa: T201 - what it is for
            gateway.terminate()
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
