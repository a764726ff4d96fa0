"""The repository of jars: no password in the clear, no redirect to a weaker place, no more bytes than are locked."""

from __future__ import annotations

import hashlib
import http.server
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heartwheel.kafka.broker import jars as jars_module
from heartwheel.kafka.broker.jars import Jar, JarError, fetch
from heartwheel.kafka.broker.repository import Repository, RepositoryError, shown_address
from support.certificates import Authority

JAR = Jar(hashlib.sha256(b"a jar").hexdigest(), 5, ("test",), "org.example:alpha:1.0")


class Server(http.server.ThreadingHTTPServer):
    """Answer each request with what is set."""

    location = ""
    sent = 0
    seen: list[str | None]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        self.server.seen.append(self.headers["authorization"])
        if self.server.location:
            self.send_response(302)
            self.send_header("location", self.server.location)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("connection", "close")
        self.end_headers()
        while self.server.sent < 64 << 20:
            self.server.sent += self.wfile.write(b"a jar" * 10_000)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[tuple[Server, str]]:
    """Serve on a free port, with TLS if a context is given."""
    server = Server(("127.0.0.1", 0), _Handler)
    server.seen = []
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server, f"{'http' if context is None else 'https'}://{{}}127.0.0.1:{server.server_port}/m2"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Make a server's certificate that clients trust."""
    authority = Authority(tmp_path, "authority")
    key, certificate, _ = authority.issue("127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    return context


def _read(address: str) -> str:
    repository = Repository(address)
    try:
        with repository.open("a.jar") as stream:
            return stream.read(5).decode()
    finally:
        repository.close()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://user:hunter2@repo.example/m2", "would get a password without TLS"),
        ("http://hunter2@repo.example/m2", "would get a password without TLS"),
        ("ftp://user:hunter2@repo.example/m2", "must begin with https://"),
        ("//user:hunter2@repo.example/m2", "must begin with https://"),
        ("user:hunter2@repo.example/m2", "must begin with https://"),
        ("https://user:hunter2@repo.example:port/m2", "is none"),
        ("https://user:hun/ter2@repo.example/m2", "is none"),
        ("https://user:hunter2@[repo.example/m2", "is none"),
    ],
)
def test_a_password_is_never_sent_in_the_clear_nor_shown(address: str, words: str) -> None:
    """An address that would send its password without TLS is refused before anything is sent, and masked."""
    with pytest.raises(RepositoryError, match=words) as caught:
        Repository(address)
    assert "hun" not in str(caught.value)


def test_the_command_refuses_such_an_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fetching jars tells it as one error, without the password."""
    monkeypatch.setenv("HEARTWHEEL_MAVEN_REPO", "http://user:hunter2@repo.example/m2")
    monkeypatch.setenv("MAVEN_LOCAL_REPO", str(tmp_path / "local"))
    with pytest.raises(JarError, match="without TLS") as caught:
        fetch([JAR], tmp_path / "cache")
    assert "hunter2" not in str(caught.value)


def test_a_password_goes_over_tls_and_into_no_error(tls: ssl.SSLContext) -> None:
    """Basic authentication reaches a repository with TLS; one that does not answer is named without it."""
    with serving(tls) as (server, address):
        assert _read(address.format("user:hunter2@")) == "a jar"
        assert server.seen == ["Basic dXNlcjpodW50ZXIy"]
    with pytest.raises(RepositoryError) as caught:
        _read(address.format("user:hunter2@"))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1:1/a.jar", "file:///etc/hostname", "ftp://127.0.0.1:1/a", "https://u:p@h/", "https://[h/"],
)
@pytest.mark.parametrize("secure", [True, False])
def test_redirects_lead_to_tls_alone(target: str, secure: bool, tls: ssl.SSLContext) -> None:  # noqa: FBT001 - a column
    """Whatever the scheme of the repository, it cannot send us to a plain address, to a file, or with a login."""
    with serving(tls if secure else None) as (server, address):
        server.location = target
        with pytest.raises(
            RepositoryError, match=r"only https: is followed|HTTP 302|no address"
        ):  # urllib itself refuses a file
            _read(address.format(""))


def test_a_second_redirect_is_judged_like_the_first(tls: ssl.SSLContext) -> None:
    """A chain that begins with TLS must stay there, and the password goes to the first place alone."""
    with serving(tls) as (first, address), serving(tls) as (second, other):
        first.location = f"{other.format('')}/a.jar"
        assert _read(address.format("user:hunter2@")) == "a jar"
        assert second.seen == [None]
        second.location = "http://127.0.0.1:1/a.jar"
        with pytest.raises(RepositoryError, match="only https: is followed"):
            _read(address.format(""))


def test_a_download_ends_at_the_locked_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file that is longer than the lock says is left after its first byte too many, not at its end."""
    monkeypatch.setenv("MAVEN_LOCAL_REPO", str(tmp_path / "local"))
    with serving() as (server, address):
        monkeypatch.setenv("HEARTWHEEL_MAVEN_REPO", address.format(""))
        seen: list[int] = []
        with pytest.raises(JarError, match="longer than the 5 bytes"):
            fetch([JAR], tmp_path / "cache", progress=lambda done, _: seen.append(done))
        assert server.sent < 32 << 20
    assert max(seen) <= JAR.size + 1
    assert not list((tmp_path / "cache").iterdir())
    assert jars_module.fetch([], tmp_path / "cache") == []


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://u:p@repo.example/m2/", "https://********@repo.example/m2/"),
        ("u:p@repo.example", "********@repo.example"),
        ("https://repo.example/@scope/", "https://repo.example/@scope/"),
    ],
)
def test_addresses_are_shown_without_their_login(address: str, shown: str) -> None:
    """What stands before the `@` of a host is masked, and nothing else."""
    assert shown_address(address) == shown
