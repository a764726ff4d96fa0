"""Who may look: each way to say who one is, what it opens and when it ends, and that nothing else opens anything."""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import time
from collections.abc import Callable, Mapping
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import bcrypt
import httpx
import pytest
from starlette.applications import Starlette

from heartwheel.base import watched_file
from heartwheel.readers.dashboard.app import create_app
from heartwheel.readers.dashboard.login.attempts import (
    KEYS_MAX,
    OF_ADDRESS_MAX,
    OF_ONE_MAX,
    OF_USER_MAX,
    WINDOW_S,
    Attempts,
)
from heartwheel.readers.dashboard.login.gate import access_log
from heartwheel.readers.dashboard.login.sessions import COOKIE, LoginSessions
from heartwheel.readers.dashboard.login.users import Users, UsersFileError
from heartwheel.readers.live.picture import Picture
from heartwheel.settings import Settings
from support.login import PASSWORD, hash_of, write_users
from support.output_rows import T0

TOKEN = "a-token-of-some-length"  # noqa: S105 - of these tests alone
GUARDED = (
    "/",
    "/expired",
    "/api/now",
    "/api/stream",
    "/api/expirations.csv",
    "/metrics",
    "/readyz",
    "/docs",
    "/nothing",
)


def make(**wanted: Any) -> Starlette:
    """Make an application with settings of the section `[dashboard]`."""
    settings = Settings.model_validate({"dashboard": wanted})
    return create_app(Picture(), settings, metrics=lambda accept: (b"up 1\n", accept), now_ms=lambda: T0)


