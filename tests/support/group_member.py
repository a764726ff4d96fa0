"""One real consumer in a process of its own, so that it can be killed and paused: `python group_member.py '{...}'`.

It prints a JSON line when it is given partitions, and follows the commands on its standard input: `stall SECONDS` (no
poll for that long), `close`, `leave WORDS` (with these as the reason, as Java's client says why; kafka-python alone),
`eat` (take memory until it is killed for it).
Settings: `library` (`kafka-python`, `java` or `librdkafka`), `bootstrap`, `topic`, `group`,
`client`, `protocol` (`classic` or `consumer`), `session_ms`, `poll_ms`, `instance`, and `deaf`: its poll timeout is
never noticed, so that it beats on and does not join again while it stalls.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.kafka.broker.java import find_java
from kafka import KafkaConsumer

POLL_SECONDS: Final = 0.1


def say(**fields: Any) -> None:
    """Tell the test something."""
    sys.stdout.write(json.dumps({"t_ms": round(time.time() * 1000), **fields}) + "\n")
    sys.stdout.flush()


class _Python:
    """A kafka-python consumer, of a classic group."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=wanted["bootstrap"],
            group_id=wanted["group"],
            client_id=wanted["client"],
            session_timeout_ms=wanted["session_ms"],
            heartbeat_interval_ms=300,
            max_poll_interval_ms=wanted["poll_ms"],
            group_instance_id=wanted.get("instance"),
        )
        self._consumer.subscribe([wanted["topic"]])
        if wanted.get("deaf"):
            self._consumer._coordinator.heartbeat.poll_timeout_expired = lambda: False

    def poll(self) -> bool:
        self._consumer.poll(timeout_ms=round(POLL_SECONDS * 1000))
        return bool(self._consumer.assignment())

    def member_id(self) -> str:
        return str(self._consumer._coordinator._generation.member_id)

    def leave(self, words: str) -> None:
        self._consumer._coordinator.maybe_leave_group(reason=words)

    def close(self) -> None:
        self._consumer.close()


class _Java:
    """Kafka's own consumer in a JVM that stays in this process's group, driven by Py4J, so that nothing is compiled."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        spark = find_spec("pyspark")
        assert spark is not None
        assert spark.origin is not None
        (bridge,) = Path(spark.origin).parent.glob("jars/py4j-*.jar")
        port, token = launch_gateway(
            jarpath=str(bridge),
            classpath=":".join(map(str, fetch_jars("broker"))),
            javaopts=["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
            java_path=str(find_java()),
            die_on_exit=True,
            enable_auth=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        self._jvm: Any = gateway.jvm
        decoder = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        settings = {
            "bootstrap.servers": wanted["bootstrap"],
            "group.id": wanted["group"],
            "client.id": wanted["client"],
            "group.protocol": wanted["protocol"],
            "max.poll.interval.ms": str(wanted["poll_ms"]),
            "key.deserializer": decoder,
            "value.deserializer": decoder,
        }
        if wanted["protocol"] == "classic":
            settings |= {"session.timeout.ms": str(wanted["session_ms"]), "heartbeat.interval.ms": "300"}
        if wanted.get("instance"):
            settings["group.instance.id"] = wanted["instance"]
        properties = self._jvm.java.util.Properties()
        for name, value in settings.items():
            properties.put(name, value)
        self._consumer = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
        self._consumer.subscribe(self._jvm.java.util.Collections.singletonList(wanted["topic"]))

    def poll(self) -> bool:
        self._consumer.poll(self._jvm.java.time.Duration.ofMillis(round(POLL_SECONDS * 1000)))
        return not self._consumer.assignment().isEmpty()

    def member_id(self) -> str:
        return str(self._consumer.groupMetadata().memberId())

    def close(self) -> None:
        self._consumer.close()


class _Librdkafka:
    """A consumer on librdkafka, of a classic or of a KIP-848 group."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": wanted["bootstrap"],
            "group.id": wanted["group"],
            "client.id": wanted["client"],
            "group.protocol": wanted["protocol"],
            "max.poll.interval.ms": wanted["poll_ms"],
        }
        if wanted["protocol"] == "classic":
            settings |= {"session.timeout.ms": wanted["session_ms"], "heartbeat.interval.ms": 300}
        if wanted.get("instance"):
            settings["group.instance.id"] = wanted["instance"]
        self._consumer = Consumer(settings)
        self._consumer.subscribe([wanted["topic"]])

    def poll(self) -> bool:
        self._consumer.poll(POLL_SECONDS)
        return bool(self._consumer.assignment())

    def member_id(self) -> str:
        return str(self._consumer.memberid())

    def close(self) -> None:
        self._consumer.close()


_LIBRARIES: Final[dict[str, Callable[[dict[str, Any]], _Python | _Java | _Librdkafka]]] = {
    "kafka-python": _Python,
    "java": _Java,
    "librdkafka": _Librdkafka,
}


def main(wanted: dict[str, Any]) -> None:
    """Consume until told to stop."""
    commands: queue.SimpleQueue[str] = queue.SimpleQueue()

    def hear() -> None:
        for line in sys.stdin:
            commands.put(line)

    threading.Thread(target=hear, daemon=True).start()
    consumer = _LIBRARIES[wanted["library"]](wanted)
    known = ""
    while True:
        member_id = consumer.member_id() if consumer.poll() else ""
        if member_id and member_id != known:
            known = member_id
            say(joined=member_id)
        command, _, value = (commands.get() if not commands.empty() else "").strip().partition(" ")
        if command == "stall":
            say(stalls=known)
            time.sleep(float(value))
            known = ""
        elif command == "eat":
            eaten = []
            while True:
                eaten.append(bytearray(b"x" * (16 << 20)))
        elif command in {"close", "leave"}:
            say(leaves=known)
            if isinstance(consumer, _Python) and command == "leave":
                consumer.leave(value)
            consumer.close()
            say(closed=known)
            return


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
