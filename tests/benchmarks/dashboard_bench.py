"""What the dashboard's server costs while a thousand members expire a second and somebody watches.

The picture is fed in this process, and a process of its own reads the stream; CPU is that of this process alone, the
decoding of the rows included, the reading from Kafka not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from heartwheel.base.wall_clock import wall_ms
from heartwheel.readers.dashboard.app import create_app
from heartwheel.readers.http_server.server import HttpServer
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.topic_rows import OutputTopic, TopicRow
from heartwheel.settings import Settings
from heartwheel.wire.verdict_rows import ExpirationRow

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.output_rows import expired, job, status, topic_rows

_STEP_S = 0.1

_LISTENER = """
import sys, urllib.request
read = 0
with urllib.request.urlopen(sys.argv[1] + "api/stream") as stream:
    while piece := stream.read1(1 << 16):
        read += len(piece)
"""


def main() -> None:
    """Run, and print what it cost as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=1_000, help="expirations a second")
    parser.add_argument("--seconds", type=int, default=20)
    asked = parser.parse_args()
    picture = Picture()
    picture.link(True, now_ms=wall_ms())
    app = create_app(picture, Settings())
    with HttpServer(app, host="127.0.0.1", port=0) as server:
        listener = subprocess.Popen([sys.executable, "-c", _LISTENER, server.url])
        try:
            while not app.state.hub.listeners:
                time.sleep(_STEP_S)
            cpu_s, took_s, count = _feed(picture, asked.rate, asked.seconds)
        finally:
            listener.kill()
            listener.wait()
    share = cpu_s / took_s
    sys.stdout.write(
        json.dumps({"expirations": count, "seconds": round(took_s, 1), "share_of_a_core": round(share, 3)}) + "\n"
    )


def _feed(picture: Picture, rate: int, seconds: int) -> tuple[float, float, int]:
    decode = msgspec.json.Decoder(ExpirationRow).decode
    began_s, cpu_s, count = time.monotonic(), time.process_time(), 0
    while (passed_s := time.monotonic() - began_s) < seconds:
        now_ms, wanted = wall_ms(), int(passed_s * rate)
        values = [
            msgspec.json.encode(expired(f"group-{i % 50}", f"m{i}", now_ms - 1_200)) for i in range(count, wanted)
        ]
        rows = [
            TopicRow(OutputTopic.EXPIRATIONS, 0, count + i, now_ms, decode(value)) for i, value in enumerate(values)
        ]
        picture.apply([*rows, *topic_rows(status(0, batch_ms=now_ms), job(now_ms))], now_ms=now_ms)
        count = wanted
        time.sleep(_STEP_S)
    return time.process_time() - cpu_s, time.monotonic() - began_s, count


if __name__ == "__main__":
    main()
