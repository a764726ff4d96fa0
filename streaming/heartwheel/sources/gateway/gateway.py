"""The gateway as a whole: a server for workers, and a publisher to Kafka."""

from __future__ import annotations

import contextlib
import ssl
from pathlib import Path
from typing import Final

from heartwheel.base.addresses import parse_networks
from heartwheel.kafka.bulk import BulkSender
from heartwheel.readers.http_server.connection import Limits
from heartwheel.readers.http_server.hosts import hosts_for
from heartwheel.readers.http_server.served import Served
from heartwheel.readers.http_server.server import HttpServer
from heartwheel.readers.http_server.tls import tls_context
from heartwheel.settings import SettingProblem, Settings, SettingsError
from heartwheel.settings.servers import GatewaySettings
from heartwheel.sources.gateway.app import GatewayApp, RequestBounds
from heartwheel.sources.gateway.pace import ClientRate
from heartwheel.sources.gateway.publisher import Publisher
from heartwheel.sources.gateway.requests import SessionLimits
from heartwheel.sources.gateway.tokens import Tokens, TokensFileError

_LINGER_MS: Final = 1


class Gateway(Served):
    """The gateway, in threads of its own; it also starts while Kafka is not reachable.

    Raises:
        SettingsError: files that the settings name cannot be used.
    """

    def __init__(self, settings: Settings) -> None:
        wanted, kafka, rules = settings.gateway, settings.kafka, settings.coordinator
        tokens, tls = _opened_files(wanted)
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
            sessions=SessionLimits(rules.group_min_session_timeout_ms, rules.presence_max_session_timeout_ms),
            bounds=RequestBounds(wanted.body_bytes_max, wanted.records_per_request_max, wanted.timeout_ms / 1000),
            pace=ClientRate(wanted.records_per_second_max),
            tokens=tokens,
            proxies=proxies,
        )
        super().__init__(
            HttpServer(
                app,
                host=wanted.host,
                port=wanted.port,
                tls=tls,
                limits=Limits(
                    connections=wanted.connections_max,
                    per_address=wanted.connections_per_address_max,
                    body_bytes=wanted.bodies_bytes_max,
                ),
                exempt=proxies,
                what="gateway",
            )
        )

    def _begin(self, stack: contextlib.ExitStack) -> None:
        stack.enter_context(self.publisher)
        super()._begin(stack)

    @property
    def url(self) -> str:
        """The base URL for workers, without a slash at the end."""
        return super().url.rstrip("/")


def _opened_files(wanted: GatewaySettings) -> tuple[Tokens | None, ssl.SSLContext | None]:
    """Read the tokens and the certificate, where they are configured.

    Raises:
        SettingsError: with all that cannot be used.
    """
    problems = list[SettingProblem]()
    tokens, tls = None, None
    if wanted.access_file:
        try:
            tokens = Tokens(Path(wanted.access_file))
        except TokensFileError as error:
            value, hint = f'"{wanted.access_file}"', error.hint or ""
            problems.append(SettingProblem("gateway.access_file", str(error), value, hint=hint))
    if wanted.tls_certificate:
        try:
            tls = tls_context(wanted.tls_certificate, wanted.tls_key)
        except OSError as error:
            why = (error.reason if isinstance(error, ssl.SSLError) else error.strerror) or str(error)
            hint = "name two PEM files that this user may read: the certificate, and its key, unencrypted"
            message = f"cannot be used with its key: {why}"
            value = f'"{wanted.tls_certificate}"'
            problems.append(SettingProblem("gateway.tls_certificate", message, value, hint=hint))
    if problems:
        raise SettingsError(problems)
    return tokens, tls
