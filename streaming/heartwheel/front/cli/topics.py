"""`heartwheel topics`: the state of the topics, what is wrong with them, and creating the missing ones."""

from __future__ import annotations

from typing import Annotated

import typer

from heartwheel.front.cli.broker_checks import bound_it, unbounded
from heartwheel.front.cli.console import (
    AsJson,
    BootstrapFlag,
    ConfigFile,
    SetFlags,
    load,
    plain_table,
    print_json,
    stderr,
    stdout,
)
from heartwheel.front.cli.topic_specs import operations_specs, topic_specs


def topics(
    *,
    operations: Annotated[
        bool, typer.Option("--operations", help="Those of `heartwheel operations` instead of those of the engine.")
    ] = False,
    create: Annotated[bool, typer.Option("--create", help="Create those that are missing.")] = False,
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
    json: AsJson = False,
) -> None:
    """Show the topics heartwheel reads and writes, and create those that are missing.

    Topics that exist are never changed; what is wrong with them is listed. Exit code 1 if one is missing or wrong.

    For example:

        heartwheel topics

        heartwheel topics --create --bootstrap-servers kafka:9092

        heartwheel topics --operations --create
    """
    from heartwheel.kafka.client import WATCHED_TIMEOUT_MS
    from heartwheel.kafka.topics import describe_topics, ensure_topics

    settings = load(config, set_, kafka__bootstrap_servers=bootstrap_servers).settings
    bootstrap, properties = settings.kafka.bootstrap_servers, settings.kafka.client
    specs = operations_specs(settings) if operations else topic_specs(settings)
    report = ensure_topics(
        bootstrap, specs, create=create, properties=properties, connect_timeout_ms=WATCHED_TIMEOUT_MS
    )
    states = describe_topics(bootstrap, [spec.name for spec in specs], properties=properties)
    wrong = {difference.topic: difference for difference in report.differences}
    rows = []
    for spec in specs:
        state, fault = states.get(spec.name), wrong.get(spec.name)
        if state is None:
            status = "missing"
        elif fault:
            status = f"wrong: {fault.setting} is {fault.found or 'not set'}, must be {fault.wanted}"
        else:
            status = "created" if spec.name in report.created else "ok"
        rows.append((spec.name, state.partitions if state else 0, state.replication_factor if state else 0, status))
    _show(rows, as_json=json)
    for found in report.advice:
        stderr().print(f"warning: {unbounded(found)}\nhint: {bound_it(found)}")
    if any(row[3] not in {"ok", "created"} for row in rows):
        if report.missing:
            command = "heartwheel topics --operations --create" if operations else "heartwheel topics --create"
            stderr().print(f"hint: {command} makes the missing ones")
        raise typer.Exit(1)


def _show(rows: list[tuple[str, int, int, str]], *, as_json: bool) -> None:
    keys = ("topic", "partitions", "replicas", "status")
    if as_json:
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    table = plain_table(*keys)
    for name, partitions, replicas, status in rows:
        table.add_row(name, str(partitions), str(replicas), status)
    stdout().print(table)
