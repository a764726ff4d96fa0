"""The page about the webhook: its receiver works as it stands, and its message is one that is really sent."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec

from heartwheel.base.wall_clock import wall_ms
from heartwheel.kafka.broker.node_process import free_port
from heartwheel.readers.live.trouble import TroubleKind
from heartwheel.readers.notify.delivery import Delivery, DeliveryStatus
from heartwheel.readers.notify.incidents import Incidents, Rules
from heartwheel.readers.notify.message import Body, Message, message_of
from heartwheel.readers.notify.payload import incident_payload
from heartwheel.readers.notify.signature import parse_secrets, signed_headers
from heartwheel.readers.notify.troubles import GroupTrouble
from support.job import wait_for
from support.output_rows import T0, expired

PAGE = (Path(__file__).parents[2] / "docs" / "webhook.md").read_text(encoding="utf-8")
SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
OTHER = "whsec_" + base64.b64encode(b"o" * 32).decode()


def block(language: str) -> str:
    """Give the one block of the page in a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def message(*, trouble: bool = False) -> Message:
    """Make a message about one expiration."""
    incidents = Incidents(Rules(gather_ms=0, min_interval_ms=0, close_after_ms=1_000, incidents_max=1))
    incidents.expired(expired("orders", "orders-1"), now_ms=T0)
    if trouble:
        incidents.troubled({"orders": [GroupTrouble(kind=TroubleKind.EMPTY, words="no members", count=1)]}, now_ms=T0)
    (incident,) = incidents.due(T0)
    step, closed_by = incidents.report(incident, T0)
    return message_of([incident_payload(incident, step, closed_by, expired_before=0)], now_ms=T0, waited_ms=0)


@contextmanager
def receiver(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run the page's receiver."""
    file, port = folder / "receiver.py", free_port()
    file.write_text(block("python"), encoding="utf-8")
    env = os.environ | {"WEBHOOK_SECRET": SECRET}
    command = [sys.executable, str(file), str(port)]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            yield f"http://127.0.0.1:{port}/", process
        finally:
            process.kill()


def test_the_receiver_takes_what_is_signed_and_refuses_the_rest(tmp_path: Path) -> None:
    """It takes a true message however often it comes and shows it once; unsigned, changed and old ones are refused."""
    now_ms, sent = wall_ms(), message()
    body = sent.body.encode()
    with receiver(tmp_path) as (url, process):
        with Delivery(url, parse_secrets(f"{OTHER}\n{SECRET}"), timeout_ms=5_000) as delivery:
            wait_for(
                lambda: delivery.post(sent, now_ms=now_ms).status is DeliveryStatus.DELIVERED, "the receiver to listen"
            )
            assert delivery.post(sent, now_ms=now_ms).status is DeliveryStatus.DELIVERED
            assert delivery.post(sent, now_ms=now_ms - 301_000).fault == "the receiver answered 401"
        for keys, changed in (((), body), (parse_secrets(OTHER), body), (parse_secrets(SECRET), body + b" ")):
            headers = signed_headers(sent.id, body, keys, now_ms=now_ms)
            assert httpx.post(url, content=changed, headers=headers).status_code == 401
        process.kill()
        assert process.stdout is not None
        assert process.stdout.read().decode().splitlines() == [
            "orders: 1 member expired (session timeout): orders-1 at /10.0.0.7"
        ]


def test_the_message_on_the_page_is_one() -> None:
    """It has exactly the fields that are sent, all of them described."""
    body = block("json")
    shown = msgspec.json.decode(body, type=Body, strict=True)
    assert json.loads(body) == json.loads(msgspec.json.encode(shown))
    fields = _fields(json.loads(body))
    assert fields == _fields(json.loads(message(trouble=True).body))
    tables = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
    of_the_topic = set(json.loads(body)["incidents"][0]["members"][0])
    assert fields - of_the_topic - set(re.findall(r"`([a-z_]+)`", tables)) == set()


def _fields(value: object) -> set[str]:
    if isinstance(value, dict):
        names = {name for name in value if not name.endswith("_timeout")}
        return names.union(*(_fields(each) for each in value.values()))
    return set().union(*(_fields(each) for each in value)) if isinstance(value, list) else set()
