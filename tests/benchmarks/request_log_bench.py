"""What a request log costs a broker: CPU a heartbeat and a fetch with it and without it, in turns, and bytes a line.

Run it with `PYTHONPATH=tests`. One broker, whose request logger is switched on and off at run time (docs/tap.md). Each
turn sends the same requests on one connection. What counts is CPU time of the broker's threads that handle requests
and collect garbage, not time that goes by; of all turns the half that took least, as others may use the machine
meanwhile. The broker runs with both compilers of the JVM, as brokers do; what they use themselves is left out. What it
finds stands in `heartwheel.sources.tap.cost`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from kafka.admin import ConfigResource, ConfigResourceType

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.node_process import HOST
from heartwheel.kafka.client import admin_client
from heartwheel.sources.tap.echo import LOGGER, logger_level
from kafka import KafkaConsumer
from support.bench import say, until
from support.requests_sent import (
    CLIENT,
    Connection,
    answered_epoch,
    classic_heartbeat,
    consumer_heartbeat,
    fetch,
    new_member_id,
)

BOTH_COMPILERS: Final = {"_JAVA_OPTIONS": "-XX:TieredStopAtLevel=4"}
SESSION_MS: Final = 1_800_000
"""Of all members, so that none is thrown out while another request is measured."""

CONFIG: Final = {
    "group.consumer.max.session.timeout.ms": str(SESSION_MS),
    "group.consumer.session.timeout.ms": str(SESSION_MS),
}
WIDE: Final = 100
"""Partitions of the larger fetch."""

_WARM_TURNS: Final = 3
_TAIL_BYTES: Final = 1 << 20
_WORKING: Final = re.compile(r"data-plane-kafk|group-coordinat|VM Thread")  # the kernel keeps 15 letters of a name


class Cost(msgspec.Struct):
    """What one kind of request costs.

    Args:
        off_us: broker CPU a request without the request log, us.
        more_us: how much more that is.
        times: the same as a ratio.
        line_bytes: length of its line.
    """

    off_us: float
    on_us: float
    more_us: float
    times: float
    line_bytes: int


class Scene:
    """A broker, somebody in a group of each protocol, and a connection.

    Args:
        broker: it runs.
        admin: a client of it.
    """

    def __init__(self, broker: EmbeddedKafka, connection: Connection, admin: Any) -> None:
        self._broker, self._connection, self._admin = broker, connection, admin

    def switch(self, level: str) -> None:
        """Have the request logger at a level."""
        wanted = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1", {LOGGER: level})
        self._admin.alter_configs([wanted])
        until(lambda: logger_level(self._admin, 1) == level)

    def cpu_us(self, request: bytes, times: int) -> float:
        """Send a request many times; return the CPU that the broker spent on each, us."""
        assert self._broker.pid is not None
        before_us = working_us(self._broker.pid)
        self._connection.repeat(request, times)
        return (working_us(self._broker.pid) - before_us) / times

    def line_bytes(self, request: bytes, times: int, name: str) -> int:
        """Send a request with the log on; return how long its line is, the mean of those at the log's end."""
        self.switch("DEBUG")
        self._connection.repeat(request, times)
        self.switch("INFO")
        log = self._broker.request_log
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().split(b"\n")[1:-1]
        mine = [len(line) + 1 for line in lines if f'"requestApiKeyName":"{name}"'.encode() in line]
        return round(statistics.mean(mine))


def working_us(pid: int) -> float:
    """Tell how much CPU those threads of a broker have used that handle requests and collect garbage, us."""
    spent_ns = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        if _WORKING.match((task / "comm").read_text()):
            spent_ns += int((task / "schedstat").read_text().split()[0])
    return spent_ns / 1_000


def quiet(figures: list[float]) -> float:
    """Return the mean of the lower half: what others do on the machine makes a request dearer, and never cheaper."""
    return statistics.mean(sorted(figures)[: (len(figures) + 1) // 2])


def measured(scene: Scene, request: bytes, name: str, *, times: int, turns: int) -> Cost:
    """Measure one kind of request, with the log and without it in turns.

    Args:
        name: as the log calls it.
        times: requests a turn.
        turns: how many of each; some more go before, so that the JVM has compiled what is measured.
    """
    off: list[float] = []
    on: list[float] = []
    for turn in range(_WARM_TURNS + turns):
        for level, found in (("INFO", off), ("DEBUG", on)) if turn % 2 else (("DEBUG", on), ("INFO", off)):
            scene.switch(level)
            found.append(scene.cpu_us(request, times))
    del off[:_WARM_TURNS], on[:_WARM_TURNS]
    off_us, on_us = quiet(off), quiet(on)
    return Cost(
        off_us=round(off_us, 1),
        on_us=round(on_us, 1),
        more_us=round(on_us - off_us, 1),
        times=round(on_us / off_us, 2),
        line_bytes=scene.line_bytes(request, 200, name),
    )


@contextmanager
def classic_member(broker: EmbeddedKafka) -> Iterator[Callable[[], bytes]]:
    """Join a classic group; gives the heartbeat of its member."""
    consumer = KafkaConsumer(
        "narrow",
        bootstrap_servers=broker.bootstrap,
        group_id="orders",
        client_id=CLIENT,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=60_000,
    )

    def joined() -> bool:
        consumer.poll(100)
        return bool(consumer.assignment())

    try:
        until(joined)
        known = consumer._coordinator._generation  # there is no public way to learn it
        yield lambda: classic_heartbeat("orders", known.generation_id, known.member_id)
    finally:
        consumer.close()


def consumer_member(connection: Connection) -> bytes:
    """Join a group of KIP-848; return the heartbeat of its member."""
    member_id = new_member_id()
    epoch = answered_epoch(connection.ask(consumer_heartbeat("video", member_id, 0, topics=["narrow"])))
    return consumer_heartbeat("video", member_id, epoch)


def require_accepted(name: str, answer: bytes) -> None:
    """Refuse to measure a request that the broker refuses."""
    (error,) = struct.unpack_from(">h", answer, 9)  # behind correlation id, tags and throttle time
    if error:
        raise SystemExit(f"{name} is answered with error {error}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000, help="a turn")
    parser.add_argument("--turns", type=int, default=14)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    os.environ |= BOTH_COMPILERS
    figures: dict[str, Cost] = {}
    with EmbeddedKafka(config=CONFIG, heap="1g", request_log=True) as broker, admin_client(broker.bootstrap) as admin:
        admin.create_topics({"narrow": {"num_partitions": 1}, "wide": {"num_partitions": WIDE}})
        with Connection(HOST, broker.port) as connection, classic_member(broker) as beat:
            scene = Scene(broker, connection, admin)
            for title, name, request, share in (
                ("heartbeat, classic", "HEARTBEAT", beat(), 1),
                ("heartbeat, KIP-848", "CONSUMER_GROUP_HEARTBEAT", consumer_member(connection), 1),
                ("fetch of 1 partition", "FETCH", fetch("narrow", 1), 1),
                (f"fetch of {WIDE} partitions", "FETCH", fetch("wide", WIDE), 4),
            ):
                require_accepted(name, connection.ask(request))
                cost = measured(scene, request, name, times=given.requests // share, turns=given.turns)
                figures[title] = cost
                say(title, msgspec.to_builtins(cost))
    if given.json:
        given.json.write_text(json.dumps(msgspec.to_builtins(figures), indent=2))


if __name__ == "__main__":
    main()
