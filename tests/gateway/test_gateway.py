"""The gateway: who may beat, what is refused, and that nothing is called accepted that Kafka does not have."""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import KafkaError

from heartwheel.base import watched_file
from heartwheel.front.cli.demo_place import demo_gateway
from heartwheel.kafka.bulk import Delivered
from heartwheel.kafka.client import KafkaUnreachableError
from heartwheel.settings import SettingsError, load_settings
from heartwheel.sources.gateway import app, publisher
from heartwheel.sources.gateway import gateway as assembled
from heartwheel.sources.gateway.gateway import Gateway
from heartwheel.sources.gateway.pace import ClientRate
from heartwheel.sources.gateway.tokens import TokensFileError, may, read_tokens
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import Event, EventType
from heartwheel_beats.senders import HttpSender, LostError
from support.certificates import Authority
from support.job import wait_for

ORDERS, EVERYBODY = "token-of-the-orders", "token-of-everybody"


class SenderDouble:
    """Take records as Kafka would, and acknowledge them, refuse them, or say nothing."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.keys: list[bytes] = []
        self.answers = "acknowledged"
        self._flying: deque[Delivered] = deque()

    def send(self, key: bytes, value: bytes, delivered: Delivered) -> None:
        """Take a record."""
        self.keys.append(key)
        self.events.append(decode_event(value))
        self._flying.append(delivered)

    def poll(self) -> None:
        """Answer, unless it hangs."""
        while self._flying and self.answers != "hangs":
            refused = None if self.answers == "acknowledged" else KafkaError(KafkaError.NOT_ENOUGH_REPLICAS)
            self._flying.popleft()(refused, None)

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> SenderDouble:
    """Put a double in Kafka's place."""
    double = SenderDouble()
    monkeypatch.setattr(assembled, "BulkSender", lambda *_, **__: double)
    return double


@contextmanager
def serving(*flags: str, token: str = "", verify: Any = False) -> Iterator[httpx.Client]:
    """Run a gateway on a free port, and give a client of it; `verify` is whom it trusts over TLS."""
    settings = load_settings(None, {}, ["gateway.port=0", *(f"gateway.{flag}" for flag in flags)]).settings
    headers = {"authorization": f"Bearer {token}"} if token else {}
    with (
        Gateway(settings) as gateway,
        httpx.Client(base_url=gateway.url, headers=headers, timeout=20, verify=verify) as client,
    ):
        wait_for(lambda: gateway.publisher.connected or flags, "the publisher to be connected")
        yield client


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_bare_address_is_enough(kafka: SenderDouble, method: str) -> None:
    """`curl URL/beat/GROUP/MEMBER?session=30s` beats and `/leave/` leaves, by GET and POST, with ids of any letters."""
    with serving() as client:
        beat = client.request(method, "/beat/or%2Fders/j%C3%BCrgen?session=30s")
        leave = client.request(method, "/leave/or%2Fders/j%C3%BCrgen?reason=shut+down")
    assert (beat.status_code, beat.json()) == (leave.status_code, leave.json()) == (202, {"accepted": 1})
    first, last = kafka.events
    assert (first.type, first.group_id, first.member_id, first.session_timeout_ms, first.client_host) == (
        EventType.HEARTBEAT, "or/ders", "jürgen", 30_000, "/127.0.0.1"
    )  # fmt: skip
    assert (last.type, last.member_id, last.reason) == (EventType.LEAVE, "jürgen", "shut down")
    assert kafka.keys == [b"or/ders"] * 2


def test_a_failure_is_told_with_curl(kafka: SenderDouble) -> None:
    """`/leave/GROUP/MEMBER?failure=...` says how a worker failed, and as much of it as a first beat would have said."""
    with serving() as client:
        assert client.post("/leave/orders/a?failure=exit+code+3&session=10s").status_code == 202
        assert client.post("/leave/orders/a?failure=" + "x" * 1_025).status_code == 400
    (event,) = kafka.events
    assert (event.type, event.member_id, event.failure) == (EventType.LEAVE, "a", "exit code 3")
    assert (event.session_timeout_ms, event.client_id, event.client_host) == (10_000, "gateway", "/127.0.0.1")


