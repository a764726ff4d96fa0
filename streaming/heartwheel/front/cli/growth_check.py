"""The check of `heartwheel doctor` for partitions that were added to the heartbeat topic."""

from __future__ import annotations

from heartwheel.base.phrases import count
from heartwheel.front.cli.checks import DoctorCheck, Status
from heartwheel.settings import Settings


def check_growth(settings: Settings, topic: str) -> DoctorCheck:
    """Check whether partitions were added to a topic, and whether a new checkpoint would know it."""
    from heartwheel.engine.runtime.driver.growth import former_counts, seems_to_have_grown_from
    from heartwheel.kafka.client import reader

    kafka = settings.kafka
    with reader(kafka.bootstrap_servers, kafka.client, doing=f"look at topic {topic}") as consumer:
        partitions = len(consumer.partitions_for_topic(topic) or ())
    named = former_counts(settings, topic, partitions)
    older = seems_to_have_grown_from(settings, topic)
    return rate_growth(partitions, named, older, starting_offsets=kafka.starting_offsets)


def rate_growth(partitions: int, named: tuple[int, ...], older: int | None, *, starting_offsets: str) -> DoctorCheck:
    """Rate what a new checkpoint would know of a topic's growth.

    Args:
        named: how many it had before, by the ticks in it.
        older: how many of its partitions began long before the others; `None` if none did.
        starting_offsets: where a new checkpoint starts, `earliest` or `latest`.
    """
    if older is not None and older not in named and starting_offsets != "latest":
        return DoctorCheck(
            "growth",
            Status.WARN,
            f"partition {older} and those behind it began long after the others, and no tick tells of their growth: "
            "a new checkpoint may expire living members while it reads the backlog",
            "start a new checkpoint with kafka.starting_offsets=latest; one that exists is not concerned",
        )
    if named:
        counts = ", ".join(map(str, named))
        return DoctorCheck(
            "growth", Status.OK, f"grown from {counts} to {count(partitions, 'partition')}, as its ticks tell"
        )
    return DoctorCheck("growth", Status.OK, f"{count(partitions, 'partition')}, none of which seems to have been added")