class Browser:
    """Keep cookies from one request to the next, as a browser does; every request comes from one address."""

    def __init__(self, app: Starlette, *, address: str = "192.0.2.9", scheme: str = "http") -> None:
        self._app, self._address, self._scheme = app, address, scheme
        self.cookies: dict[str, str] = {}

    def ask(
        self, path: str, *, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Ask for a path, or send a form to it; redirects are not followed."""

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False, client=(self._address, 4_711))
            named = {"sec-fetch-site": "same-origin"} if form is not None else {}
            if self.cookies:
                named["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            async with httpx.AsyncClient(transport=transport, base_url=f"{self._scheme}://127.0.0.1") as client:
                answer = await client.request(
                    "GET" if form is None else "POST",
                    path,
                    content=None if form is None else urlencode(form),
                    headers={**named, **(headers or {})},
                )
                self._keep(answer)
                return answer

        return asyncio.run(send())

    def _keep(self, answer: httpx.Response) -> None:
        for name, morsel in SimpleCookie(answer.headers.get("set-cookie", "")).items():
            self.cookies[name] = morsel.value
            if morsel["max-age"] == "0":
                del self.cookies[name]

    def log_in(self, user: str = "alice", password: str = PASSWORD, **form: str) -> httpx.Response:
        """Send the form of the login."""
        return self.ask("/login", form={"user": user, "password": password, **form})


def basic(user: str, password: str) -> dict[str, str]:
    """Write the header of HTTP Basic."""
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a file with one user."""
    return write_users(tmp_path / "users")


@pytest.fixture
def app(file: Path) -> Starlette:
    """Make an application that this user may look at."""
    return make(users_file=str(file))


@pytest.mark.parametrize("wanted", [{"users_file": "*"}, {"token": TOKEN}, {"user_header": "X-User"}])
def test_without_a_login_there_is_health_and_nothing_else(wanted: dict[str, str], file: Path) -> None:
    """Whatever the login is, who has none reads `/healthz` and the page's own files, and hears why of all else."""
    trusted = {"trusted_proxies": "10.0.0.1"} if "user_header" in wanted else {}
    who = Browser(make(**{name: value.replace("*", str(file)) for name, value in wanted.items()}, **trusted))
    for path in GUARDED:
        answer = who.ask(path)
        assert (answer.status_code, set(answer.json())) == (401, {"error", "hint"}), path
        assert answer.headers["content-security-policy"]
    assert [who.ask(path).status_code for path in ("/healthz", "/page/icon.svg")] == [200, 200]
    for wrong in ({"authorization": "Bearer x"}, basic("alice", "x"), {"cookie": f"{COOKIE}=x"}, {"x-user": "alice"}):
        assert who.ask("/api/now", headers=wrong).status_code == 401, wrong


def test_nothing_is_asked_for_by_default() -> None:
    """A dashboard on this machine alone is as before: no login, no form, no cookie."""
    who = Browser(make())
    assert [who.ask(path).status_code for path in ("/", "/api/now", "/metrics", "/login")] == [200, 200, 200, 404]
    assert who.ask("/login", form={}).status_code == 405


def test_a_token_opens_all_of_it() -> None:
    """Scripts and Prometheus send the token; one letter less is no token."""
    who = Browser(make(token=TOKEN))
    for path in ("/api/now", "/metrics", "/", "/readyz"):
        assert who.ask(path, headers={"authorization": f"Bearer {TOKEN}"}).status_code in {200, 503}, path
    for wrong in (TOKEN[:-1], TOKEN + "x", "x"):
        answer = who.ask("/api/now", headers={"authorization": f"Bearer {wrong}"})
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="heartwheel"')


def test_a_person_logs_in_looks_and_logs_out(app: Starlette) -> None:
    """From the page that was wanted to the login and back; after logging out the very same cookie opens nothing."""
    who = Browser(app)
    answer = who.ask("/expired?group=a%2Fb", headers={"accept": "text/html"})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Fexpired%3Fgroup%3Da%252Fb"
    form = who.ask(answer.headers["location"])
    (wanted,) = re.findall(r'name="next" value="([^"]+)"', form.text)
    answer = who.log_in(next=wanted)
    assert (answer.status_code, answer.headers["location"]) == (303, "/expired?group=a%2Fb")
    page = who.ask("/expired")
    assert (page.status_code, "alice" in page.text, "/logout" in page.text) == (200, True, True)
    assert who.ask("/login").headers["location"] == "/"
    kept = dict(who.cookies)
    assert who.ask("/logout", form={}).headers["location"] == "/login"
    assert who.cookies == {}
    who.cookies = kept
    assert who.ask("/api/now").status_code == 401


def test_the_cookie_is_kept_from_scripts_other_sites_and_the_open_wire(file: Path) -> None:
    """HttpOnly, SameSite, with an end and the base path; Secure over TLS, to this server or to a named proxy."""

    def cookie(base: str = "", *, headers: Mapping[str, str] | None = None, **options: str) -> str:
        made = make(users_file=str(file), trusted_proxies="10.0.0.0/8", base_path=base)
        sent = Browser(made, **options).ask(
            f"{base}/login",
            form={"user": "alice", "password": PASSWORD},
            headers={"sec-fetch-site": "same-origin", **(headers or {})},
        )
        return sent.headers["set-cookie"]

    plain = cookie("/dash")
    assert all(f"; {part}" in plain for part in ("HttpOnly", "SameSite=lax", "Max-Age=43200", "Path=/dash"))
    forwarded = {"x-forwarded-proto": "https"}
    assert ["Secure" in text for text in (plain, cookie(scheme="https"))] == [False, True]
    assert "Secure" in cookie(address="10.1.2.3", headers=forwarded)
    assert "Secure" not in cookie(headers=forwarded)


def test_a_session_ends_by_time_and_with_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session ends after its time, when the password changes, and without its user; a forged one never was."""
    monkeypatch.setattr(watched_file, "_LOOK_S", 0.0)
    file, now_ms = write_users(tmp_path / "users", alice="a", bob="b"), [T0]
    users = Users(file)
    sessions = LoginSessions(b"s" * 32, ttl_ms=60_000, stamp_of=users.stamp, now_ms=lambda: now_ms[0])
    alice, bob = sessions.open("alice"), sessions.open("bob")
    assert [getattr(sessions.find(each), "user", None) for each in (alice, bob)] == ["alice", "bob"]
    other = LoginSessions(b"t" * 32, ttl_ms=60_000, stamp_of=users.stamp, now_ms=lambda: now_ms[0])
    for forged in ("", "x", alice[:-1], alice.replace(".", "", 1), other.open("alice"), alice * 50):
        assert sessions.find(forged) is None
    now_ms[0] += 59_999
    assert sessions.find(alice) is not None
    now_ms[0] += 1
    assert sessions.find(alice) is None
    now_ms[0] = T0
    write_users(file, alice="new", carol="c")
    assert [sessions.find(each) for each in (alice, bob)] == [None, None]


def test_a_session_is_known_where_its_secret_is(file: Path) -> None:
    """Two dashboards with one `session_secret` know each other's sessions; without one each has a secret of its own."""
    for secret, status in (("", 401), ("one-secret-of-32-characters-or-more", 200)):
        one, other = (Browser(make(users_file=str(file), session_secret=secret)) for _ in range(2))
        one.log_in()
        other.cookies = one.cookies
        assert (one.ask("/api/now").status_code, other.ask("/api/now").status_code) == (200, status)


def heard_until(app: Starlette, headers: Mapping[str, str], end: Callable[[], object]) -> list[dict[str, Any]]:
    """Open a stream, end by something whoever listens, and return what was heard once the stream has ended."""
    heard: list[dict[str, Any]] = []

    async def listen() -> None:
        named = [(b"host", b"localhost"), *((name.encode(), value.encode()) for name, value in headers.items())]
        scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/api/stream", "raw_path": b"/api/stream"}
        scope |= {"query_string": b"", "headers": named, "client": ("192.0.2.9", 1), "asgi": {"spec_version": "2.3"}}
        asked, begun, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def receive() -> dict[str, Any]:
            if not asked.is_set():
                asked.set()
                return {"type": "http.request", "body": b"", "more_body": False}
            await ended.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            heard.append(message)
            if len(heard) == 2:
                begun.set()

        task = asyncio.create_task(app(scope, receive, send))
        await begun.wait()
        await asyncio.to_thread(end)
        app.state.hub.tick()
        async with asyncio.timeout(30):
            await task

    asyncio.run(listen())
    return heard


def test_a_stream_ends_with_its_session(app: Starlette) -> None:
    """Who logs out, or is removed, hears no more on a stream that was open."""
    who = Browser(app)
    who.log_in()
    cookies = "; ".join(f"{name}={value}" for name, value in who.cookies.items())
    heard = heard_until(app, {"cookie": cookies}, lambda: who.ask("/logout", form={}))
    assert heard[0]["status"] == 200
    assert heard[-1].get("body", b"") == b""


def test_a_stream_ends_with_its_password(app: Starlette, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sends a password with the request hears no more once it is changed, as who has logged in with it."""
    monkeypatch.setattr(watched_file, "_LOOK_S", 0.0)
    heard = heard_until(app, basic("alice", PASSWORD), lambda: write_users(file, alice="another"))
    assert heard[0]["status"] == 200
    assert heard[-1].get("body", b"") == b""


def test_wrong_tokens_are_logged_and_soon_not_even_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    """After some wrong ones from an address it waits, there alone; each that was looked at is a line in the log."""
    app = make(token=TOKEN)
    who, other = Browser(app), Browser(app, address="198.51.100.1")
    right, wrong = ({"authorization": f"Bearer {token}"} for token in (TOKEN, "wrong"))
    assert [who.ask("/api/now", headers=right).status_code for _ in range(2 * OF_ADDRESS_MAX)] == [200] * 60
    with caplog.at_level(logging.WARNING, access_log.name):
        answers = [who.ask("/api/now", headers=wrong).status_code for _ in range(OF_ADDRESS_MAX + 5)]
    assert answers == [401] * OF_ADDRESS_MAX + [429] * 5
    warned = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert warned == ["192.0.2.9: token refused"] * OF_ADDRESS_MAX
    assert who.ask("/api/now", headers=right).status_code == 429
    assert other.ask("/api/now", headers=right).status_code == 200


def test_scripts_may_send_a_password(app: Starlette, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP Basic works without a cookie; the same right password is not hashed anew each time, a new one counts."""
    checked = list[str]()
    real = Users.check

    def check(self: Users, name: str, password: str) -> bool:
        checked.append(name)
        return real(self, name, password)

    monkeypatch.setattr(Users, "check", check)
    monkeypatch.setattr(watched_file, "_LOOK_S", 0.0)
    who = Browser(app)
    assert [who.ask("/api/now", headers=basic("alice", PASSWORD)).status_code for _ in range(4)] == [200] * 4
    assert checked == ["alice"]
    assert who.ask("/api/now", headers=basic("alice", "wrong")).status_code == 401
    write_users(file, alice="another")
    assert who.ask("/api/now", headers=basic("alice", PASSWORD)).status_code == 401
    assert who.ask("/api/now", headers={"authorization": "Basic %%%"}).status_code == 401
    challenged = who.ask("/api/now").headers["www-authenticate"]
    assert challenged == 'Basic realm="heartwheel"'
    # A browser would open a window of its own.
    assert "www-authenticate" not in who.ask("/api/now", headers={"sec-fetch-mode": "cors"}).headers


def test_wrong_passwords_are_refused_and_soon_not_even_looked_at(app: Starlette) -> None:
    """After some wrong ones from an address even the right password waits, there alone; the page says for how long."""
    who, other = Browser(app), Browser(app, address="198.51.100.1")
    for _ in range(OF_ONE_MAX):
        answer = who.log_in(password="wrong")  # noqa: S106
        assert (answer.status_code, "Wrong name or password." in answer.text) == (401, True)
        assert "set-cookie" not in answer.headers
    answer = who.log_in()
    assert (answer.status_code, int(answer.headers["retry-after"]) > WINDOW_S - 60) == (429, True)
    assert who.ask("/api/now", headers=basic("alice", PASSWORD)).status_code == 429
    assert other.log_in().status_code == 303


def test_right_passwords_do_not_count_as_tries() -> None:
    """Attempts are counted by address, by user and by both, for a while; what succeeded is taken back."""
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    for _ in range(3 * OF_ADDRESS_MAX):
        assert attempts.begin("a", "alice") == 0
        attempts.succeed("a", "alice")
    assert [attempts.begin("a", "alice") for _ in range(OF_ONE_MAX + 1)] == [0] * OF_ONE_MAX + [int(WINDOW_S)]
    now[0] = WINDOW_S - 1
    assert (attempts.begin("a", "alice"), attempts.begin("b", "alice")) == (1, 0)
    now[0] = WINDOW_S
    assert attempts.begin("a", "alice") == 0
    now[0] += 2 * WINDOW_S
    assert [attempts.begin("c", str(i)) > 0 for i in range(OF_ADDRESS_MAX + 1)] == [False] * OF_ADDRESS_MAX + [True]
    assert [attempts.begin(str(i), "dave") > 0 for i in range(OF_USER_MAX + 1)] == [False] * OF_USER_MAX + [True]
    now[0] += 2 * WINDOW_S
    net = [attempts.begin(f"2001:db8::{i:x}", str(i)) > 0 for i in range(1, OF_ADDRESS_MAX + 2)]
    assert net == [False] * OF_ADDRESS_MAX + [True]
    for i in range(KEYS_MAX):
        attempts.begin(f"x{i}", f"y{i}")
    assert len(attempts._failed) == KEYS_MAX


def test_unknown_users_take_as_long(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a name that is not there a hash of the same cost is checked, so that time does not tell who is."""
    write_users(file, alice="a")
    file.write_text(f"{file.read_text()}bob:{hash_of('b', cost=6)}\n", encoding="utf-8")
    users, costs = Users(file), list[bytes]()
    real = bcrypt.checkpw

    def checkpw(password: bytes, hashed: bytes) -> bool:
        costs.append(hashed[:7])
        return bool(real(password, hashed))

    monkeypatch.setattr(bcrypt, "checkpw", checkpw)
    assert [users.check(name, "b") for name in ("bob", "nobody", "")] == [True, False, False]
    assert [cost[4:6] for cost in costs] == [b"06"] * 3


def test_long_passwords_count_as_far_as_htpasswd_looks(file: Path) -> None:
    """The first 72 bytes count; what is no text that a hash could be of is wrong, not an error."""
    write_users(file, alice="x" * 72)
    users = Users(file)
    assert [users.check("alice", word) for word in ("x" * 72, "x" * 100, "x" * 71, "\0", "\ud800")] == [
        *(True, True),
        *(False, False, False),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no users"),
        ("# nobody\n", "no users"),
        ("alice\n", "line 1 has no name"),
        ("\nalice:secret\n", "line 2 has no bcrypt hash"),
        ("alice:$apr1$x$y\n", "no bcrypt hash"),
        ("al\x1bice:" + hash_of("x") + "\n", "no name"),
        ("alice:" + hash_of("x").replace("$04$", "$31$") + "\n", "cost of 31"),
        ("\udcff", "not UTF-8"),
    ],
    ids=["empty", "comment", "no hash", "plain", "apr1", "control", "cost", "bytes"],
)
def test_a_file_of_users_that_is_wrong_is_refused_by_line(tmp_path: Path, text: str, words: str) -> None:
    """Each wrong file is refused with its line and what to do, and what stands in it is not repeated."""
    file = tmp_path / "users"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(UsersFileError, match=re.escape(words)) as caught:
        Users(file)
    assert "htpasswd" in str(caught.value.hint) or "NAME" in str(caught.value.hint)
    assert "secret" not in str(caught.value)


def test_a_file_that_goes_wrong_changes_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """While the file is being edited, or is gone, the users stay as they were; the log says so, once a change."""
    monkeypatch.setattr(watched_file, "_LOOK_S", 0.0)
    users = Users(file)
    file.write_text("half a li", encoding="utf-8")
    assert [users.check("alice", PASSWORD) for _ in range(3)] == [True] * 3
    assert len(caplog.records) == 1
    write_users(file, bob="b")
    assert [users.check("alice", PASSWORD), users.check("bob", "b")] == [False, True]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "same-origin"}, 303),
        ({"sec-fetch-site": "none"}, 303),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "", "origin": "http://127.0.0.1"}, 303),
        ({"sec-fetch-site": "", "origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "", "origin": "null"}, 403),
    ],
)
def test_other_sites_log_nobody_in_or_out(app: Starlette, headers: dict[str, str], status: int) -> None:
    """A form that another site sends is refused, by what browsers say of it; one of ours is taken."""
    who = Browser(app)
    form = {"user": "alice", "password": PASSWORD}
    assert who.ask("/login", form=form, headers=headers).status_code == status
    who.log_in()
    assert who.ask("/logout", form={}, headers=headers).status_code == status
    assert (who.ask("/api/now").status_code == 200) is (status == 403)


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "/\tx",
        "",
        "/login",
        "/x\r\ny: z",
    ],
)
def test_the_login_leads_to_no_other_site(app: Starlette, wanted: str) -> None:
    """Whatever address is wanted, the login leads to one of this dashboard."""
    answer = Browser(app).log_in(next=wanted)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_what_was_typed_is_shown_as_text(app: Starlette) -> None:
    """A name full of tags comes back as text; a password never comes back."""
    answer = Browser(app).log_in(user='"><script>alert(1)</script>', password="hunter2")  # noqa: S106
    assert (answer.status_code, "<script>alert" in answer.text, "hunter2" in answer.text) == (401, False, False)


def test_forms_are_bounded(app: Starlette) -> None:
    """A form that is too long, or has too many fields, is refused."""
    who = Browser(app)
    assert who.ask("/login", form={"user": "x" * 9_000}).status_code == 413
    assert who.ask("/login", form={f"f{i}": "1" for i in range(50)}).status_code == 400
    assert who.log_in(user="x" * 300).status_code == 401


def test_a_named_proxy_says_who_looks(caplog: pytest.LogCaptureFixture) -> None:
    """Its header is believed from its address alone, and if it is there once; the log says who looked, from where."""
    made = make(user_header="X-Forwarded-User", trusted_proxies="10.0.0.0/8,::1")
    proxy, stranger = Browser(made, address="10.1.2.3"), Browser(made)
    headers = {"x-forwarded-user": "carol", "x-forwarded-for": "6.6.6.6, 203.0.113.5, 10.9.9.9"}
    caplog.set_level(logging.INFO, logger=access_log.name)
    assert proxy.ask("/api/groups?text=q", headers=headers).status_code == 200
    assert [record.getMessage() for record in caplog.records] == ["203.0.113.5 'carol' (proxy) GET /api/groups 200"]
    # What nginx asked for itself, it hands on.
    assert proxy.ask("/api/now", headers=headers | basic("carol", "x")).status_code == 200
    assert stranger.ask("/api/now", headers=headers).status_code == 401
    assert proxy.ask("/api/now").status_code == 401
    assert "go through the proxy" in proxy.ask("/api/now").json()["hint"]
    page = proxy.ask("/", headers=headers).text
    assert ("carol" in page, "/logout" in page) == (True, False)


def test_two_headers_of_a_user_are_none() -> None:
    """Where a client's header got through beside the proxy's own, nobody knows which one is true."""
    made = make(user_header="X-Forwarded-User", trusted_proxies="10.0.0.0/8")

    async def status(headers: list[tuple[str, str]]) -> int:
        transport = httpx.ASGITransport(made, client=("10.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get("/api/now", headers=headers)).status_code

    one = ("x-forwarded-user", "carol")
    assert asyncio.run(status([one])) == 200
    assert asyncio.run(status([one, ("x-forwarded-user", "root")])) == 401


def test_the_log_says_who_looked_and_keeps_to_one_line(app: Starlette, caplog: pytest.LogCaptureFixture) -> None:
    """Logins, refusals and requests, a line each; no password, no token, no cookie, and no line break of a stranger."""
    caplog.set_level(logging.INFO, logger=access_log.name)
    who = Browser(app)
    who.log_in(user="ali\nce", password="hunter2")  # noqa: S106
    who.log_in(user="ali\x1b[31mce", password="hunter2")  # noqa: S106
    who.log_in()
    who.ask("/api/now")
    who.ask("/page/icon.svg")
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        r"192.0.2.9 'ali\nce': login refused: wrong name or password",
        r"192.0.2.9 'ali\x1b[31mce': login refused: wrong name or password",
        "192.0.2.9 'alice' logged in",
        "192.0.2.9 'alice' (session) GET /api/now 200",
    ]


def _refuse_slowly(*_: object) -> bool:
    time.sleep(0.3)
    return False


def test_a_login_blocks_nobody_else(app: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    """While passwords are checked, which takes a while, others are answered; too many at once have to wait."""
    monkeypatch.setattr(Users, "check", _refuse_slowly)
    transport = httpx.ASGITransport(app, client=("192.0.2.9", 1))

    async def play() -> tuple[float, list[int]]:
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

            def log_in(at: int) -> Any:
                body = urlencode({"user": f"u{at}", "password": "x"})
                return client.post("/login", content=body, headers={"sec-fetch-site": "same-origin"})

            tries = [asyncio.create_task(log_in(at)) for at in range(25)]
            await asyncio.sleep(0.05)
            began = time.monotonic()
            assert (await client.get("/healthz")).status_code == 200
            waited = time.monotonic() - began
            return waited, [answer.status_code for answer in await asyncio.gather(*tries)]

    waited, statuses = asyncio.run(play())
    assert waited < 0.25
    assert set(statuses) == {401, 503}


BASED = ("/heartwheel", "/a/b.c")


@pytest.mark.parametrize("base", BASED)
def test_every_address_has_the_base_path(base: str, file: Path) -> None:
    """Behind a proxy that keeps the path or strips it: pages, assets, API, login and links all lie under the base."""
    who = Browser(make(base_path=base, users_file=str(file), token=TOKEN))
    token = {"authorization": f"Bearer {TOKEN}"}
    for path in ("/", "/expired", "/groups/a%2Fb", "/docs", "/login"):
        page = who.ask(f"{base}{path}", headers=token)
        assert page.status_code == 200, path
        found = re.findall(r'(?:href|src|action)="([^"#]+)"', page.text)
        assert found
        assert [each for each in found if not each.startswith(f"{base}/")] == []
    for path in ("/api/now", "/page/js/app.js", "/metrics", "/openapi.json", "/healthz"):
        assert [who.ask(f"{prefix}{path}", headers=token).status_code for prefix in (base, "")] == [200, 200]
    assert who.ask(base, headers=token).status_code == 200
    assert who.ask("/openapi.json", headers=token).json()["servers"] == [{"url": base}]
    assert who.ask(f"{base}x/api/now", headers=token).status_code == 404
    assert who.ask(f"{base}/expired", headers={"accept": "text/html"}).headers["location"].startswith(f"{base}/login?")
    assert who.ask(f"{base}/login", form={"user": "alice", "password": PASSWORD}).headers["location"] == f"{base}/"
