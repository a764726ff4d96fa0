"""Which of Kafka's rules about groups a broker follows, by the requests that it knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from heartwheel.kafka.client import admin_client

_STREAMS_GROUP_HEARTBEAT: Final = 88
"""Its version 1 came with Kafka 4.4, as the static members of streams groups. A broker names the versions that its code
knows, whatever the cluster's `metadata.version` is and whichever protocols of groups are switched on."""


def broker_version(broker: Mapping[str, Any], properties: Mapping[str, str]) -> str:
    """Return `4.4` for a broker of Kafka 4.4 or newer, and `4.3` for an older one.

    Each broker is asked by a client of its own: of a broker that is newer than the one which a client met first,
    kafka-python returns the versions of the older one.

    Args:
        broker: as `describe_cluster` of an admin client lists it.
        properties: Kafka client properties in dotted style.
    """
    host = f"[{broker['host']}]" if ":" in broker["host"] else broker["host"]
    with admin_client(f"{host}:{broker['port']}", properties, doing="ask for its version") as admin:
        known = admin.get_broker_version_data(broker["broker_id"]).api_versions
    return "4.4" if known.get(_STREAMS_GROUP_HEARTBEAT, (0, 0))[1] else "4.3"
