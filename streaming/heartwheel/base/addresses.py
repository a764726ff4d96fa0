"""IP addresses and networks as people write them: which are of this machine alone, and which are trusted."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on can be reached only from this machine.

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


def network_of(address: str) -> str:
    """Return the network that the limits of one address count: of IPv6 the /64, as one host has all of its addresses.

    Args:
        address: an IP address; anything else stands for itself. An IPv4 address within IPv6 counts as IPv4.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))
