"""Where a demo takes place: its broker, checkpoint, dashboard and gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heartwheel.settings import DashboardSettings, GatewaySettings, Settings

if TYPE_CHECKING:
    from heartwheel.front.demo.folder import DemoFolder
    from heartwheel.readers.dashboard.dashboard import Dashboard
    from heartwheel.sources.gateway.gateway import Gateway


def dashboard_of(settings: Settings, gateway_url: str = "") -> Dashboard:
    """Return a demo's dashboard: on any free port if its usual one is taken, as a demo must not fail for that."""
    from heartwheel.readers.dashboard.dashboard import Dashboard
    from heartwheel.readers.http_server.server import is_free

    wanted = settings.dashboard.model_copy(update={"gateway_url": gateway_url})
    if wanted.port == DashboardSettings().port and not is_free(wanted.host, wanted.port):
        wanted = wanted.model_copy(update={"port": 0})
    settings = settings.model_copy(update={"dashboard": wanted})
    # A canary that beats before the job lives would give it a backlog to read, and its first batch takes longest.
    return Dashboard(settings, hold_canary=True)


def check_port(settings: Settings) -> None:
    """Raise if the dashboard's port was chosen by a person and is taken: the broker alone takes many seconds to start.

    Raises:
        HttpServerError: it is taken.
    """
    from heartwheel.readers.http_server.server import check_free

    if settings.dashboard.port != DashboardSettings().port:
        check_free(settings.dashboard.host, settings.dashboard.port)


def demo_gateway(settings: Settings) -> Gateway:
    """Return a demo's gateway: for this machine alone, and on any free port if its usual one is taken."""
    from heartwheel.readers.http_server.server import is_free
    from heartwheel.sources.gateway.gateway import Gateway

    port = GatewaySettings().port
    wanted = GatewaySettings(port=port if is_free("127.0.0.1", port) else 0)
    return Gateway(settings.model_copy(update={"gateway": wanted}))


def placed(settings: Settings, bootstrap: str, place: DemoFolder) -> Settings:
    """Return the settings for the demo's own broker, which asks for no login, and for its checkpoint."""
    kafka = settings.kafka.model_copy(update={"bootstrap_servers": bootstrap, "client": {}})
    checkpoint = settings.checkpoint.model_copy(update={"location": str(place.checkpoint)})
    return settings.model_copy(update={"kafka": kafka, "checkpoint": checkpoint})