@pytest.mark.parametrize(
    "address",
    [
        "beat/g/a?",
        "leave/g/a?",
        "leave/g/a?failure=x&",
        "start/g/a?",
        "success/g/a?every=1d&",
        "ping/g/a?every=1d&",
        "fail/g/a?",
    ],
)
def test_each_record_may_name_its_start(kafka: SenderDouble, address: str) -> None:
    """`incarnation=` is a whole number of 64 bits; what is none is refused by name."""
    with serving() as client:
        assert client.post(f"/{address}incarnation=1795239789").status_code == 202
        for wrong in ("", "-1", "1.5", "now", str(2**63), "9" * 20):
            answer = client.post(f"/{address}incarnation={wrong}")
            assert answer.status_code == 400
            assert "incarnation" in answer.text
    assert [event.incarnation for event in kafka.events] == [1_795_239_789]


def test_jobs_with_curl(kafka: SenderDouble) -> None:
    """A job says that it starts, that it is done and by when it is expected again, or that it failed."""
    with serving() as client:
        for path in (
            "start/backup/db?limit=2h", "start/backup/db", "success/backup/db?every=24h&grace=30m",
            "ping/backup/db?every=1d", "fail/backup/db?failure=disk+full", "fail/backup/db",
        ):  # fmt: skip
            assert client.post(f"/{path}").json() == {"accepted": 1}
        for path, words in {
            "success/backup/db": "how often",
            "ping/backup/db?every=often": 'every is no duration","hint":"write every=24h"',
            "ping/backup/db?every=100d": "every=100d must be longer than 0 and shorter than 24 days",
            "start/backup/db?limit=often": 'limit is no duration","hint":"write limit=3h"',
            "beat/backup/db?session=1s": "a session timeout of 1 s is not within 6 s to 24 d",
            "start/backup/db?every=1d": "'every' is not known",
            "success/backup/db?every=24d&grace=1h": "coordinator.presence_max_session_timeout",
        }.items():
            answer = client.post(f"/{path}")
            assert answer.status_code == 400
            assert words in answer.text
    hours = 3_600_000
    assert [(event.client_id, event.session_timeout_ms, event.failure) for event in kafka.events] == [
        ("job-run", 2 * hours, None), ("job-run", hours, None), ("job", 24 * hours + hours // 2, None),
        ("job", 25 * hours, None), ("job", None, "disk full"), ("job", None, ""),
    ]  # fmt: skip


def test_many_at_once(kafka: SenderDouble) -> None:
    """One object as on the topic, or one a line, with and without the type of NDJSON; blank lines do not count."""
    one = '{\n "group_id": "orders", "member_id": "a"\n}'
    lines = "".join(f'{{"group_id":"orders","member_id":"{number}"}}\n\n' for number in range(500))
    with serving() as client:
        assert client.post("/beat", content=one).json() == {"accepted": 1}
        assert client.post("/beat", content=lines).json() == {"accepted": 500}
        ndjson = client.post("/beat", content=lines, headers={"content-type": "application/x-ndjson"})
    assert ndjson.json() == {"accepted": 500}
    assert [event.member_id for event in kafka.events] == ["a", *map(str, range(500)), *map(str, range(500))]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "/beat", "", 405, "POST"),
        ("PUT", "/beat/g/m", "", 405, "PUT"),
        ("GET", "/", "", 404, "nothing here"),
        ("GET", "/beat/g", "", 404, "nothing here"),
        ("GET", "/beat/g/m/x", "", 404, "nothing here"),
        ("GET", "/beat//m", "", 400, "group_id"),
        ("GET", "/beat/g/", "", 400, "member_id"),
        ("GET", "/beat/g/%ff", "", 400, "UTF-8"),
        ("GET", "/beat/g/m?session=soon", "", 400, "duration"),
        ("GET", "/beat/g/m?session=1s", "", 400, "6 s to 24 d"),
        ("GET", "/beat/g/m?sesion=30s", "", 400, "sesion"),
        ("GET", f"/beat/g/{'m' * 1025}", "", 400, "1024"),
        ("GET", f"/beat/g/{'m' * 9000}", "", 414, "too long"),
        ("POST", "/beat", "", 400, "not_json"),
        ("POST", "/beat", "{}", 400, "missing_field"),
        ("POST", "/beat", '{"group_id":"g","type":"load"}', 400, "workers may not send type load"),
        ("POST", "/beat", '{"group_id":"g","member_id":"m","type":"expired"}', 400, "may not send type expired"),
        ("POST", "/beat", '{"group_id":"g","member_id":"m","feed":"tap","at_ms":1}', 400, "feed"),
        ("POST", "/beat", '{"group_id":"g","member_id":"m"}\n{"group_id":"g"}\nx\n', 400, "line 3"),
        ("POST", "/beat", '{"group_id":"g","member_id":"m"}\n' * 11, 413, "lines"),
        ("POST", "/beat", " " * 2_000, 413, "longer"),
    ],
)
def test_what_is_wrong_is_said(kafka: SenderDouble, method: str, path: str, body: str, status: int, words: str) -> None:
    """A request that the engine could not use is refused with words and a hint, and nothing of it is sent."""
    with serving("body_bytes_max=1KiB", "records_per_request_max=10") as client:
        answer = client.request(method, path, content=body)
    assert (answer.status_code, set(answer.json())) == (status, {"error", "hint"})
    assert words in answer.text
    assert kafka.events == []


