"""The API: what it answers is what its description says, and bad input gets a plain 4xx."""

from __future__ import annotations

import csv
import io
import json
import re
import socket
from typing import Any
from urllib.parse import quote

import jsonschema
import msgspec
import pytest
from starlette.applications import Starlette

from heartwheel.readers.dashboard.api import ENDPOINTS
from heartwheel.readers.dashboard.app import create_app
from heartwheel.readers.dashboard.downloads import csv_text
from heartwheel.readers.dashboard.openapi import openapi
from heartwheel.readers.http_server.guard import SECURITY_HEADERS
from heartwheel.readers.http_server.paths import Paths
from heartwheel.readers.live.lane_page import LaneSource
from heartwheel.readers.live.lane_store import LaneStore
from heartwheel.readers.live.picture import Picture
from heartwheel.settings import Settings
from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scan import Scanned
from heartwheel.wire.status import AtRiskMember
from support.asking import ask
from support.broker_logs import REAL
from support.output_rows import T0, begun, expired, job, joined, status, topic_rows

NASTY = '<script>alert("x")</script>/../%2e\N{SNOWMAN}'
"""A member id that is a script, a path and no ASCII at once."""

IN_PATH = {"id": f"g/m/{T0}", "group_id": "g", "member_id": "m"}


@pytest.fixture(scope="module")
def app() -> Starlette:
    """Make an application whose picture has something of everything."""
    picture = Picture()
    picture.link(True, now_ms=T0)
    rows = [expired("g", f"m{i}", T0 + i) for i in range(3)]
    risky = AtRiskMember(group_id="g", member_id="n", deadline_ms=T0 + 9_000)
    more = [begun("g", "n", at_ms=T0 + i) for i in range(6)] + [joined("h", "x"), begun("h", "y", at_ms=T0 + 20_000)]
    picture.apply(
        topic_rows(*rows, expired("g", "m"), expired("a/b", NASTY), *more, status(0, risky), job()), now_ms=T0
    )
    store = LaneStore()
    for event in explain_logs([str(REAL / "server.log")], Scanned(), stdin=io.BytesIO(), joined=store.joined):
        store.add(event)
    picture.lanes = LaneSource(store)
    return create_app(picture, Settings(), metrics=lambda accept: (b"up 1\n", accept), now_ms=lambda: T0 + 2_000)


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    return schema | {"components": openapi()["components"]}


