"""The server of `heartwheel explain --page`: the one of the dashboard, with all that the section `[dashboard]` asks for."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from heartwheel.front.cli.app import run
from heartwheel.settings import Settings, SettingsError
from heartwheel.sources.explain.page import LogPage
from support.broker_logs import REAL
from support.certificates import Authority

LOG = str(REAL / "server.log")
KNOWN = {"authorization": "Bearer a-token-of-sixteen-and-more"}


@contextmanager
def page(**dashboard: Any) -> Iterator[LogPage]:
    """Serve a page with settings of the section `[dashboard]`."""
    with LogPage(Settings.model_validate({"dashboard": {"port": 0, **dashboard}}), [LOG]) as shown:
        yield shown


def test_the_page_speaks_tls(tmp_path: Path) -> None:
    """With a certificate it speaks TLS, under the base path, and asks for the token."""
    authority = Authority(tmp_path, "authority")
    key, certificate, _ = authority.issue("page")
    context = ssl.create_default_context(cafile=str(authority.certificate))
    files = {"tls_certificate": str(certificate), "tls_key": str(key)}
    with page(**files, token=KNOWN["authorization"].split()[1], base_path="/logs") as shown:
        assert shown.url.startswith("https://")
        assert shown.url.endswith("/logs/")
        with httpx.Client(verify=context) as client:
            assert client.get(shown.url + "api/groups").status_code == 401
            assert client.get(shown.url + "api/groups", headers=KNOWN).status_code == 200


def test_files_that_are_not_there_are_noticed() -> None:
    """A certificate that cannot be read ends it before anything listens."""
    with pytest.raises(SettingsError) as caught, page(tls_certificate="/no.pem", tls_key="/no.key"):
        pass
    assert [problem.path for problem in caught.value.problems] == ["dashboard.tls_certificate"]


def test_the_page_has_the_limits_of_the_dashboard() -> None:
    """Caps of connections and proxies that are exempt are those of the settings."""
    with page(connections_max=9, connections_per_address_max=5, trusted_proxies="192.0.2.0/24") as shown:
        limits = shown._server.connections.limits
        assert (limits.connections, limits.per_address) == (9, 5)
        assert shown._server.connections._is_exempt("192.0.2.1")


@pytest.mark.parametrize("ending", ["", "/"])
def test_its_first_page_lies_under_the_base_path(ending: str) -> None:
    """Asked for with or without its slash, the base path leads to a page below it."""
    with page(base_path="/heartwheel") as shown:
        answer = httpx.get(shown.url.rstrip("/") + ending)
        assert answer.status_code == 307
        assert answer.headers["location"] == "/heartwheel/timeline"


def test_others_need_a_login_or_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    """For others it is refused with a hint whose option it has; with the option and a wrong key it comes past that."""
    words = ["explain", "--page", "--host", "192.0.2.1", "--port", "0", LOG]
    assert run(words) == 2
    assert "--insecure" in capsys.readouterr().err
    files = ["--set", "dashboard.tls_certificate=/no.pem", "--set", "dashboard.tls_key=/no.key"]
    assert run([*words, "--insecure", *files]) == 2
    told = capsys.readouterr().err
    assert "dashboard.tls_certificate" in told
    assert "dashboard.host" not in told
