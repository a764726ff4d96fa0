"""Which places are on this machine alone: folders, masters that run everything in one process, and addresses."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from urllib.parse import unquote, urlsplit


def is_local(location: str) -> bool:
    """Tell whether a location is a folder of a machine, written as a path or as `file:///path`."""
    return "://" not in location or location.startswith("file://")


def folder_of(location: str) -> Path:
    """Name the folder that a local location means.

    Args:
        location: one that `is_local`.
    """
    return Path(unquote(urlsplit(location).path) if location.startswith("file://") else location)


def runs_elsewhere(master: str) -> bool:
    """Tell whether a Spark master runs the work in processes that may be on other machines."""
    return not master.startswith("local")


def is_loopback(host: str) -> bool:
    """Tell whether an address to listen on can be reached from this machine alone.

    Args:
        host: a name or an IP address, one of IPv6 also in brackets. Of names only `localhost` is known.
    """
    bare = host.strip("[]")
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return bare.lower() == "localhost"


def parse_networks(text: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """Read networks, such as `10.0.0.0/8`, or single addresses, with commas between them.

    Raises:
        ValueError: one of them is neither.
    """
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise ValueError(f"must be addresses or networks with commas between them: {error}") from None
