"""IP addresses and networks as people write them: which are of this machine alone, and which are trusted."""

from __future__ import annotations

import ipaddress


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
