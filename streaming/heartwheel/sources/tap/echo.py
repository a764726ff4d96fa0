"""The echo: small periodic requests to the tapped broker, so that its log has lines while all members are silent.

A tap knows the time of a broker by its log's lines alone. Where no client sends a request, because all members died,
for example, no line comes and no time passes. So the tap sends requests of its own: it asks for the level of the
broker's request logger. The line of that request proves that everything logged before it has been read; and if the
logger was switched off, the answer shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from kafka.admin import ConfigResource, ConfigResourceType

from heartwheel.base.worker import Worker
from heartwheel.kafka.broker_version import broker_version
from heartwheel.kafka.client import WATCHED_TIMEOUT_MS, admin_client
from heartwheel.sources.tap.broker_rules import VERSION, broker_rules

LOGGER: Final = "kafka.request.logger"
"""The broker's logger that a tap reads."""

INTERVAL_S: Final = 0.5
"""From one request to the next, seconds."""


class Echo:
    """A thread that asks a broker periodically, until the end of a `with` block.

    Args:
        bootstrap: of the tapped cluster, `host:port[,host:port]`.
        properties: Kafka client properties in dotted style.
        token: a word that each request contains.

    Attributes:
        level: level of the request logger in the broker's last answer; empty before the first.
        trouble: why the last request failed; empty if it did not.
        rules: the broker's settings and its version by their names, from the last time it was reached; empty before.
    """

    def __init__(self, bootstrap: str, broker_id: int, *, properties: Mapping[str, str], token: str) -> None:
        self._bootstrap, self._broker_id, self._token = bootstrap, broker_id, token
        self._properties = properties
        self.level = ""
        self.trouble = ""
        self.rules: dict[str, str] = {}
        self._worker = Worker(self._run, "tap-echo", close_s=2)

    def __enter__(self) -> Self:
        self._worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.stop()

    def _run(self) -> None:
        while not self._worker.stopping:
            try:
                with admin_client(
                    self._bootstrap,
                    self._properties,
                    doing="ask for the level of the request logger",
                    connect_timeout_ms=WATCHED_TIMEOUT_MS,
                ) as admin:
                    self.rules = self._rules(admin)
                    while not self._worker.stopping:
                        self.level = logger_level(admin, self._broker_id, self._token)
                        self.trouble = ""
                        self._worker.wait(INTERVAL_S)
            except Exception as error:  # noqa: BLE001 - the trouble is reported, and the broker is asked again
                self.trouble = str(error) or type(error).__name__
                self._worker.wait(INTERVAL_S)

    def _rules(self, admin: Any) -> dict[str, str]:
        (broker,) = (each for each in admin.describe_cluster()["brokers"] if each["broker_id"] == self._broker_id)
        return {**broker_rules(admin, self._broker_id), VERSION: broker_version(broker, self._properties)}


def logger_level(admin: Any, broker_id: int, token: str = LOGGER) -> str:
    """Return the level of a broker's request logger (KIP-412); empty if it has none.

    Args:
        token: requested in addition, as if it were a logger, too; so it appears in the request's line.
    """
    asked = ConfigResource(ConfigResourceType.BROKER_LOGGER, str(broker_id), {LOGGER: None, token: None})
    found = admin.describe_configs([asked], config_filter="all")
    levels = found.get("broker_logger", {}).get(str(broker_id), {})
    return str((levels.get(LOGGER) or {}).get("value") or "")