def test_a_lost_beat_never_looks_accepted(kafka: SenderDouble) -> None:
    """What Kafka does not acknowledge is 503: refused at once, or after the time-out; what waits is not sent later."""
    with serving("timeout=200ms", "waiting_records_max=3", "records_per_request_max=3") as client:
        kafka.answers = "refused"
        refused = client.post("/beat/g/m")
        kafka.answers = "hangs"
        body = '{"group_id":"g","member_id":"m"}\n' * 3
        late = client.post("/beat", content=body)
        crowded = client.post("/beat/g/m")
        kafka.answers = "acknowledged"
        wait_for(lambda: client.post("/beat/g/m").status_code == 202, "the gateway to have room again")
        assert client.get("/readyz").status_code == 200
        metrics = client.get("/metrics").text
    assert [each.status_code for each in (refused, late, crowded)] == [503, 503, 503]
    assert all("retry-after" in each.headers for each in (refused, late, crowded))
    assert "Kafka acknowledged 0 of 1 record" in refused.text
    assert "in time" in late.text
    assert "too many" in crowded.text
    assert 'heartwheel_gateway_records_total{outcome="unknown"} 4.0' in metrics
    assert "heartwheel_gateway_waiting_records 0.0" in metrics


def test_without_kafka_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """While nobody answers every beat is 503; when Kafka comes, none of those refused is sent."""
    double, away = SenderDouble(), [True]

    def connect(*_: object, **__: object) -> SenderDouble:
        if away:
            raise KafkaUnreachableError("no Kafka answers")
        return double

    monkeypatch.setattr(assembled, "BulkSender", connect)
    with serving("timeout=2s") as client:
        assert [client.post("/beat/g/lost").status_code for _ in range(3)] == [503] * 3
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200
        away.clear()
        wait_for(lambda: client.post("/beat/g/kept").status_code == 202, "Kafka to take a beat")
    assert {event.member_id for event in double.events} == {"kept"}