@pytest.mark.parametrize("path", [path for path, endpoint in ENDPOINTS.items() if endpoint.media == "application/json"])
def test_answers_are_as_described(app: Starlette, path: str) -> None:
    """Every document that is really answered fits the schema that /openapi.json gives for it."""
    answer = ask(app, path.format(**{name: quote(value, safe="") for name, value in IN_PATH.items()}))
    assert answer.status_code == 200, answer.text
    described = openapi()["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema.validate(answer.json(), _resolved(described), cls=jsonschema.Draft202012Validator)


def test_the_description_names_every_route(app: Starlette) -> None:
    """What can be asked is described, and what is described can be asked; each parameter with its words."""
    document = ask(app, "/openapi.json").json()
    plain = {"/healthz", "/readyz", "/metrics", "/openapi.json", "/api/stream"}
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == set(ENDPOINTS) | plain
    for path in plain - {"/api/stream"}:
        assert ask(app, path).status_code == 200
    for item in document["paths"].values():
        assert item["get"]["summary"]
        assert all(each["in"] == "path" or each["description"] for each in item["get"]["parameters"])
    assert "/api/expirations" in ask(app, "/docs").text


def test_troubleshooting_leads_to_nothing_that_is_not_served() -> None:
    """Its links are to its own sections and to the dashboard, behind a proxy too; other pages are named as text."""
    base = "/heartwheel"
    served = create_app(Picture(), Settings.model_validate({"dashboard": {"base_path": base}}))
    page = ask(served, f"{base}/troubleshooting").text
    sections = re.findall(r'<h[1-6] id="([^"]+)"', page)
    links = re.findall(r'<a [^>]*href="([^"]+)"', page)
    assert f"{base}/" in links
    assert [link for link in links if link != f"{base}/" and link.removeprefix("#") not in sections] == []
    assert 'title="docs/tune-timeouts.md of the project"' in page


@pytest.mark.parametrize(
    ("path", "status_code", "words"),
    [
        ("/api/expirations?limit=1000000000", 400, "limit"),
        ("/api/expirations?limit=0", 400, "limit"),
        ("/api/expirations?limit=1e3", 400, "limit"),
        ("/api/expirations?limit=1&limit=2", 400, "more than once"),
        ("/api/expirations?before=garbage", 400, "before"),
        ("/api/expirations?since_ms=-1", 400, "since_ms"),
        ("/api/expirations?reason=bored", 400, "session_timeout"),
        ("/api/expirations?limt=5", 400, "did you mean limit?"),
        ("/api/expirations?text=" + "x" * 1_025, 400, "1024"),
        ("/api/expirations?canary=yes", 400, "true or false"),
        ("/api/expirations.csv?limit=5", 400, "limit"),
        ("/api/groups?state=Happy", 400, "Stable"),
        ("/api/series?points=0", 400, "points"),
        ("/api/series?step_ms=5001", 400, "step_ms"),
        ("/api/wheel?shard=999", 404, "shards 0 to 0"),
        ("/api/wheel?shard=%D9%A1", 400, "shard"),
        ("/api/stream?wheel=-1", 400, "wheel"),
        ("/api/stream?x=1", 400, "unknown parameter"),
        ("/api/expirations/nobody", 404, "no expiration"),
        ("/api/groups/nobody", 404, "no group"),
        ("/api/members/g/nobody", 404, "no member of group g"),
        ("/api/groups/%FF", 400, "UTF-8"),
        ("/api/groups//x", 404, "/docs"),
        ("/api/nothing", 404, "/docs"),
        ("/nothing", 404, "/docs"),
        ("/page/../app.py", 404, "/docs"),
        ("/page/%2e%2e/app.py", 404, "/docs"),
        ("/api/groups/" + "x" * 9_000, 414, "8192"),
        ("/api/now?" + "x" * 17_000, 414, "16384"),
    ],
)
def test_bad_input_is_a_plain_4xx(app: Starlette, path: str, status_code: int, words: str) -> None:
    """Whatever is wrong is named, with a hint, as JSON that no browser takes for a page."""
    answer = ask(app, path)
    assert answer.status_code == status_code, answer.text
    assert set(answer.json()) == {"error", "hint"}
    assert words in answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_ids_may_hold_anything(app: Starlette) -> None:
    """A script, a slash, dots or a snowman in an id is found by its encoded path, and comes back as plain text."""
    answer = ask(app, f"/api/members/{quote('a/b', safe='')}/{quote(NASTY, safe='')}")
    assert answer.status_code == 200
    assert answer.json()["member_id"] == answer.json()["expirations"][0]["member_id"] == NASTY
    assert ask(app, f"/api/groups/{quote('a/b', safe='')}").json()["group_id"] == "a/b"
    assert ask(app, "/groups/a%2Fb").headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(
    ("id_", "segment"), [(".", "~."), ("..", "~.."), ("~.", "~~."), ("~~..", "~~~.."), ("~x", "~x")]
)
def test_ids_of_dots_have_paths(id_: str, segment: str) -> None:
    """Browsers resolve dots in a path, so ids of dots stand behind a `~`, and each id still has a path of its own."""
    scope = {"raw_path": f"/api/groups/{segment}".encode()}
    assert Paths({"/api/groups/{group_id}": 1}).find(scope) == (1, {"group_id": id_})


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(app: Starlette, method: str) -> None:
    """Only GET and HEAD are allowed, everywhere."""
    for path in ("/", "/api/now", "/api/stream", "/nothing"):
        answer = ask(app, path, method=method)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "path", ["/", "/expired", "/wheel", "/api/now", "/api/nothing", "/docs", "/troubleshooting", "/page/js/app.js"]
)
def test_browsers_are_told_to_be_strict(app: Starlette, path: str) -> None:
    """Scripts and frames of others are forbidden on every answer, and no address leaks to another site."""
    headers = ask(app, path).headers
    assert headers["content-security-policy"].startswith("default-src 'self';")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


