"""`heartwheel doctor`: check whether everything that heartwheel needs is here."""

from __future__ import annotations

from collections import Counter

import typer
from rich.text import Text

from heartwheel.front.cli.assumption_checks import check_short_outages, name_unmeasured
from heartwheel.front.cli.broker_checks import check_broker
from heartwheel.front.cli.checks import (
    Status,
    check_job,
    check_packages,
    check_private_files,
)
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


def doctor(
    *, bootstrap_servers: BootstrapFlag = None, config: ConfigFile = None, set_: SetFlags = None, json: AsJson = False
) -> None:
    """Check Java, packages, jars, the checkpoint, memory, files with secrets, the brokers, topics and clocks.

    It says where a living member may be expired here, and names what it cannot measure. Exit code 1 if anything is bad;
    a warning does not count. Nothing is created or fetched; to read the broker's clock a few tombstones are written to
    the status topic, and to a checkpoint in an object store a small file, which is deleted again.

    For example:

        heartwheel doctor

        heartwheel doctor --bootstrap-servers kafka:9092 --json
    """
    settings = load(config, set_, kafka__bootstrap_servers=bootstrap_servers).settings
    checks = [
        check_packages(),
        *check_job(settings),
        *check_private_files(settings),
        *check_broker(settings),
        check_short_outages(settings),
        name_unmeasured(settings),
    ]
    if json:
        print_json([check._asdict() for check in checks])
    else:
        table = plain_table("check", "status", "found")
        for check in checks:
            found = check.detail + (f"\nhint: {check.hint}" if check.hint else "")
            table.add_row(check.name, check.status, Text(found))
        stdout().print(table)
        counts = Counter(check.status for check in checks)
        stderr().print(", ".join(f"{count} {status}" for status, count in counts.items()))
    if any(check.status is Status.BAD for check in checks):
        raise typer.Exit(1)