def test_it_connects_as_it_starts(kafka: SenderDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway is ready without a request, and before it would try again."""
    assert kafka.answers == "acknowledged"
    monkeypatch.setattr(publisher, "_RETRY_S", 3_600.0)
    with serving() as client:
        assert client.get("/readyz").status_code == 200


def test_tokens_are_for_groups(kafka: SenderDouble, tmp_path: Path) -> None:
    """A token lets its groups beat and no other: none and a wrong one are 401, another's group is 403, and unsent."""
    file = tmp_path / "tokens"
    file.write_text("# who\norders-*  token-of-the-orders\nbilling  token-of-the-orders\n* token-of-everybody\n")
    flag = f"access_file={file}"
    with serving(flag) as client:
        assert client.post("/beat/orders-1/m").status_code == 401
        assert client.post("/beat/orders-1/m", headers={"authorization": "Bearer wrong-wrong-wrong"}).status_code == 401
        assert client.get("/healthz").status_code == 200
    assert kafka.events == []
    with serving(flag, token=ORDERS) as client:
        assert client.post("/beat/shipping/m").status_code == 403
        mixed = '{"group_id":"orders-1","member_id":"m"}\n{"group_id":"shipping","member_id":"m"}'
        assert client.post("/beat", content=mixed).status_code == 403
        assert kafka.events == []
        assert [client.post(f"/beat/{group}/m").status_code for group in ("orders-1", "billing")] == [202, 202]
    with serving(flag, token=EVERYBODY) as client:
        assert client.post("/beat/shipping/m").status_code == 202


def test_wrong_tokens_leave_a_line(
    kafka: SenderDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Who guesses tokens is named in the log, and so is a worker with a wrong one; however many, they fill no log."""
    monkeypatch.setattr(app, "REFUSED_LOG_S", 3_600.0)
    file = tmp_path / "tokens"
    file.write_text(f"* {ORDERS}\n")
    with serving(f"access_file={file}") as client:
        for number in range(20):
            client.post("/beat/g/m", headers={"authorization": f"Bearer guess-number-{number}"})
        client.post("/beat/g/m")
    (line,) = [record.getMessage() for record in caplog.records if "token" in record.getMessage()]
    assert line == "127.0.0.1: token missing or unknown (since the last line: 1)"
    assert "guess-number" not in caplog.text
    assert kafka.events == []


def test_tokens_change_without_a_restart(
    kafka: SenderDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A token that is taken out of the file ends, a new one counts; a file that goes wrong changes nothing."""
    monkeypatch.setattr(watched_file, "_LOOK_S", 0.0)
    file = tmp_path / "tokens"
    file.write_text(f"* {ORDERS}\n")
    with serving(f"access_file={file}", token=ORDERS) as client:
        assert client.post("/beat/g/m").status_code == 202
        file.write_text("half a line of it\n")
        assert client.post("/beat/g/m").status_code == 202
        assert "the tokens stay as they were" in caplog.text
        file.write_text(f"* {EVERYBODY}\n")
        assert client.post("/beat/g/m").status_code == 401
        assert client.post("/beat/g/m", headers={"authorization": f"Bearer {EVERYBODY}"}).status_code == 202
    assert len(kafka.events) == 3


def test_a_named_proxy_says_who_beats(kafka: SenderDouble) -> None:
    """Behind a proxy that is named, a client is who its X-Forwarded-For says, for limits too; else it says nothing."""
    first, second = ({"x-forwarded-for": address} for address in ("192.0.2.7", "192.0.2.8"))
    with serving("trusted_proxies=127.0.0.0/8", "records_per_second_max=1") as client:
        answers = [client.post("/beat/g/m", headers=headers).status_code for headers in (first, first, second)]
    with serving() as client:
        assert client.post("/beat/g/m", headers=first).status_code == 202
    assert answers == [202, 429, 202]
    assert [event.client_host for event in kafka.events] == ["/192.0.2.7", "/192.0.2.8", "/127.0.0.1"]


def test_wrong_files_of_tokens_are_refused(tmp_path: Path) -> None:
    """All lines that are wrong are named at once, and no token is in the message; so are files that are not there."""
    file = tmp_path / "tokens"
    file.write_text("orders short-secret\nlonely\nfine a-token-that-is-long\n")
    with pytest.raises(TokensFileError, match=r"line 1 .*; line 2 ") as caught:
        read_tokens(file)
    assert "short-secret" not in str(caught.value)
    flags = [f"gateway.access_file={tmp_path / 'none'}", "gateway.tls_certificate=none", "gateway.tls_key=none"]
    with pytest.raises(SettingsError) as both:
        Gateway(load_settings(None, {}, flags).settings)
    assert [problem.path for problem in both.value.problems] == ["gateway.access_file", "gateway.tls_certificate"]


def test_names_with_a_star() -> None:
    """A star stands for all groups that begin so, and only at the end."""
    groups = frozenset({"orders-*", "exact"})
    assert [may(groups, group) for group in ("orders-1", "orders-", "orders", "exact", "exact-1")] == [
        True, True, False, True, False
    ]  # fmt: skip


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"host": "evil.example"}],
)
def test_foreign_pages_cannot_beat(kafka: SenderDouble, headers: dict[str, str]) -> None:
    """A page in somebody's browser cannot keep a dead worker alive, nor under a name that it points here."""
    with serving() as client:
        assert client.get("/beat/g/m", headers=headers).status_code in {403, 421}
    assert kafka.events == []


