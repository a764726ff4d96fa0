"""The dashboard as an ASGI application: the page, the API, the stream, the probes and the metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from heartwheel.base.wall_clock import wall_ms
from heartwheel.readers.dashboard.api import ENDPOINTS, STREAM
from heartwheel.readers.dashboard.deps import Deps
from heartwheel.readers.dashboard.docs_page import docs_page, troubleshooting_page
from heartwheel.readers.dashboard.hub import LISTENERS_MAX, Hub
from heartwheel.readers.dashboard.index import ACCOUNT, page_text
from heartwheel.readers.dashboard.login.gate import CLIENT, LOGIN, LOGOUT, Gate
from heartwheel.readers.dashboard.login.login import Client, Login
from heartwheel.readers.dashboard.login.page import account
from heartwheel.readers.dashboard.openapi import openapi
from heartwheel.readers.dashboard.params import read
from heartwheel.readers.dashboard.queries import StreamQuery
from heartwheel.readers.dashboard.stream import Listener
from heartwheel.readers.http_server.base_path import BasePath
from heartwheel.readers.http_server.guard import Guard
from heartwheel.readers.http_server.hosts import hosts_for
from heartwheel.readers.http_server.paths import Paths, raw_path
from heartwheel.readers.http_server.problems import JSON, RequestError
from heartwheel.readers.live.canary_figures import CanaryFigures
from heartwheel.readers.live.now import now_of
from heartwheel.readers.live.picture import Picture
from heartwheel.settings import DashboardSettings, Settings

if TYPE_CHECKING:
    from heartwheel.readers.live.history import HistoryReader

PAGES: Final = (
    "/",
    "/expired",
    "/groups",
    "/timeline",
    "/rebalances",
    "/at-risk",
    "/wheel",
    "/groups/{rest:path}",
    "/members/{rest:path}",
)
"""Addresses that are views of the one page."""

SCRAPES_MAX: Final = 2
"""Most concurrent requests for the metrics."""

WriteMetrics = Callable[[str], tuple[bytes, str]]
"""Writes the metrics in a format that Prometheus accepts; returns the text and its content type."""

_NO_STORE: Final = {"cache-control": "no-store"}


def create_app(
    picture: Picture,
    settings: Settings,
    *,
    history: HistoryReader | None = None,
    canary: Callable[[], CanaryFigures] | None = None,
    metrics: WriteMetrics | None = None,
    login: Login | None = None,
    now_ms: Callable[[], int] = wall_ms,
) -> Starlette:
    """Return the application.

    Args:
        picture: what is shown; the caller feeds it.
        history: reads heartbeats on demand; with `None` none are shown.
        canary: returns the canary's figures; `None` if none runs.
        metrics: writes the metrics, such as `Metrics.text`; with `None` none are served.
        login: decides who has access; with `None` it is made from the settings.

    Returns:
        The application; `app.state.hub` is its `Hub`.
    """
    deps = Deps(picture, settings, history=history, canary=canary, now_ms=now_ms)
    hub = Hub(picture, epoch=f"{now_ms():x}", view=deps.view, now_ms=now_ms)
    asked = settings.dashboard
    login = login or Login(asked, now_ms)
    base = asked.base_path

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        beating = asyncio.create_task(hub.run())
        yield
        hub.close()
        beating.cancel()

    page = _page_of(picture, asked)
    app = Starlette(
        routes=[
            Route(STREAM, _stream_of(deps, hub)),
            Route("/api/{rest:path}", _answers_of(deps)),
            *_plain_routes(deps, metrics, base),
            Mount("/page", _Assets(packages=[("heartwheel.readers.dashboard", "page")]), name="assets"),
            Route("/", _home_of(deps, asked)),
            *(Route(path, page) for path in PAGES),
        ],
        exception_handlers={RequestError: _refused, 404: _not_found(page), 405: _not_found(page)},
        lifespan=lifespan,
    )
    app.state.hub = hub
    # Middleware that is added last runs first.
    app.add_middleware(Gate, login=login, base_path=base)
    forms = (LOGIN, LOGOUT) if login.users is not None else ()
    app.add_middleware(Guard, hosts=hosts_for(asked.host, asked.allow_hosts), forms=forms)
    app.add_middleware(BasePath, base_path=base)
    return app


class _Assets(StaticFiles):
    """The page's files, which browsers revalidate each time: they change with the release, not with their names."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


def _answers_of(deps: Deps) -> Callable[[Request], Any]:
    paths = Paths(ENDPOINTS)

    async def answer(request: Request) -> Response:
        found = paths.find(request.scope)
        if found is None:
            raise _unknown(request.scope)
        endpoint, in_path = found
        query = read(endpoint.query, request.query_params.multi_items(), in_path)
        body = await run_in_threadpool(lambda: _encoded(endpoint.answer(deps, query)))
        return body if isinstance(body, Response) else Response(body, headers=_NO_STORE, media_type=JSON)

    return answer


