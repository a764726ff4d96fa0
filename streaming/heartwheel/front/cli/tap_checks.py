"""The check of `heartwheel doctor` for taps: which brokers log their requests, and what that costs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from heartwheel.front.cli.checks import DoctorCheck, Status

if TYPE_CHECKING:
    from heartwheel.settings import Settings

REQUEST_LOG: Final = "request log"

_OFF_HINT: Final = (
    "if no tap reads them: kafka-configs.sh --alter --entity-type broker-loggers --entity-name ID "
    "--add-config kafka.request.logger=INFO"
)
_ON_HINT: Final = "docs/tap.md shows how to switch it on at run time"


def check_request_logs(settings: Settings) -> DoctorCheck:
    """Check the level of each broker's request logger."""
    from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError, admin_client
    from heartwheel.sources.tap.echo import logger_level

    kafka = settings.kafka
    try:
        with admin_client(kafka.bootstrap_servers, kafka.client, doing="ask for request loggers") as admin:
            brokers = [int(broker["broker_id"]) for broker in admin.describe_cluster()["brokers"]]
            levels = {broker: logger_level(admin, broker) for broker in brokers}
    except (KafkaUnreachableError, KafkaRefusedError) as error:
        return DoctorCheck(REQUEST_LOG, Status.SKIPPED, f"it could not be checked: {error}")
    return rate_request_logs(levels, feeds=settings.engine.feeds)


def rate_request_logs(levels: Mapping[int, str], *, feeds: str) -> DoctorCheck:
    """Rate the levels of the request loggers.

    Args:
        levels: by the broker's id.
        feeds: those that the job trusts, with commas between them.
    """
    from heartwheel.sources.tap.cost import cost_in_words

    cost = cost_in_words()
    logging = sorted(broker for broker, level in levels.items() if level in {"DEBUG", "TRACE"})
    named = ", ".join(map(str, logging))
    if logging and feeds:
        return DoctorCheck(REQUEST_LOG, Status.OK, f"on at {named}, for taps: {cost}")
    if logging:
        return DoctorCheck(REQUEST_LOG, Status.WARN, f"on at {named}, though no feed is trusted: {cost}", _OFF_HINT)
    if feeds:
        return DoctorCheck(REQUEST_LOG, Status.WARN, f"off at every broker, and {feeds} may be taps on one", _ON_HINT)
    return DoctorCheck(REQUEST_LOG, Status.OK, "off at every broker, because no tap is configured")