@pytest.mark.parametrize("name", ["accept-language", "referer", "cookie"])
def test_images_of_foreign_pages_cannot_beat(kafka: SenderDouble, tmp_path: Path, name: str) -> None:
    """A GET of a browser is refused though it names no origin; with a token, or by POST, it passes."""
    headers = {name: "en"}
    with serving() as client:
        assert client.get("/leave/g/m", headers=headers).status_code == 403
        assert kafka.events == []
        assert client.get("/beat/g/m", headers={"accept-language": "*"}).status_code == 202  # Node's fetch
        assert client.post("/beat/g/m", headers=headers).status_code == 202
    file = tmp_path / "tokens"
    file.write_text(f"* {EVERYBODY}\n")
    with serving(f"access_file={file}", token=EVERYBODY) as client:
        assert client.get("/beat/g/m", headers=headers).status_code == 202


def test_an_address_that_sends_too_much_is_slowed(kafka: SenderDouble) -> None:
    """Beyond its records a second an address gets 429 and when to come again, and nothing of it is sent."""
    with serving("records_per_second_max=5") as client:
        answers = [client.post("/beat/g/m") for _ in range(30)]
    slowed = [each for each in answers if each.status_code == 429]
    assert slowed
    assert all(each.headers["retry-after"] == "1" for each in slowed)
    assert len(kafka.events) == len(answers) - len(slowed)


def test_pace_is_held_in_the_long_run() -> None:
    """A full bucket is spent at once and refills; a larger request waits for a full one and goes on credit."""
    pace = ClientRate(10)
    assert pace.take("a", 10, 0.0) == 0
    assert pace.take("a", 1, 0.0) == pytest.approx(0.1)
    assert pace.take("b", 1, 0.0) == 0
    assert pace.take("a", 1, 0.1) == 0
    assert pace.take("a", 30, 2.0) == 0
    assert pace.take("a", 1, 3.9) > 0
    assert pace.take("a", 1, 4.2) == 0


def test_pace_counts_a_network_of_ipv6_as_one() -> None:
    """Who has a /64 has one bucket; IPv4 addresses within IPv6 have one each."""
    pace = ClientRate(1)
    assert pace.take("2001:db8::1", 1, 0.0) == 0
    assert pace.take("2001:db8::2", 1, 0.0) > 0
    assert [pace.take(f"::ffff:192.0.2.{number}", 1, 0.0) for number in range(3)] == [0, 0, 0]


