"""One job on a broker with TLS and SASL/SCRAM, client certificates included: it works, and no secret stays behind."""

from __future__ import annotations

import json
import os
import secrets
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from heartwheel.front.cli.app import run
from heartwheel.front.cli.run import spark_log_file
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.node_process import free_port
from heartwheel.kafka.broker.node_security import NodeSecurity
from heartwheel.kafka.tls_login import FirmManager, refusal_of
from heartwheel.settings import load_settings
from heartwheel.sources.gateway.gateway import Gateway
from support.certificates import Authority
from support.job import Topics, beats_of, running, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

PASSWORD = f'pass"word\\{secrets.token_hex(8)}'
MARKS = (PASSWORD.rpartition("\\")[2], secrets.token_hex(8))
"""Parts of the password of Kafka and of one of Spark that nothing else on this machine contains."""


class Secured(NamedTuple):
    """Hold a broker that asks for a certificate and a password, and the properties with which it is content."""

    broker: EmbeddedKafka
    properties: dict[str, str]
    folder: Path

    def flags(self, **changes: str) -> list[str]:
        """Give the properties as flags, all but the password."""
        properties = {name: value for name, value in self.properties.items() if name != "sasl.password"}
        settings = properties | {name.replace("_", "."): value for name, value in changes.items()}
        return [f"kafka.client.{name}={value}" for name, value in settings.items()]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Run the broker; the environment holds the secrets, as it should where the job runs."""
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder, "authority")
    _, _, both = authority.issue("broker")
    key, certificate, _ = authority.issue("client")
    security = NodeSecurity(
        key_and_certificate=both,
        trusted=authority.certificate,
        users={"heart": PASSWORD},
        client_certificates=True,
    )
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "heart",
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(authority.certificate),
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(key),
    }
    with pytest.MonkeyPatch.context() as patch, EmbeddedKafka(security=security) as broker:
        patch.setenv("HEARTWHEEL_KAFKA__CLIENT__SASL_PASSWORD", PASSWORD)
        patch.setenv("HEARTWHEEL_SPARK__CONF", json.dumps({"spark.ssl.keyPassword": MARKS[1]}))
        yield Secured(broker, properties, folder)


def test_the_job_works_over_tls_and_scram_and_leaves_no_secret(
    secured: Secured, capsys: pytest.CaptureFixture[str]
) -> None:
    """Topics, members, job and readers get through; no file, log, topic, page or command line has a secret."""
    topics = Topics(secured.broker.bootstrap, lambda name: f"{name}-secured", properties=secured.properties)
    ui = free_port()
    pages = ("spark.conf.spark.ui.enabled=true", f"spark.conf.spark.ui.port={ui}")
    with running(topics, secured.folder / "checkpoint", *secured.flags(), *pages) as job:
        job.until_live()
        topics.send(beats_of("orders", 2))
        job.wait_for(lambda: topics.expired() == ["orders-m0", "orders-m1"], "two expirations over TLS")
        assert marked(_command_lines()) == []
        assert marked(_pages_of_spark(ui)) == []
        assert job.stop() == 0
    assert marked({"job log": job.log.encode(), "spark log": spark_log_file().read_bytes()}) == []
    files = {str(file): file.read_bytes() for file in (secured.folder / "checkpoint").rglob("*") if file.is_file()}
    assert len(files) > 5
    assert marked(files) == []
    records = {
        f"{name} {record.offset}": (record.value or b"") + b"".join(header for _, header in record.headers)
        for name in topics.names
        for record in topics.read(name)
    }
    assert marked(records) == []
    for flags in ([], ["--json"]):
        assert run(["config", *flags, *_set(secured.flags())]) == 0
    out = capsys.readouterr()
    assert "sasl.password" in out.out
    assert marked({"config": (out.out + out.err).encode()}) == []


@pytest.mark.parametrize(
    ("trouble", "words", "hint"),
    [
        ("password", "does not accept the login: Authentication failed", "sasl.password"),
        ("authority", "CERTIFICATE_VERIFY_FAILED", "ssl.ca.location"),
        ("certificate", "certificate", "ssl.certificate.location"),
        ("mechanism", "does not accept the login", "sasl.mechanism"),
    ],
)
def test_wrong_login_is_tried_once(
    trouble: str,
    words: str,
    hint: str,
    secured: Secured,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What the broker refuses for good is one error with a hint, exit code 1, after one try and without a traceback."""
    tries: list[object] = []
    note = FirmManager._note

    def noted(self: FirmManager, node_id: object, error: object) -> None:
        tries.extend([error] if refusal_of(error) else [])
        note(self, node_id, error)

    monkeypatch.setattr(FirmManager, "_note", noted)
    flags = secured.flags()
    if trouble == "password":
        monkeypatch.setenv("HEARTWHEEL_KAFKA__CLIENT__SASL_PASSWORD", MARKS[1])
    if trouble == "authority":
        flags = secured.flags(ssl_ca_location=str(Authority(secured.folder, "stranger").certificate))
    if trouble == "certificate":
        flags = [flag for flag in flags if "certificate" not in flag and "ssl.key" not in flag]
    if trouble == "mechanism":
        flags = secured.flags(sasl_mechanism="PLAIN")
    assert run(["run", "--bootstrap-servers", secured.broker.bootstrap, *_set(flags)]) == 1
    out = capsys.readouterr()
    assert len(tries) == 1
    assert out.err.count("error: ") == 1
    assert words in out.err.partition("hint: ")[0]
    assert hint in out.err.partition("hint: ")[2]
    assert "Traceback" not in out.err
    assert marked({"stderr": out.err.encode()}) == []


def test_the_gateway_works_over_tls_and_scram(secured: Secured) -> None:
    """The gateway's producer, which is librdkafka, logs in with the properties that all other clients have."""
    topics = Topics(secured.broker.bootstrap, lambda name: f"{name}-gateway", properties=secured.properties)
    flags = [*secured.flags(), "gateway.port=0", f"kafka.bootstrap_servers={secured.broker.bootstrap}"]
    settings = load_settings(
        None, os.environ, [*flags, f"kafka.topics.heartbeats={topics.names['heartbeats']}"]
    ).settings
    with Gateway(settings) as gateway:
        wait_for(lambda: gateway.publisher.connected, "the publisher to be connected")
        assert httpx.post(f"{gateway.url}/beat/orders/m0?session=10s", timeout=30).json() == {"accepted": 1}
    assert [row["member_id"] for row in topics.rows("heartbeats")] == ["m0"]


def _set(flags: list[str]) -> list[str]:
    return [word for flag in flags for word in ("--set", flag)]


def marked(places: dict[str, bytes]) -> list[str]:
    """Name the places that hold one of the secrets."""
    assert places
    return [place for place, data in places.items() if any(mark.encode() in data for mark in MARKS)]


def _command_lines() -> dict[str, bytes]:
    lines = {}
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines[str(file)] = file.read_bytes()
        except OSError:
            continue  # it has ended
    assert any(b"SparkSubmit" in line for line in lines.values())
    return lines


def _pages_of_spark(port: int) -> dict[str, bytes]:
    base = f"http://127.0.0.1:{port}"
    (app,) = json.loads(_get(f"{base}/api/v1/applications"))
    paths = ("environment/", "StreamingQuery/", "SQL/", "SQL/execution/?id=0", "SQL/execution/?id=1")
    pages = {path: _get(f"{base}/{path}") for path in paths}
    pages["api"] = _get(f"{base}/api/v1/applications/{app['id']}/environment")
    assert b"spark.ssl.keyPassword" in pages["api"]
    return pages


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - the address is this machine's
        return bytes(answer.read())
