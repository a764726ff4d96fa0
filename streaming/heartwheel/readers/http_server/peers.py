"""A client's address, scheme and token. A proxy's word about them counts only if the proxy is named in the settings."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.types import Scope

from heartwheel.readers.http_server.connections import Network, within


def header(scope: Scope, name: str) -> str:
    """Return the value of a header; empty if it is missing or sent twice, because the two may contradict each other."""
    wanted = name.lower().encode("latin-1")
    values = [value for key, value in scope["headers"] if key == wanted]
    return values[0].decode("latin-1").strip() if len(values) == 1 else ""


def has_bearer(scope: Scope, token: str) -> bool:
    """Return whether a request has a token as `Authorization: Bearer`."""
    scheme, _, given = header(scope, "authorization").partition(" ")
    is_token = hmac.compare_digest(given.strip().encode("latin-1", "replace"), token.encode())
    return scheme.lower() == "bearer" and is_token


def peer_of(scope: Scope) -> str:
    """Return the address of the other end of the connection."""
    return scope["client"][0] if scope.get("client") else ""


def is_trusted(scope: Scope, proxies: Collection[Network]) -> bool:
    """Return whether a request came from a proxy that is named in `dashboard.trusted_proxies`."""
    return within(peer_of(scope), proxies)


def client_of(scope: Scope, proxies: Collection[Network]) -> str:
    """Return the address that a request came from: behind named proxies, the last address that is none of theirs."""
    address = peer_of(scope)
    if not within(address, proxies):
        return address
    hops = [
        hop.strip()
        for key, value in scope["headers"]
        if key == b"x-forwarded-for"
        for hop in value.decode("latin-1").split(",")
    ]
    for hop in reversed(hops):
        if not hop.replace(".", "").replace(":", "").isalnum() or len(hop) > 45:
            return address
        address = hop
        if not within(hop, proxies):
            break
    return address


def is_secure(scope: Scope, proxies: Collection[Network]) -> bool:
    """Return whether the client speaks TLS, to this server or to a named proxy."""
    if scope.get("scheme") == "https":
        return True
    return is_trusted(scope, proxies) and header(scope, "x-forwarded-proto").lower() == "https"


def is_same_origin(scope: Scope) -> bool:
    """Return whether a form was sent by a page of this server, or by no browser.

    Browsers say so in `Sec-Fetch-Site`; where they do not, as over plain HTTP, `Origin` must name this host.
    """
    site = header(scope, "sec-fetch-site")
    if site:
        return site in {"same-origin", "none"}
    if not any(name == b"origin" for name, _ in scope["headers"]):
        return True
    return urlsplit(header(scope, "origin")).netloc.lower() == header(scope, "host").lower() != ""
