"""The echo: a small request to the tapped broker now and then, so that its log has lines while all members are silent.

A tap knows the time of a broker by its log's lines alone. Where nobody sends a request, be it because all members died,
no line comes, and no time passes. So the tap asks the broker itself: at which level its request logger is. The line of
that request proves that all that was logged before has been read; and if the logger was switched off, the answer says
so.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from kafka.admin import ConfigResource, ConfigResourceType

from heartwheel.kafka.client import WATCHED_TIMEOUT_MS, admin_client
from heartwheel.tap.broker_rules import broker_rules

LOGGER: Final = "kafka.request.logger"
"""The broker's logger that a tap reads."""

INTERVAL_S: Final = 0.5
"""From one request to the next, seconds."""


class Echo:
    """Ask a broker again and again, in a thread of its own, until the end of a `with` block.

    Args:
        bootstrap: of the tapped cluster, `host:port[,host:port]`.
        broker_id: of the tapped broker.
        properties: Kafka client properties in dotted style.
        token: a word that each request has in it.

    Attributes:
        level: of the request logger, as the broker last said; empty before.
        trouble: why the broker could not be asked last, empty if it could.
        rules: the broker's settings by their names, as it said when it was reached last; empty before.
    """

    def __init__(self, bootstrap: str, broker_id: int, *, properties: Mapping[str, str], token: str) -> None:
        self._bootstrap, self._broker_id, self._token = bootstrap, broker_id, token
        self._properties = properties
        self.level = ""
        self.trouble = ""
        self.rules: dict[str, str] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tap-echo", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join(2)

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                with admin_client(
                    self._bootstrap,
                    self._properties,
                    doing="ask for the level of the request logger",
                    connect_timeout_ms=WATCHED_TIMEOUT_MS,
                ) as admin:
                    self.rules = broker_rules(admin, self._broker_id)
                    while not self._ending.is_set():
                        self.level = logger_level(admin, self._broker_id, self._token)
                        self.trouble = ""
                        self._ending.wait(INTERVAL_S)
            except Exception as error:  # noqa: BLE001 - a broker that is away is asked again; the trouble is said
                self.trouble = str(error) or type(error).__name__
                self._ending.wait(INTERVAL_S)


def logger_level(admin: Any, broker_id: int, token: str = LOGGER) -> str:
    """Ask a broker at which level its request logger is (KIP-412); empty if it has none.

    Args:
        admin: a client of the cluster.
        broker_id: which broker.
        token: is asked for beside it, as if it were a logger, too; so the request's line has it.
    """
    asked = ConfigResource(ConfigResourceType.BROKER_LOGGER, str(broker_id), {LOGGER: None, token: None})
    found = admin.describe_configs([asked], config_filter="all")
    levels = found.get("broker_logger", {}).get(str(broker_id), {})
    return str((levels.get(LOGGER) or {}).get("value") or "")
