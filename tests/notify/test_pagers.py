"""PagerDuty and Opsgenie: an incident opens, updates and closes one event of theirs, in the form that they document."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest

from heartwheel.front.cli.app import run
from heartwheel.readers.notify.delivery import Delivery, DeliveryStatus
from heartwheel.readers.notify.incident import ClosedBy, Incident, IncidentStep
from heartwheel.readers.notify.message import Message, message_of
from heartwheel.readers.notify.pagers import PAGERS
from heartwheel.readers.notify.payload import incident_payload
from support.output_rows import expired

KEY = "a-key-of-thirty-two-characters-x"


def message(step: IncidentStep) -> Message:
    """Make a message about a group whose name is longer than a title may be."""
    incident = Incident(id="0f5a", group_id="orders" * 40, opened_ms=1, expired_ms=1)
    incident.add(expired("orders", "a"), now_ms=1)
    closed_by = ClosedBy.QUIET if step is IncidentStep.CLOSED else None
    return message_of([incident_payload(incident, step, closed_by, expired_before=0)], now_ms=2, waited_ms=0)


@contextmanager
def receiver(got: list[tuple[str, dict[str, str], dict[str, Any]]]) -> Iterator[str]:
    """Answer 202 to each request, as both services do, and keep it: its path, headers and body."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            got.append((self.path, headers, msgspec.json.decode(body)))
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v2/alerts"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def posted(kind: str) -> list[tuple[str, dict[str, str], dict[str, Any]]]:
    """Post an incident that opens, is updated and closes."""
    got: list[tuple[str, dict[str, str], dict[str, Any]]] = []
    with receiver(got) as url, Delivery(url, (KEY.encode(),), timeout_ms=30_000, pager=PAGERS[kind]) as delivery:
        for step in IncidentStep:
            assert delivery.post(message(step), now_ms=3).status is DeliveryStatus.DELIVERED
    return got


def test_pagerduty_gets_a_trigger_and_a_resolve_of_one_event() -> None:
    """Events API v2: the routing key, one dedup key for the incident, and a payload with summary, source, severity."""
    bodies = [body for _, _, body in posted("pagerduty")]
    assert [body["event_action"] for body in bodies] == ["trigger", "trigger", "resolve"]
    assert {body["dedup_key"] for body in bodies} == {"0f5a"}
    assert {body["routing_key"] for body in bodies} == {KEY}
    payload = bodies[0]["payload"]
    assert payload["severity"] in {"critical", "error", "warning", "info"}
    assert payload["source"] == "orders" * 40
    assert 0 < len(payload["summary"]) <= 1_024
    assert payload["custom_details"]["members"][0]["member_id"] == "a"


def test_opsgenie_gets_an_alert_and_its_end_under_one_alias() -> None:
    """Alert API: created under an alias that merges updates, closed by it; the key is in a header, the title short."""
    created, updated, closed = posted("opsgenie")
    assert {headers["authorization"] for _, headers, _ in (created, updated, closed)} == {f"GenieKey {KEY}"}
    assert (created[0], created[2]["alias"], updated[2]["alias"]) == ("/v2/alerts", "0f5a", "0f5a")
    assert 0 < len(created[2]["message"]) <= 130
    assert all(isinstance(value, str) for value in created[2]["details"].values())
    assert closed[0] == "/v2/alerts/0f5a/close?identifierType=alias"


def test_opsgenie_gets_a_note_about_what_its_alert_would_not_show() -> None:
    """An alert that is made again under its alias keeps its description, so an update without expirations is a note."""
    incident = Incident(id="0f5a", group_id="orders", opened_ms=1, expired_ms=1)
    incident.add(expired("orders", "a"), now_ms=1)
    payload = incident_payload(incident, IncidentStep.UPDATED, None, expired_before=1)
    request = PAGERS["opsgenie"]("https://x/v2/alerts/", KEY, message_of([payload], now_ms=2, waited_ms=0))
    assert request.url == "https://x/v2/alerts/0f5a/notes?identifierType=alias"
    assert msgspec.json.decode(request.body)["note"].startswith("orders: 1 in all")


@pytest.mark.parametrize("secret", ["", "two words"])
@pytest.mark.parametrize("kind", PAGERS)
def test_a_pager_needs_its_key(
    kind: str, secret: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and the secret is not shown."""
    monkeypatch.setenv("HEARTWHEEL_NOTIFY__URL", "https://pager.example/v2")
    monkeypatch.setenv("HEARTWHEEL_NOTIFY__SECRET", secret)
    assert run(["notify", "--set", f"notify.kind={kind}"]) == 2
    err = capsys.readouterr().err
    assert "notify.secret" in err
    assert "command line" not in err
    assert "two words" not in err
