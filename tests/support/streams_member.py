"""A real Kafka Streams application in a JVM of its own, that can be killed; driven by Py4J, so nothing is compiled."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.kafka.broker.java import find_java

_JVM_FLAGS = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


class StreamsMember:
    """One instance of an application that copies a topic: one thread, and so one member of a streams group (KIP-1071).

    Args:
        bootstrap: the broker.
        application: its id, and so the group's.
        client: its client id; the member's begins with it.
        folder: for its state.
        source: the topic that is copied.
        poll_ms: how long it may go without a poll, and may take to give tasks back, ms.
        instance_id: makes its member a static one, from Kafka 4.4 on.
        jars: the sets of jars that it is made of.
    """

    def __init__(
        self,
        bootstrap: str,
        application: str,
        client: str,
        folder: Path,
        *,
        source: str,
        sink: str,
        poll_ms: int,
        instance_id: str | None = None,
        jars: tuple[str, str] = ("streams", "broker"),
    ) -> None:
        (bridge,) = Path(pyspark.__file__).parent.glob("jars/py4j-*.jar")
        files = [file for each in jars for file in fetch_jars(each)]
        port, token, self._process = launch_gateway(
            jarpath=str(bridge),
            classpath=":".join(map(str, files)),
            javaopts=_JVM_FLAGS,
            java_path=str(find_java()),
            die_on_exit=True,
            enable_auth=True,
            return_proc=True,
        )
        self.client = client
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        jvm: Any = self._gateway.jvm
        settings = jvm.java.util.Properties()
        serde = "org.apache.kafka.common.serialization.Serdes$ByteArraySerde"
        for name, value in {
            "application.id": application,
            "bootstrap.servers": bootstrap,
            "client.id": client,
            "group.protocol": "streams",
            "num.stream.threads": "1",
            "max.poll.interval.ms": str(poll_ms),
            "state.dir": str(folder / client),
            "default.key.serde": serde,
            "default.value.serde": serde,
            **({} if instance_id is None else {"main.consumer.group.instance.id": instance_id}),
        }.items():
            settings.put(name, value)
        topology = jvm.org.apache.kafka.streams.StreamsBuilder()
        topology.stream(source).to(sink)
        self._streams = jvm.org.apache.kafka.streams.KafkaStreams(topology.build(), settings)
        self._streams.start()

    @property
    def state(self) -> str:
        """Its state, by the name that Kafka Streams gives it: RUNNING once it has tasks."""
        return str(self._streams.state().toString())

    def close(self) -> None:
        """Close it in order, and end its process: a static member leaves for a while."""
        self._streams.close()
        self.kill()

    def kill(self) -> None:
        """Kill it, as a crash would, and let go of its pipes."""
        process: subprocess.Popen[bytes] = self._process
        process.kill()
        process.wait()
        self._gateway.close()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()