def test_the_gateway_counts_all_bodies(kafka: SenderDouble) -> None:
    """Bodies that wait for Kafka count against the budget of all: more of them hear 503, a single beat does not."""
    line = b'{"group_id":"g","member_id":"m"}'
    body = line + b"\n" * (40_000 - len(line))
    kafka.answers = "hangs"
    with serving("bodies_bytes_max=64KiB", "body_bytes_max=64KiB", "timeout=20s") as client:
        with ThreadPoolExecutor(2) as threads:
            waiting = threads.submit(client.post, "/beat", content=body)
            wait_for(lambda: kafka.events, "the first body to wait for Kafka")
            refused = client.post("/beat", content=body)
            single = threads.submit(client.post, "/beat/g/single")
            wait_for(lambda: len(kafka.events) == 2, "the single beat to wait for Kafka")
            kafka.answers = "acknowledged"
            assert (waiting.result().status_code, single.result().status_code) == (202, 202)
        assert (refused.status_code, set(refused.json())) == (503, {"error", "hint"})
        assert (bool(refused.headers["retry-after"]), refused.headers["connection"]) == (True, "close")
        assert client.post("/beat", content=body).status_code == 202


def test_tls_is_spoken(kafka: SenderDouble, tmp_path: Path) -> None:
    """With a certificate the gateway speaks TLS to those who trust it."""
    authority = Authority(tmp_path, "authority")
    key, certificate, _ = authority.issue("gateway")
    context = ssl.create_default_context(cafile=str(authority.certificate))
    with serving(f"tls_certificate={certificate}", f"tls_key={key}", verify=context) as client:
        assert str(client.base_url).startswith("https://")
        assert client.post("/beat/g/m").status_code == 202
    assert len(kafka.events) == 1


def test_workers_beat_over_tls(kafka: SenderDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker beats over TLS to a gateway whose authority it trusts, on one connection, and to no other one."""
    authority = Authority(tmp_path, "authority")
    key, certificate, _ = authority.issue("gateway")
    context = ssl.create_default_context(cafile=str(authority.certificate))
    with serving(f"tls_certificate={certificate}", f"tls_key={key}", verify=context) as client:
        value = b'{"group_id":"g","member_id":"m"}'
        with pytest.raises(LostError, match="certificate verify failed"):
            HttpSender(str(client.base_url)).send(b"g", value)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
        sender = HttpSender(str(client.base_url))
        for _ in range(3):
            sender.send(b"g", value)
        sender.close()
    assert [event.member_id for event in kafka.events] == ["m"] * 3


def test_others_need_a_token() -> None:
    """A gateway that others can reach without a token is refused, all mistakes at once, each with its path."""
    flags = ["gateway.host=0.0.0.0", "gateway.tls_key=x", "gateway.waiting_records_max=5"]
    with pytest.raises(SettingsError) as caught:
        load_settings(None, {}, flags)
    assert {problem.path for problem in caught.value.problems} == {
        "gateway.host", "gateway.tls_certificate", "gateway.records_per_request_max"
    }  # fmt: skip
    load_settings(None, {}, ["gateway.host=0.0.0.0", "gateway.insecure=true"])


def test_the_demo_has_a_gateway_for_this_machine(kafka: SenderDouble) -> None:
    """The demo's gateway takes a bare curl, on this machine alone, also where its port is taken."""
    settings = load_settings(None, {}, ["gateway.host=0.0.0.0", "gateway.insecure=true"]).settings
    with demo_gateway(settings) as first, demo_gateway(settings) as second:
        assert first.url != second.url
        for each in (first, second):
            assert each.url.startswith("http://127.0.0.1:")
            assert httpx.post(f"{each.url}/beat/mine/me?session=10s").status_code == 202
    assert {event.member_id for event in kafka.events} == {"me"}
