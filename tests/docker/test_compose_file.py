"""The compose file fits the project: commands and files that exist, ports that meet. It takes no Docker to see."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from heartwheel.front.cli.app import app
from heartwheel.settings import FIELDS

DOCKER = Path(__file__).parents[2] / "docker"
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {
    name: shlex.split(service["command"])
    for name, service in SERVICES.items()
    if service["image"].startswith("heartwheel-") and "entrypoint" not in service
}
"""The arguments of each service that runs `heartwheel`."""


def _option(name: str, flag: str) -> str:
    words = OURS[name]
    return words[words.index(flag) + 1]


def _set(name: str) -> dict[str, str]:
    words = OURS[name]
    flags = [words[at + 1] for at, word in enumerate(words) if word == "--set"]
    return dict(flag.split("=", 1) for flag in flags)


@pytest.mark.parametrize("name", OURS)
def test_commands_exist(name: str) -> None:
    """Every service's command, its flags and the settings it names are those of this release."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    command, *arguments = OURS[name]
    commands[command].make_context(command, list(arguments)).close()
    tables = ("spark.conf.", "kafka.client.")
    assert [key for key in _set(name) if key not in FIELDS and not key.startswith(tables)] == []


def test_images_are_built_from_their_targets() -> None:
    """The two images are built once each, and those that need no JVM run the image that has none."""
    built = {service["image"]: service["build"]["target"] for service in SERVICES.values() if "build" in service}
    assert built == {"heartwheel-watch": "watch", "heartwheel-job": "job"}
    images = {name: SERVICES[name]["image"] for name in OURS}
    assert {name for name, image in images.items() if image == "heartwheel-watch"} == {
        *("topics", "dashboard", "gateway", "notifier")
    }
    assert set(images.values()) == built.keys()


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_mounted_and_waited_for_is_there(name: str) -> None:
    """Folders, files and volumes that a service mounts exist, and so do the services that it waits for."""
    service = SERVICES[name]
    for mount in service.get("volumes", ()):
        source = mount.partition(":")[0]
        assert (DOCKER / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
    assert set(service.get("depends_on", ())) <= set(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_published_on_this_machine_alone(name: str) -> None:
    """Nothing here asks for a login, so nothing listens for others."""
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", ()))


def test_prometheus_reads_what_is_served() -> None:
    """The job and the dashboard listen for others in the network where Prometheus looks, under names they go by."""
    config = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    targets = {
        target for job in config["scrape_configs"] for each in job["static_configs"] for target in each["targets"]
    }
    settings = _set("job")
    assert targets == {f"job:{settings['metrics.port']}", f"dashboard:{_option('dashboard', '--port')}"}
    assert settings["metrics.host"] == _option("dashboard", "--host") == "0.0.0.0"  # noqa: S104 - inside of a container
    assert "dashboard" in OURS["dashboard"][1:]


def test_grafana_finds_prometheus_and_its_dashboard() -> None:
    """The data source is the service of that name, and panels name it; the dashboard is where Grafana looks for it."""
    folder = DOCKER / "grafana"
    sources = yaml.safe_load((folder / "provisioning" / "datasources" / "prometheus.yml").read_text(encoding="utf-8"))
    (source,) = sources["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in SERVICES
    board = json.loads((folder / "dashboards" / "heartwheel.json").read_text(encoding="utf-8"))
    used = {target["datasource"]["uid"] for panel in board["panels"] for target in panel.get("targets", ())}
    assert used == {source["uid"]}
    providers = yaml.safe_load((folder / "provisioning" / "dashboards" / "heartwheel.yml").read_text(encoding="utf-8"))
    path = providers["providers"][0]["options"]["path"]
    mounts = dict(volume.split(":")[:2] for volume in SERVICES["grafana"]["volumes"])
    assert mounts["./grafana/dashboards"] == path
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{path}/heartwheel.json"


def test_the_notifier_gets_its_address_from_outside() -> None:
    """Who starts it names the address; where it keeps what it must not forget outlives the container."""
    notifier = SERVICES["notifier"]
    assert notifier["environment"] == {"HEARTWHEEL_NOTIFY__URL": "${HEARTWHEEL_NOTIFY__URL:-}"}
    assert _option("notifier", "--state-dir").startswith(notifier["volumes"][0].partition(":")[2])


def test_compose_itself_reads_the_file() -> None:
    """Where Compose v1 is installed it accepts the file, with every profile; it needs no daemon for that."""
    compose = shutil.which("docker-compose")
    if compose is None:
        pytest.skip("docker-compose is not installed")
    profiles = ("monitoring", "notify", "cluster")
    arguments = [*(word for name in profiles for word in ("--profile", name)), "config", "--quiet"]
    command = [compose, "-f", str(DOCKER / "compose.yaml"), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
