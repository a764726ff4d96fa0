"""The gateway, whole: a server for workers, and a publisher to Kafka."""

from __future__ import annotations

import contextlib
import ssl
from pathlib import Path
from typing import Final, Self

from heartwheel.dashboard.connections import Limits
from heartwheel.dashboard.files import tls_context
from heartwheel.dashboard.hosts import hosts_for
from heartwheel.dashboard.server import DashboardServer
from heartwheel.gateway.app import Bounds, GatewayApp
from heartwheel.gateway.pace import Pace
from heartwheel.gateway.publisher import Publisher
from heartwheel.gateway.requests import Sessions
from heartwheel.gateway.tokens import Tokens, TokensFileError
from heartwheel.kafka.bulk import BulkSender
from heartwheel.settings import Problem, Settings, SettingsError
from heartwheel.settings.locations import parse_networks

_LINGER_MS: Final = 1


class Gateway:
    """Run a gateway, in threads of its own; Kafka may come later.

    Args:
        settings: the checked configuration.

    Raises:
        SettingsError: files that the settings name cannot be used.
    """

    def __init__(self, settings: Settings) -> None:
        wanted, kafka, rules = settings.gateway, settings.kafka, settings.coordinator
        problems = list[Problem]()
        tokens, tls = None, None
        if wanted.access_file:
            try:
                tokens = Tokens(Path(wanted.access_file))
            except TokensFileError as error:
                found = Problem("gateway.access_file", str(error), f'"{wanted.access_file}"', hint=error.hint or "")
                problems.append(found)
        if wanted.tls_certificate:
            try:
                tls = tls_context(wanted.tls_certificate, wanted.tls_key)
            except OSError as error:
                why = (error.reason if isinstance(error, ssl.SSLError) else error.strerror) or str(error)
                hint = "name two PEM files that this user may read: the certificate, and its key, unencrypted"
                message = f"cannot be used with its key: {why}"
                found = Problem("gateway.tls_certificate", message, f'"{wanted.tls_certificate}"', hint=hint)
                problems.append(found)
        if problems:
            raise SettingsError(problems)
        self.publisher = Publisher(
            lambda: BulkSender(
                kafka.bootstrap_servers,
                kafka.topics.heartbeats,
                properties=kafka.client,
                linger_ms=_LINGER_MS,
                timeout_ms=wanted.timeout_ms,
                records_max=wanted.waiting_records_max,
            ),
            records_max=wanted.waiting_records_max,
        )
        proxies = parse_networks(wanted.trusted_proxies)
        app = GatewayApp(
            self.publisher,
            hosts=hosts_for(wanted.host, wanted.allow_hosts),
            sessions=Sessions(rules.group_min_session_timeout_ms, rules.group_max_session_timeout_ms),
            bounds=Bounds(wanted.body_bytes_max, wanted.records_per_request_max, wanted.timeout_ms / 1000),
            pace=Pace(wanted.records_per_second_max),
            tokens=tokens,
            proxies=proxies,
        )
        self._server = DashboardServer(
            app,
            host=wanted.host,
            port=wanted.port,
            tls=tls,
            limits=Limits(connections=wanted.connections_max, per_address=wanted.connections_per_address_max),
            exempt=proxies,
            what="gateway",
        )
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Start it.

        Raises:
            DashboardServerError: the address cannot be listened on.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.publisher)
            stack.enter_context(self._server)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        """The address that workers beat at, without a slash at the end."""
        return self._server.url.rstrip("/")

    @property
    def running(self) -> bool:
        """Whether it still serves."""
        return self._server.running
