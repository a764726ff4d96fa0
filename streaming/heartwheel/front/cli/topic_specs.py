"""The topics according to the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heartwheel.kafka.topic_specs import TopicSpec
    from heartwheel.settings import Settings


def topic_specs(settings: Settings) -> list[TopicSpec]:
    """Return the engine's topics according to the configuration."""
    from heartwheel.kafka.topic_specs import TopicNames, engine_topics

    names = TopicNames(**settings.kafka.topics.model_dump())
    partitions = settings.kafka.partitions
    return engine_topics(names, heartbeat_partitions=partitions, output_partitions=partitions)


def operations_specs(settings: Settings) -> list[TopicSpec]:
    """Return the topics of delayed operations according to the configuration."""
    from heartwheel.kafka.topic_specs import operations_topics

    names = settings.operations.topics
    rejects = settings.kafka.topics.rejects
    return operations_topics(names.requests, names.outcomes, rejects, partitions=settings.kafka.partitions)
