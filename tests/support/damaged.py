"""Start the job on one checkpoint after another, in one process, and print how each start ended, one line each.

python -m support.damaged LOG_FILE CHECKPOINT[,CHECKPOINT...] SETTING...
"""

from __future__ import annotations

import sys
from pathlib import Path

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.heartbeats.plugin import heartbeat_job
from heartwheel.engine.runtime.driver.engine import Engine
from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.settings import load_settings


def main(log_file: str, checkpoints: str, *flags: str) -> None:
    """Start the job on each checkpoint.

    Args:
        checkpoints: their folders, with commas.
        flags: settings of the job.
    """
    for checkpoint in checkpoints.split(","):
        settings = load_settings(overrides=[*flags, f"checkpoint.location={checkpoint}"]).settings
        try:
            Engine(heartbeat_job(settings), list(fetch_jars("spark")), log_file=Path(log_file)).run()
        except HeartwheelError as error:
            print(str(error).replace("\n", " "), "| hint:", error.hint)  # noqa: T201 - what the test reads


if __name__ == "__main__":
    main(*sys.argv[1:])
