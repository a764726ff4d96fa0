"""Heartbeats of streams members that no client would send: made by hand, sent to a broker of any version."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.kafka.broker.java import find_java
from support.requests_sent import Connection

API: Final = 88
_FIND_COORDINATOR: Final = 10
_HEAD_BYTES: Final = 5
"""Before the answer itself: its number, and no tagged fields."""
_CLIENT: Final = b"by-hand"
_NOT_YET: Final = frozenset({14, 15, 16})
"""Answers of a broker that has not loaded the group's partition yet."""
_UNCHANGED: Final = (
    "instanceId",
    "rackId",
    "topology",
    "activeTasks",
    "standbyTasks",
    "warmupTasks",
    "processId",
    "userEndpoint",
    "clientTags",
    "taskOffsets",
    "taskEndOffsets",
)


def topology(*topics: str, store: str = "") -> dict[str, Any]:
    """Return a topology with one subtopology that reads some topics, and keeps a store if that has a name."""
    changelog = {"name": store, "partitions": 0, "replicationFactor": 1, "topicConfigs": []}
    parts = ("sourceTopicRegex", "repartitionSinkTopics", "repartitionSourceTopics", "copartitionGroups")
    one = {
        "subtopologyId": "0",
        "sourceTopics": list(topics),
        "stateChangelogTopics": [changelog] if store else [],
        **dict.fromkeys(parts, ()),
    }
    return {"epoch": 0, "subtopologies": [one]}


class StreamsRequests:
    """A connection to a broker, and a JVM with Kafka's own client that encodes the requests.

    Args:
        port: where the broker listens on this machine.
    """

    def __init__(self, port: int) -> None:
        (bridge,) = Path(pyspark.__file__).parent.glob("jars/py4j-*.jar")
        gateway_port, token, self._process = launch_gateway(
            jarpath=str(bridge),
            classpath=":".join(map(str, fetch_jars("broker"))),
            javaopts=["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
            java_path=str(find_java()),
            die_on_exit=True,
            enable_auth=True,
            return_proc=True,
        )
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=gateway_port, auth_token=token))
        self._jvm: Any = self._gateway.jvm
        self._mapper = self._jvm.com.fasterxml.jackson.databind.ObjectMapper()
        self._connection = Connection("127.0.0.1", port)
        self._sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.__exit__(kind, error, trace)
        self._gateway.shutdown()
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def send(self, group: str, member: str, epoch: int, *, version: int = 0, **fields: Any) -> dict[str, Any]:
        """Send a heartbeat; return its answer, by Kafka's names.

        Args:
            member: the sender.
            fields: further fields by Kafka's names; the others say that nothing has changed.
        """
        request = {
            "groupId": group,
            "memberId": member,
            "memberEpoch": epoch,
            "endpointInformationEpoch": 0,
            "rebalanceTimeoutMs": -1,
            "shutdownApplication": False,
            **dict.fromkeys(_UNCHANGED),
            **fields,
        }
        return self._ask(API, "StreamsGroupHeartbeat", version, request)

    def _ask(self, api: int, name: str, version: int, request: dict[str, Any]) -> dict[str, Any]:
        message = self._jvm.org.apache.kafka.common.message
        tree = self._mapper.readTree(json.dumps(request))
        data = getattr(message, f"{name}RequestDataJsonConverter").read(tree, version)
        prefixed = self._jvm.org.apache.kafka.common.protocol.MessageUtil.toVersionPrefixedBytes(version, data)
        self._sent += 1
        head = struct.pack(">hhih", api, version, self._sent, len(_CLIENT)) + _CLIENT + b"\0"
        body = head + bytes(prefixed)[2:]
        raw = self._connection.ask(struct.pack(">i", len(body)) + body)
        answer = self._jvm.java.nio.ByteBuffer.wrap(raw[_HEAD_BYTES:])
        read = self._jvm.org.apache.kafka.common.protocol.ByteBufferAccessor(answer)
        decoded = getattr(message, f"{name}ResponseData")(read, version)
        found: dict[str, Any] = json.loads(
            getattr(message, f"{name}ResponseDataJsonConverter").write(decoded, version).toString()
        )
        return found

    def is_ready(self, group: str) -> bool:
        """Return whether the broker coordinates a group, which has no members yet; the first call makes it begin."""
        self._ask(_FIND_COORDINATOR, "FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": [group]})
        return self.send(group, "nobody", 1)["errorCode"] not in _NOT_YET
