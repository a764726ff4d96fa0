"""TLS on the dashboard's own port, over real sockets."""

from __future__ import annotations

import http.client
import socket
import ssl
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from heartwheel.readers.http_server.connection import Limits
from heartwheel.readers.http_server.tls import tls_context
from support.certificates import Authority
from support.dashboard_server import dashboard
from support.job import wait_for


def test_tls_is_spoken_and_silent_handshakes_end(tmp_path: Path) -> None:
    """Who trusts the certificate is served, with TLS 1.2 at least; silence and plain HTTP without a handshake end."""
    authority = Authority(tmp_path, "authority")
    key, certificate, _ = authority.issue("dashboard")
    server = {"tls": tls_context(str(certificate), str(key)), "limits": Limits(request_s=2.0)}
    trusting = ssl.create_default_context(cafile=str(authority.certificate))
    with dashboard(server=server) as running:
        assert running.url_of_server.startswith("https://")
        with socket.create_connection(("127.0.0.1", running.port), timeout=20) as silent:
            wait_for(lambda: len(running.connections) == 1, "the silent one to be counted")
            with closing(
                http.client.HTTPSConnection("127.0.0.1", running.port, timeout=20, context=trusting)
            ) as asking:
                asking.request("GET", "/healthz")
                assert asking.getresponse().status == 200
            assert silent.recv(100) == b""
        with socket.create_connection(("127.0.0.1", running.port), timeout=20) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200" not in plain.recv(100)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", running.port), timeout=20) as end, pytest.raises(OSError):  # noqa: PT011
            old.wrap_socket(end)
        wait_for(lambda: len(running.connections) == 0, "all places to be free")


def test_an_encrypted_key_is_refused_without_asking(tmp_path: Path) -> None:
    """A key with a password ends with an error; nobody is asked for it on the terminal."""
    key, certificate, _ = Authority(tmp_path, "authority").issue("dashboard")
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    encryption = serialization.BestAvailableEncryption(b"secret")
    form = serialization.PrivateFormat.PKCS8
    key.write_bytes(loaded.private_bytes(serialization.Encoding.PEM, form, encryption))
    with pytest.raises(OSError):  # noqa: PT011 - which one is OpenSSL's affair
        tls_context(str(certificate), str(key))
