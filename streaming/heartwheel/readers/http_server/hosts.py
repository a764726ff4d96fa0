"""The host names of a dashboard. A request under another name is how a foreign page would read it (DNS rebinding)."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final, NamedTuple

from starlette.types import Scope

from heartwheel.base.addresses import is_loopback

LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Names of this machine."""


class Hosts(NamedTuple):
    """The names and addresses that a dashboard answers to.

    Args:
        names: names and addresses without port, in small letters.
        addresses: whether any IP address will do: no foreign page can make a browser send one that is not its own.
    """

    names: frozenset[str]
    addresses: bool

    def allows(self, name: str) -> bool:
        """Return whether a name, in small letters and without port, is allowed."""
        return name in self.names or (self.addresses and _is_address(name))


def hosts_for(bound_to: str, allowed: str) -> Hosts:
    """Return the allowed host names.

    Args:
        bound_to: the address it listens on.
        allowed: `dashboard.allow_hosts`.
    """
    named = frozenset(name.strip().lower() for name in allowed.split(",") if name.strip())
    if named or is_loopback(bound_to):
        return Hosts(named | LOCAL_NAMES, addresses=False)
    own = socket.gethostname().lower()
    return Hosts(LOCAL_NAMES | {own, own.partition(".")[0], bound_to.lower()}, addresses=True)


def host_of(scope: Scope) -> str:
    """Return the host name, without port, that a request was sent to; empty if it names none or an impossible one."""
    value = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1").lower()
    name = value[: value.index("]") + 1] if value.startswith("[") and "]" in value else value.partition(":")[0]
    # The name is repeated in the hint, which people paste into a shell.
    return name if name and all(letter.isalnum() or letter in "-._[]:" for letter in name) else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name[1:-1] if name.startswith("[") else name)
    except ValueError:
        return False
    return True
