"""What tests of beats share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.gateway_double import GatewayDouble, gateway_double


@pytest.fixture
def gateway() -> Iterator[GatewayDouble]:
    """Run a gateway that keeps what it is sent."""
    with gateway_double() as double:
        yield double
