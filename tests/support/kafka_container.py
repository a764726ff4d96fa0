"""A Kafka container for tests: on Kafka's own image, or on the one built from locked jars with the same contract."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any, Self

from docker.errors import APIError
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import WaitStrategy

from heartwheel.kafka.broker.node_config import SMALL_NODE
from heartwheel.kafka.broker.probe import serves_requests

OFFICIAL_IMAGE = "apache/kafka:4.4.0"
IMAGE_VARIABLE = "HEARTWHEEL_KAFKA_IMAGE"
_READY_TIMEOUT_S = 60
_PORT_ATTEMPTS = 3
_LOG_TAIL_BYTES = 3000


def image_name() -> str:
    """Say which image the tests run on."""
    return os.environ.get(IMAGE_VARIABLE) or OFFICIAL_IMAGE


class ServesRequests(WaitStrategy):
    """Wait for an answer of the broker; a container's port accepts connections long before there is one."""

    def wait_until_ready(self, container: Any) -> None:
        """Wait, and fail at once with the container's log if it stops."""

        def ready() -> bool:
            container.reload()
            if container.status in {"exited", "dead"}:
                out, err = container.get_logs()
                tail = (out + err)[-_LOG_TAIL_BYTES:].decode(errors="replace")
                raise RuntimeError(f"Kafka's container stopped:\n{tail}")
            return serves_requests(container.host, container.port)

        self.with_poll_interval(0.05)
        if not self._poll(ready):
            raise TimeoutError(f"Kafka in {container.image} did not answer within {_READY_TIMEOUT_S} s")


class KafkaContainer(DockerContainer):
    """Run one Kafka node in a container, reachable from the host at `bootstrap`.

    The broker must tell clients an address before anybody knows which host port it will get; so a free port is chosen
    first and bound to the same number inside.

    Args:
        image: which one; `image_name()` if absent.
        config: broker properties that go over the defaults.
    """

    def __init__(self, image: str | None = None, config: Mapping[str, str] | None = None) -> None:
        # The reaper is one image more to pull; `with` removes the container, and a label finds one that was left over.
        testcontainers_config.ryuk_disabled = True
        super().__init__(image or image_name())
        self.host = self.get_docker_client().host().replace("localhost", "127.0.0.1")
        self.port = 0
        self._settings = {**SMALL_NODE, **(config or {})}
        self.with_env("KAFKA_HEAP_OPTS", "-Xmx384m")
        self.waiting_for(ServesRequests().with_startup_timeout(_READY_TIMEOUT_S))

    @property
    def bootstrap(self) -> str:
        """Give the address for `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    def start(self) -> Self:
        """Start on a free port; pick another if somebody was quicker."""
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._use_port(_free_port())
            try:
                super().start()
            except APIError as error:
                if "port is already allocated" not in str(error) or attempt == _PORT_ATTEMPTS:
                    raise
                self.get_wrapped_container().remove(force=True)
            else:
                return self
        raise AssertionError

    def kill(self) -> None:
        """Kill the broker without a goodbye; its data stays in the container's volume."""
        self.get_wrapped_container().kill()

    def restart(self) -> None:
        """Start the same container again and wait until it serves requests."""
        self.get_wrapped_container().start()
        assert self._wait_strategy is not None
        self._wait_strategy.wait_until_ready(self)

    def _use_port(self, port: int) -> None:
        self.port = port
        self.ports.clear()
        self.with_bind_ports(port, port)
        settings = {
            **self._settings,
            "controller.quorum.voters": "1@127.0.0.1:9093",
            "listeners": f"PLAINTEXT://0.0.0.0:{port},CONTROLLER://127.0.0.1:9093",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": "/var/lib/kafka/data",
        }
        for name, value in settings.items():
            self.with_env("KAFKA_" + name.replace(".", "_").upper(), value)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
