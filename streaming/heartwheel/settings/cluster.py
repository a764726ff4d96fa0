"""What a cluster of Spark must have so that what crosses its network is for its own processes alone."""

from __future__ import annotations

from typing import Final

from heartwheel.settings.locations import runs_elsewhere
from heartwheel.settings.models import Settings
from heartwheel.settings.secret import is_secret

AUTHENTICATE: Final = "spark.authenticate"
"""Whether processes of one application ask each other for its secret."""

ENCRYPT: Final = "spark.network.crypto.enabled"
"""Whether what they send each other is encrypted; it takes `AUTHENTICATE`."""

SECRET: Final = "spark.authenticate.secret"  # noqa: S105 - the name of a property
"""The secret, where the cluster's manager does not make one."""


def cluster_properties(settings: Settings) -> dict[str, str]:
    """Give the properties of Spark that guard a cluster's network, before `[spark.conf]` goes over them.

    Args:
        settings: the checked configuration.

    Returns:
        Nothing with a local master, whose processes are of one machine.
    """
    if not runs_elsewhere(settings.spark.master):
        return {}
    secret = {SECRET: settings.spark.auth_secret} if settings.spark.auth_secret else {}
    return {AUTHENTICATE: "true", ENCRYPT: "true"} | secret


def lacks_secret(settings: Settings) -> bool:
    """Return whether the configuration names a standalone cluster that needs a secret, but no secret.

    The master `submitted` is only known when the job starts; Spark itself then refuses to start without a secret.
    """
    properties = cluster_properties(settings) | dict(settings.spark.conf)
    return (
        settings.spark.master.startswith("spark://")
        and properties[AUTHENTICATE].lower() == "true"
        and not properties.get(SECRET, "")
    )


def turned_off(settings: Settings) -> list[str]:
    """Name the guards of a cluster's network that `[spark.conf]` has turned off; none with a local master."""
    conf = settings.spark.conf
    return [
        name
        for name in (AUTHENTICATE, ENCRYPT)
        if name in cluster_properties(settings) and conf.get(name, "true").lower() != "true"
    ]


def client_secrets(settings: Settings) -> list[str]:
    """Name the Kafka client properties that executors get and that must not be read on the way: logins and keys."""
    return sorted(name for name, value in settings.kafka.client.items() if value and _travels(name))


def _travels(name: str) -> bool:
    # The path of a key is no secret, but what lies there travels with the job.
    return is_secret(f"kafka.client.{name}") or name in {"ssl.key.location", "ssl.keystore.location"}
