"""The parent of Spark's Python workers on this machine: started by Spark as `spark.python.daemon.module`.

Every Python task of Spark calls `importlib.invalidate_caches()`. With PySpark's zip archives on the path that reads
their directories anew, 70 to 80 ms of CPU a task, four tasks a batch; PySpark is installed beside heartwheel, so they
are left out. And what the workers need is imported here, once, before they are forked.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable


def without_archives(path: Iterable[str]) -> list[str]:
    """Leave the archives that Spark puts on the path of its workers out of a path: PySpark's own, and Py4J's."""
    return [entry for entry in path if not entry.endswith(("/pyspark.zip", "-src.zip"))]


def main() -> None:
    """Import what the workers need, and serve as PySpark's own daemon does."""
    sys.path[:] = without_archives(sys.path)
    # Only now: what is imported before comes out of the archives.
    from pyspark import daemon, worker  # noqa: F401, PLC0415

    import heartwheel.engine.runtime.state.state_function  # noqa: F401, PLC0415

    gc.freeze()  # what is imported stays shared with the workers: no collection touches its pages
    daemon.manager()


if __name__ == "__main__":
    main()
