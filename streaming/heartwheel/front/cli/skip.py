"""`heartwheel skip`: get the job past records that end it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from heartwheel.front.cli.console import BootstrapFlag, ConfigFile, SetFlags, load, stdout
from heartwheel.front.cli.run import spark_log_file

if TYPE_CHECKING:
    from heartwheel.engine.runtime.driver.checkpoint_store import CheckpointStore
    from heartwheel.engine.runtime.driver.planned_batch import PlannedBatch
    from heartwheel.engine.runtime.driver.skip import Skip
    from heartwheel.settings import Settings

_REASON_CHARS_MAX: Final = 300


def skip(
    *,
    partition: Annotated[int, typer.Option(min=0, help="The partition.")],
    offset: Annotated[int, typer.Option(min=0, help="The first offset to skip.")],
    reason: Annotated[str, typer.Option(help="The reason; it is kept with each of them.")],
    to: Annotated[
        int | None, typer.Option(min=0, help="The last offset; by default that of the first one's record batch.")
    ] = None,
    operations: Annotated[bool, typer.Option("--operations", help="For the job of delayed operations.")] = False,
    checkpoint: Annotated[str | None, typer.Option(help="The job's checkpoint (checkpoint.location).")] = None,
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Get the job past records that end it, such as one that unpacks to a gigabyte: it names them at its third start.

    The job skips exactly these offsets at its next start, and reads everything else. Each is counted on the
    topic of rejects, with the cause `skipped` and the reason, but without its value, which was never read. Whom such a
    record would have kept alive may be expired. Exit code 1 if the offsets are not in the batch that the job could not
    finish.

    For example:

        heartwheel skip --partition 3 --offset 18231 --reason "a bomb, see INC-7"
    """
    from heartwheel.engine.runtime.driver.skip import ask

    key = "operations__checkpoint_location" if operations else "checkpoint__location"
    settings = load(config, set_, kafka__bootstrap_servers=bootstrap_servers, **{key: checkpoint}).settings
    location = settings.operations.checkpoint_location if operations else settings.checkpoint.location
    topic = settings.operations.topics.requests if operations else settings.kafka.topics.heartbeats
    wanted = _skip(settings, topic, partition, offset, to, reason)
    with _checkpoint(settings, location, topic) as (store, batch):
        request = ask(store, batch, wanted)
    stdout().print(
        f"batch {request.batch} will pass over {topic} partition {wanted.partition} offsets {wanted.first} to "
        f"{wanted.last} when the job is started next",
    )


def _skip(settings: Settings, topic: str, partition: int, offset: int, to: int | None, reason: str) -> Skip:
    """Return the skip for these offsets; the records in the topic decide how far it must go."""
    from heartwheel.engine.runtime.driver.skip import Skip, SkipError
    from heartwheel.kafka.oversized import look_at

    if not 0 < len(reason.strip()) <= _REASON_CHARS_MAX:
        raise SkipError(f"the reason must have 1 to {_REASON_CHARS_MAX} characters, and has {len(reason.strip())}")
    kafka = settings.kafka
    found = look_at(kafka.bootstrap_servers, topic, partition, offset, properties=kafka.client)
    if found is None:
        raise SkipError(f"there is no record at {topic} partition {partition} offset {offset}")
    last = found.last_offset if to is None else to
    if found.oversized is not None and last < found.last_offset:
        raise SkipError(
            f"offsets {offset} to {last} end inside a record batch, to be skipped as a whole: {found.oversized}",
            hint=f"--to {found.last_offset}",
        )
    return Skip(partition=partition, first=offset, last=last, append_ms=found.append_ms, reason=reason.strip())


@contextmanager
def _checkpoint(settings: Settings, location: str, topic: str) -> Iterator[tuple[CheckpointStore, PlannedBatch | None]]:
    """Open a checkpoint, with Spark if only Spark can reach it."""
    from heartwheel.engine.runtime.driver.checkpoint import CheckpointError, read_manifest
    from heartwheel.engine.runtime.driver.checkpoint_store import open_store
    from heartwheel.engine.runtime.driver.planned_batch import planned_batch
    from heartwheel.settings.locations import is_local

    with ExitStack() as stack:
        spark = None
        if not is_local(location):
            from heartwheel.front.cli.inspect_state import session_on_one_core

            spark = stack.enter_context(session_on_one_core(settings, spark_log_file()))
        manifest = read_manifest(location, spark)
        if manifest is None:
            raise CheckpointError(f"there is no checkpoint at {location}", hint="name it with --checkpoint")
        if manifest.topic != topic:
            raise CheckpointError(
                f"the checkpoint {location} is of a job that reads {manifest.topic}, not {topic}",
                hint="name that of the job with --checkpoint; --operations means the job of delayed operations",
            )
        try:
            store = open_store(location, spark)
            assert store is not None, "there is a session where one is needed"  # noqa: S101 - for the type checker
            yield store, planned_batch(store, topic)
        except OSError as error:
            raise CheckpointError(f"the checkpoint {location} cannot be used: {error}") from None