def test_a_foreign_name_is_turned_away(app: Starlette) -> None:
    """A page elsewhere that lets its name point here (DNS rebinding) reads nothing; the hint tells how to allow it."""
    for host in ("localhost:8484", "127.0.0.1:1", "[::1]:8484"):
        assert ask(app, "/api/now", host=host).status_code == 200
    answer = ask(app, "/api/now", host="evil.example")
    assert answer.status_code == 421
    assert "--allow-host evil.example" in answer.json()["hint"]
    asked = Settings().dashboard.model_copy(update={"allow_hosts": "evil.example"})
    allowed = create_app(Picture(), Settings().model_copy(update={"dashboard": asked}))
    assert ask(allowed, "/api/now", host="evil.example").status_code == 200


def test_a_dashboard_for_others_goes_by_addresses_and_its_own_name() -> None:
    """Listening for others without names of its own, it answers to IP addresses and the machine's name, to no other."""
    public = create_app(Picture(), Settings.model_validate({"dashboard": {"host": "0.0.0.0"}}))  # noqa: S104
    for host in ("192.0.2.7:8484", "[2001:db8::1]:8484", "localhost", socket.gethostname().upper()):
        assert ask(public, "/api/now", host=host).status_code == 200, host
    for host in ("anything", "evil.example", "127.0.0.1.evil.example"):
        assert ask(public, "/api/now", host=host).status_code == 421, host
    # Probes of an orchestrator ask for health under whatever address the machine has, and learn nothing.
    assert ask(public, "/healthz", host="anything").status_code == 200


def test_ready_is_another_thing_than_alive() -> None:
    """A server without an engine is alive and not ready, and tells why."""
    app = create_app(Picture(), Settings())
    assert ask(app, "/healthz").status_code == 200
    answer = ask(app, "/readyz")
    assert (answer.status_code, answer.json()["state"]) == (503, "waiting")
    assert ask(app, "/metrics").status_code == 404


def test_metrics_are_those_of_the_registry(app: Starlette) -> None:
    """/metrics hands over what the registry writes, in the format that was asked for."""
    answer = ask(app, "/metrics", accept="application/openmetrics-text")
    assert (answer.text, answer.headers["content-type"]) == ("up 1\n", "application/openmetrics-text")


