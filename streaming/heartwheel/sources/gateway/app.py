"""The gateway's ASGI application: it checks requests and access, and answers with what Kafka acknowledged."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from starlette.types import Receive, Scope, Send

from heartwheel.base.phrases import count
from heartwheel.base.rare_log import RareLog
from heartwheel.readers.http_server.bodies import read_body
from heartwheel.readers.http_server.connections import Network
from heartwheel.readers.http_server.guard import PATH_BYTES_MAX, QUERY_BYTES_MAX
from heartwheel.readers.http_server.hosts import Hosts, host_of
from heartwheel.readers.http_server.peers import client_of, header
from heartwheel.readers.http_server.problems import Problem, RequestError
from heartwheel.sources.gateway.pace import ClientRate
from heartwheel.sources.gateway.publisher import Publisher
from heartwheel.sources.gateway.requests import BeatRecord, SessionLimits, record_of_path, records_of_body
from heartwheel.sources.gateway.tokens import Tokens, may

BODY_S: Final = 10.0
"""How long a body may take to come, seconds."""

REFUSED_LOG_S: Final = 10.0
"""Shortest time between two log lines about wrong tokens, seconds."""

_RETRY_S: Final = 1
_ALLOWED: Final = frozenset({"GET", "POST"})
_OF_BROWSERS: Final = frozenset({b"referer", b"cookie"})
_JSON: Final = b"application/json"
_TEXT: Final = b"text/plain; version=0.0.4; charset=utf-8"

_log = logging.getLogger(__name__)


class Accepted(msgspec.Struct, frozen=True):
    """The answer to a request whose records Kafka has all acknowledged."""

    accepted: int


class RequestBounds(NamedTuple):
    """Limits of one request."""

    body_bytes: int
    records: int
    timeout_s: float


class GatewayApp:
    """The gateway's ASGI application.

    Args:
        publisher: sends the records.
        sessions: session timeouts that the engine accepts.
        pace: limits the rate of each client.
        tokens: who may beat for which group; `None` allows everyone.
        proxies: networks of proxies whose forwarding headers are trusted.
    """

    def __init__(
        self,
        publisher: Publisher,
        *,
        hosts: Hosts,
        sessions: SessionLimits,
        bounds: RequestBounds,
        pace: ClientRate,
        tokens: Tokens | None,
        proxies: Collection[Network] = (),
    ) -> None:
        self._publisher, self._hosts, self._sessions = publisher, hosts, sessions
        self._bounds, self._pace, self._tokens, self._proxies = bounds, pace, tokens, proxies
        self._refused = RareLog(_log, REFUSED_LOG_S)
        self._registry = CollectorRegistry()
        self._records = Counter(
            "heartwheel_gateway_records",
            "Records by outcome: accepted, or refused to a worker that asked for Kafka's answer.",
            ["outcome"],
            registry=self._registry,
        )
        self._requests = Counter(
            "heartwheel_gateway_requests", "Requests by HTTP's status.", ["status"], registry=self._registry
        )
        Gauge(
            "heartwheel_gateway_waiting_records", "Records that wait for Kafka's answer.", registry=self._registry
        ).set_function(lambda: publisher.records)
        Gauge(
            "heartwheel_gateway_connected", "Whether Kafka has taken the last record.", registry=self._registry
        ).set_function(lambda: publisher.connected)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        if scope["type"] != "http":
            return
        status, body, kind, extra = await self._answered(scope, receive)
        self._requests.labels(str(status)).inc()
        headers = [
            (b"content-type", kind),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            *extra,
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _answered(
        self, scope: Scope, receive: Receive
    ) -> tuple[int, bytes, bytes, Sequence[tuple[bytes, bytes]]]:
        try:
            match scope["path"]:
                case "/healthz":
                    return 200, b"alive\n", _TEXT, ()
                case "/readyz":
                    ready = self._publisher.connected
                    return (200, b"ready\n", _TEXT, ()) if ready else (503, b"Kafka does not answer\n", _TEXT, ())
                case "/metrics":
                    return 200, generate_latest(self._registry), _TEXT, ()
            accepted = await self._take(scope, receive)
            return 202, msgspec.json.encode(Accepted(accepted)) + b"\n", _JSON, ()
        except RequestError as error:
            extra = [] if error.retry_s is None else [(b"retry-after", b"%d" % error.retry_s)]
            if error.status == 401:
                extra.append((b"www-authenticate", b"Bearer"))
            if error.status in {408, 413}:
                extra.append((b"connection", b"close"))
            words = msgspec.json.encode(Problem(error=error.error, hint=error.hint)) + b"\n"
            return error.status, words, _JSON, extra
        except Exception:  # noqa: BLE001 - there is no Starlette that would answer
            _log.exception("the gateway could not answer")
            words = msgspec.json.encode(Problem(error="the gateway has a bug", hint="its log tells more")) + b"\n"
            return 500, words, _JSON, ()

    async def _take(self, scope: Scope, receive: Receive) -> int:
        groups, client = self._groups_of(scope), client_of(scope, self._proxies)
        path = scope.get("raw_path") or scope["path"].encode()
        if path == b"/beat":
            if scope["method"] != "POST":
                raise RequestError(405, "POST a body here", "or beat at /beat/GROUP/MEMBER")
            lines = "ndjson" in header(scope, "content-type")
            longest = self._bounds.body_bytes
            hint = "send less at once, or raise gateway.body_bytes_max"
            body = await read_body(scope, receive, what="body", bytes_max=longest, timeout_s=BODY_S, hint=hint)
            records = records_of_body(body, self._sessions, lines=lines, records_max=self._bounds.records)
        else:
            records = [record_of_path(path, scope["query_string"], self._sessions, host=client)]
        if groups is not None:
            _allow(groups, records)
        wait_s = self._pace.take(client, len(records), time.monotonic())
        if wait_s:
            self._records.labels("too_fast").inc(len(records))
            hint = "send less, or raise gateway.records_per_second_max"
            raise RequestError(429, "this address sends too much", hint, retry_s=int(wait_s) + 1)
        return await self._publish(records)

    async def _publish(self, records: Sequence[BeatRecord]) -> int:
        try:
            batch = await self._publisher.publish(records, self._bounds.timeout_s)
        except TimeoutError:
            self._records.labels("unknown").inc(len(records))
            hint = "send it again; some of it may have arrived"
            raise RequestError(503, "Kafka did not answer in time", hint, retry_s=_RETRY_S) from None
        if batch is None:
            self._records.labels("no_room").inc(len(records))
            hint = "nothing was sent; send it again"
            raise RequestError(503, "too many records wait for Kafka", hint, retry_s=_RETRY_S)
        self._records.labels("accepted").inc(batch.acknowledged)
        if batch.unknown:
            self._records.labels("unknown").inc(batch.unknown)
            error = f"Kafka acknowledged {batch.acknowledged:,} of {count(len(records), 'record')}"
            raise RequestError(503, error, "send all of it again", retry_s=_RETRY_S)
        return batch.acknowledged

    def _groups_of(self, scope: Scope) -> frozenset[str] | None:
        """Refuse requests that may not pass, and return the groups that the token allows; `None` without tokens."""
        if scope["method"] not in _ALLOWED:
            raise RequestError(405, f"method {scope['method'][:20]} is not allowed", "use POST, or GET")
        if len(scope.get("raw_path") or scope["path"]) > PATH_BYTES_MAX or len(scope["query_string"]) > QUERY_BYTES_MAX:
            raise RequestError(414, "the address is too long", "ids have at most 1024 bytes")
        names = {name for name, _ in scope["headers"]}
        if b"origin" in names or (b"sec-fetch-site" in names and header(scope, "sec-fetch-site") != "none"):
            raise RequestError(403, "pages in a browser may not beat", "a foreign page could beat for a dead worker")
        # Over plain HTTP, and in some browsers always, a request for an image on a foreign page has neither header.
        languages = header(scope, "accept-language")
        if scope["method"] == "GET" and self._tokens is None and (names & _OF_BROWSERS or languages not in {"", "*"}):
            raise RequestError(
                403, "pages in a browser may not beat", "use POST, or ask for tokens: gateway.access_file"
            )
        name = host_of(scope)
        if not self._hosts.allows(name):
            hint = f"start the gateway with --allow-host {name}" if name else "send a Host header"
            raise RequestError(421, "this gateway does not answer to the host name of the request", hint)
        if self._tokens is None:
            return None
        scheme, _, token = header(scope, "authorization").partition(" ")
        groups = self._tokens.groups_of(token.strip()) if scheme.lower() == "bearer" else None
        if groups is None:
            client = client_of(scope, self._proxies)
            self._refused.warning("%s: token missing or unknown (since the last line: %d)", client)
            raise RequestError(
                401, "the token is missing or unknown", "send Authorization: Bearer TOKEN, of gateway.access_file"
            )
        return groups


def _allow(groups: frozenset[str], records: Sequence[BeatRecord]) -> None:
    for group in {record.group_id for record in records}:
        if not may(groups, group):
            hint = "nothing was sent; gateway.access_file says which groups a token is for"
            raise RequestError(403, f"the token is not for group {group[:100]!r}", hint)
