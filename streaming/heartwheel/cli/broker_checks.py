"""The checks of `heartwheel doctor` that ask the broker: and its topics."""

from __future__ import annotations

from collections.abc import Iterator

from heartwheel.cli.checks import Check, Status, failed
from heartwheel.cli.topics import topic_specs
from heartwheel.settings import Settings


def check_broker(settings: Settings) -> Iterator[Check]:
    """Look whether the broker answers and what its topics are like."""
    from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
    from heartwheel.kafka.topics import ensure_topics

    bootstrap, properties = settings.kafka.bootstrap_servers, settings.kafka.client
    try:
        report = ensure_topics(bootstrap, topic_specs(settings), create=False, properties=properties)
    except (KafkaUnreachableError, KafkaRefusedError) as error:
        yield failed("broker", error)
        yield Check("topics", Status.SKIPPED, "needs the broker")
        return
    yield Check("broker", Status.OK, f"{bootstrap} answers")
    wrong = [f"{d.topic}: {d.setting} is {d.found or 'not set'}, must be {d.wanted}" for d in report.differences]
    if wrong:
        yield Check("topics", Status.BAD, "; ".join(wrong), "change them with kafka-configs, or name other topics")
    elif report.missing:
        yield Check("topics", Status.BAD, f"missing: {', '.join(report.missing)}", "heartwheel topics --create")
    else:
        yield Check("topics", Status.OK, "all there, with broker append times")
