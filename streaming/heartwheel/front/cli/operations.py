"""`heartwheel operations`: the job of delayed operations, until it is stopped."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated

import typer

from heartwheel.front.cli.console import BootstrapFlag, ConfigFile, MasterFlag, SetFlags, load
from heartwheel.front.cli.run import connector_jars, log_to_stderr, require_topics, run_until_signal, spark_log_file

if TYPE_CHECKING:
    from heartwheel.engine.runtime.driver.progress import Progress

_log = logging.getLogger("heartwheel")


def operations(
    *,
    checkpoint: Annotated[
        str | None, typer.Option(help="Where offsets and state are kept (operations.checkpoint_location).")
    ] = None,
    master: MasterFlag = None,
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Run the job of delayed operations: "complete this before its deadline, or tell me", until SIGTERM or Ctrl-C.

    It reads JSON from the topic delayed-operations:

        {"type": "watch", "operation_id": "order-17", "keys": ["paid-17"], "timeout_ms": 60000}

        {"type": "complete", "key": "paid-17"}

    and writes to operation-outcomes, once for each operation, whether it completed or expired, when, and what it
    lacked. Operations can also wait for high watermarks, as a produce with acks=all or a fetch does: see
    conf/schemas/delayed-operations.schema.json.

    For example:

        heartwheel operations --bootstrap-servers kafka:9092 --checkpoint /var/lib/heartwheel-operations
    """
    settings = load(
        config,
        set_,
        kafka__bootstrap_servers=bootstrap_servers,
        operations__checkpoint_location=checkpoint,
        spark__master=master,
    ).settings
    from heartwheel.kafka.broker.jars import require_known_spark

    require_known_spark()
    log_to_stderr()
    require_topics(settings, operations=True)
    jars = connector_jars()
    from heartwheel.engine.operations_job.plugin import line_of, operations_job
    from heartwheel.engine.runtime.driver.engine import Engine

    def say(batch: Progress) -> None:
        _log.info("%s", line_of(batch))

    job = operations_job(settings)
    run_until_signal(Engine(job, jars, on_progress=say, on_phase=_log.info, log_file=spark_log_file()), settings)