def _encoded(body: Any) -> Response | bytes:
    return body if isinstance(body, Response) else msgspec.json.encode(body)


def _stream_of(deps: Deps, hub: Hub) -> Callable[[Request], Any]:
    async def stream(request: Request) -> Response:
        query = read(StreamQuery, request.query_params.multi_items(), {})
        headers = _NO_STORE | {"x-accel-buffering": "no"}
        media = "text/event-stream"
        if request.method == "HEAD":
            return Response(headers=headers, media_type=media)
        if hub.listeners >= LISTENERS_MAX:
            hint = "close some pages, or start another dashboard"
            raise RequestError(503, f"{LISTENERS_MAX} listen already", hint, retry_s=10)
        listener = Listener(
            hub,
            deps.picture,
            canary=query.canary,
            shard=query.wheel,
            last_id=request.headers.get("last-event-id"),
            now_ms=deps.now_ms(),
        )
        return StreamingResponse(_while_valid(request, listener.events()), headers=headers, media_type=media)

    return stream


async def _while_valid(request: Request, events: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """Yield events while the client's access is valid: a session may end while its stream is open."""
    client: Client | None = request.scope.get(CLIENT)
    async with contextlib.aclosing(events):
        async for piece in events:
            if client is not None and not client.is_valid():
                return
            yield piece


def _plain_routes(deps: Deps, metrics: WriteMetrics | None, base: str) -> list[Route]:
    scrapes = cache(lambda: CapacityLimiter(SCRAPES_MAX))  # created in the server's event loop

    async def healthz(_request: Request) -> Response:
        return Response(b'{"status":"alive"}', headers=_NO_STORE, media_type=JSON)

    async def readyz(_request: Request) -> Response:
        health = now_of(deps.picture, deps.view(), now_ms=deps.now_ms()).health
        status = 200 if health.ready else 503
        return Response(msgspec.json.encode(health), status, _NO_STORE, JSON)

    async def figures(request: Request) -> Response:
        if metrics is None:
            raise RequestError(404, "this dashboard serves no metrics", "start it with heartwheel dashboard")
        # Threads of their own: those that answer the API may all be busy.
        body, media = await to_thread.run_sync(metrics, request.headers.get("accept", "text/plain"), limiter=scrapes())
        return Response(body, headers=_NO_STORE | {"content-type": media})

    async def description(_request: Request) -> Response:
        return Response(msgspec.json.encode(openapi(base)), media_type=JSON)

    async def docs(_request: Request) -> Response:
        return HTMLResponse(docs_page(base))

    async def troubleshooting(_request: Request) -> Response:
        return HTMLResponse(troubleshooting_page(base))

    return [
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/metrics", figures),
        Route("/openapi.json", description),
        Route("/docs", docs),
        Route("/troubleshooting", troubleshooting),
    ]


def _page_of(picture: Picture, asked: DashboardSettings) -> Callable[[Request], Any]:
    base = asked.base_path
    ended, followed = (
        page_text(base, asked.gateway_url, from_log=bool(picture.log), follows=follows) for follows in (False, True)
    )

    async def page(request: Request) -> Response:
        text = followed if picture.lanes is not None and picture.lanes.follows else ended
        client: Client | None = request.scope.get(CLIENT)
        who = "" if client is None else account(base, client.name, may_leave=client.how == "session")
        return HTMLResponse(text.replace(ACCOUNT, who), headers={"cache-control": "no-cache"})

    return page


def _home_of(deps: Deps, asked: DashboardSettings) -> Callable[[Request], Any]:
    page = _page_of(deps.picture, asked)

    async def home(request: Request) -> Response:
        # Without an engine, page Now would be empty. The address is absolute: a browser at the base path without its
        # slash would resolve "timeline" next to it.
        first = f"{asked.base_path}/timeline"
        return RedirectResponse(first, headers=_NO_STORE) if deps.picture.log else await page(request)

    return home


def _unknown(scope: Scope) -> RequestError:
    return RequestError(404, f"nothing is at {raw_path(scope)[:100]}", "/docs lists what there is")


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)  # noqa: S101 - Starlette calls it only for that class
    return error.response()


def _not_found(page: Callable[[Request], Any]) -> Callable[[Request, Exception], Any]:
    async def answer(request: Request, _error: Exception) -> Response:
        asks_for_page = "text/html" in request.headers.get("accept", "") and request.method in {"GET", "HEAD"}
        if not asks_for_page or request.url.path.startswith(("/api/", "/page/")):
            return _unknown(request.scope).response()
        # A person has mistyped an address: the page shows that, and links to the other pages.
        shown: Response = await page(request)
        shown.status_code = 404
        return shown

    return answer
