"""The dashboard's server, according to the section `[dashboard]`: login, TLS, base path, limits and proxies."""

from __future__ import annotations

from typing import Any

from heartwheel.base.wall_clock import wall_ms
from heartwheel.readers.dashboard.app import create_app
from heartwheel.readers.dashboard.files import read_files
from heartwheel.readers.http_server.connection import Limits
from heartwheel.readers.http_server.server import HttpServer
from heartwheel.readers.live.picture import Picture
from heartwheel.settings import Settings


def server_of(picture: Picture, settings: Settings, **options: Any) -> HttpServer:
    """Return the server of a picture.

    Args:
        picture: what is shown; the caller feeds it.
        options: those of `create_app`, such as `history`.

    Raises:
        SettingsError: files that the settings name cannot be used.
    """
    wanted = settings.dashboard
    files = read_files(settings, wall_ms)
    app = create_app(picture, settings, login=files.login, **options)
    server = HttpServer(
        app,
        host=wanted.host,
        port=wanted.port,
        exempt=files.login.proxies,
        tls=files.tls,
        base_path=wanted.base_path,
        limits=Limits(connections=wanted.connections_max, per_address=wanted.connections_per_address_max),
    )
    server.closing = app.state.hub.close
    return server
