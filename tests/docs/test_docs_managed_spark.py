"""The packages that the page on managed Spark lists are all that the job imports, beside those of the service."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

PAGE = (Path(__file__).parents[2] / "docs" / "managed-spark.md").read_text(encoding="utf-8")
OF_THE_SERVICE = ("pyspark", "numpy", "pandas", "pyarrow")
IMPORTED = """
import sys
import heartwheel.front.cli, heartwheel.front.cli.run, heartwheel.front.cli.topic_specs, heartwheel.kafka.topics
import heartwheel.engine.heartbeats.plugin, heartwheel.engine.runtime.driver.engine
import heartwheel.engine.runtime.driver.reporter, heartwheel.readers.metrics.job_metrics
files = {name.partition(".")[0]: str(getattr(module, "__file__", "")) for name, module in sys.modules.items()}
print(*(name for name, file in files.items() if "site-packages" in file))
"""


def _with_dependencies(requirements: list[str]) -> set[str]:
    """Return the names of packages and of all that they need, from what is installed."""
    found: dict[str, set[str]] = {}
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        extras = {"", *requirement.extras} - found.get(name, set())
        if not extras:
            continue
        found.setdefault(name, set()).update(extras)
        for text in metadata.requires(name) or []:
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(needed)
    return set(found)


def test_the_packages_of_the_page_are_all_that_the_job_imports() -> None:
    """A driver with them and the service's own finds every module."""
    (block,) = re.findall(r"^pip install (\"kafka-python.*?)\n```", PAGE, re.DOTALL | re.MULTILINE)
    listed = re.findall(r'"([^"]+)"', block)
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    distributions = metadata.packages_distributions()
    imported = {
        re.sub(r"[-_.]+", "-", name).lower() for module in done.stdout.split() for name in distributions.get(module, ())
    }
    assert {"pyspark", "kafka-python", "msgspec"} <= imported
    # Starlette imports a parser of forms where there is one, and here it comes with another extra.
    optional = {"setuptools", "python-multipart"}
    assert imported - _with_dependencies([*listed, *OF_THE_SERVICE]) - optional == set()
