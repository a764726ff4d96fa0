"""`heartwheel top`: the picture in a terminal."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from heartwheel.front.cli.console import AsJson, BootstrapFlag, ConfigFile, SetFlags, load, print_json, stdout


def top(
    *,
    once: Annotated[bool, typer.Option("--once", help="Print one snapshot and exit, as into a pipe.")] = False,
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
    json: AsJson = False,
) -> None:
    """Show in a terminal the state of the engine, who was expired and why, who is next, and which groups rebalance.

    It reads the topics that the job writes, and changes nothing. Keys: Tab goes to the next table, Enter explains why a
    member was expired, f filters, p pauses, q quits. --json prints one snapshot for machines.

    For example:

        heartwheel top --bootstrap-servers kafka:9092

        heartwheel top --json | jq .now.health.sentence
    """
    settings = load(config, set_, kafka__bootstrap_servers=bootstrap_servers).settings
    import logging

    from heartwheel.readers.top.snapshot import document, print_snapshot
    from heartwheel.readers.top.watch import Watch

    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # the screen shows whether Kafka answers
    logging.getLogger("heartwheel.kafka.bounded").setLevel(logging.CRITICAL)  # it would be written over the screen
    with Watch(settings) as watch:
        if not (once or json or not (sys.stdout.isatty() and sys.stdin.isatty())):
            from heartwheel.readers.top.app import Top

            Top(watch).run()
            return
        watch.settle()
        frame = watch.frame()
    if json:
        print_json(document(frame))
    else:
        print_snapshot(stdout(), frame)