def test_unknown_address_is_a_page_for_people_and_json_for_programs(app: Starlette) -> None:
    """A browser is shown the page that says so; programs, and all below /api, get an error in JSON."""
    shown = ask(app, "/nothing", accept="text/html,*/*")
    assert (shown.status_code, shown.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "<main" in shown.text
    assert ask(app, "/nothing").headers["content-type"] == "application/json"
    assert ask(app, "/api/nothing", accept="text/html").headers["content-type"] == "application/json"


def test_csv_is_readable_by_people() -> None:
    """Times stand there a second time in ISO 8601, sentences as text, and what is not known is an empty cell."""
    picture = Picture()
    picture.apply(topic_rows(expired("g", "m", T0)), now_ms=T0)
    (row,) = csv.DictReader(io.StringIO(csv_text(picture.window.rows), newline=""))
    assert (row["deadline_ms"], row["deadline_time"]) == (str(T0), "2026-11-18T11:06:40.000Z")
    assert (row["returned_ms"], row["returned_time"], row["explanation"], row["evidence"]) == ("", "", "", "")
    told = msgspec.structs.replace(picture.window.rows[0], explanation=("It left.", "By itself."))
    (row,) = csv.DictReader(io.StringIO(csv_text([told]), newline=""))
    assert row["explanation"] == "It left. By itself."


def test_expirations_of_a_stretch_of_time_in_an_order(app: Starlette) -> None:
    """A range of time is half-open, and pages of another order than by time follow each other too."""
    everything = ask(app, "/api/expirations").json()["rows"]
    times = sorted({row["append_ms"] for row in everything})
    some = ask(app, f"/api/expirations?since_ms={times[0]}&until_ms={times[-1]}").json()["rows"]
    assert {row["append_ms"] for row in some} == set(times[:-1])
    oldest = ask(app, "/api/expirations?order=oldest").json()["rows"]
    assert oldest == everything[::-1]
    late = ask(app, "/api/expirations?order=late&limit=1").json()
    assert late["rows"][0]["known_late_ms"] == max(row["known_late_ms"] for row in everything)
    rest = ask(app, f"/api/expirations?order=late&before={late['next']}").json()["rows"]
    assert len(rest) == len(everything) - 1


def test_downloads_have_the_filter_and_a_name(app: Starlette) -> None:
    """What is shown is what is downloaded: the same filter, as a file that a browser saves."""
    answer = ask(app, "/api/expirations.csv?text=m1")
    assert answer.headers["content-disposition"] == 'attachment; filename="expirations.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert [row["member_id"] for row in rows] == ["m1"]
    found = ask(app, "/api/expirations.json?group=g")
    assert found.headers["content-disposition"] == 'attachment; filename="expirations.json"'
    assert {row["group_id"] for row in json.loads(found.text)} == {"g"}


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx"])
def test_a_spreadsheet_runs_no_id(text: str) -> None:
    """An id that a spreadsheet would take for a formula is defused; numbers stay numbers, and commas stay inside."""
    picture = Picture()
    picture.apply(topic_rows(expired("a,b", text, lateness_ms=-5)), now_ms=T0)
    (row,) = csv.DictReader(io.StringIO(csv_text(picture.window.rows), newline=""))
    assert (row["member_id"], row["group_id"], row["lateness_ms"]) == (f"'{text}", "a,b", "-5")


def test_the_canary_shows_only_when_asked_for() -> None:
    """The canary's groups are in no list and no count, unless `canary=true`."""
    picture = Picture()
    picture.apply(topic_rows(expired("heartwheel-canary-1", "c")), now_ms=T0)
    app = create_app(picture, Settings(), now_ms=lambda: T0)
    for path, key in (("/api/expirations", "total"), ("/api/groups", "known_total"), ("/api/now", "expirations_total")):
        assert ask(app, path).json()[key] == 0
        assert ask(app, f"{path}?canary=true").json()[key] == 1


def test_a_bug_is_told_without_its_inside() -> None:
    """An error of ours is a 500 that says so, and shows no traceback."""

    def broken(_accept: str) -> tuple[bytes, str]:
        raise ZeroDivisionError("secret words")

    answer = ask(create_app(Picture(), Settings(), metrics=broken), "/metrics")
    assert (answer.status_code, set(answer.json())) == (500, {"error", "hint"})
    assert "secret" not in answer.text
    strict = ask(create_app(Picture(), Settings()), "/api/now").headers
    assert {name: answer.headers.get(name) for name in SECURITY_HEADERS} == {
        name: strict[name] for name in SECURITY_HEADERS
    }


def test_all_bodies_can_be_described() -> None:
    """The types that are answered are types that msgspec can describe, each under its own name."""
    names = [getattr(each.body, "__name__", "") for each in ENDPOINTS.values()]
    assert len([name for name in names if name not in {"str", "list"}]) == len(set(names) - {"str", "list"})
    assert msgspec.json.encode(openapi())
