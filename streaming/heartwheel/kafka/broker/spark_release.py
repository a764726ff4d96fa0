"""The release of PySpark that is installed, and the set of the lock that has its Kafka connector."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable
from importlib.abc import SourceLoader
from pathlib import Path
from typing import Final
from zipimport import zipimporter

from heartwheel.base.errors import HeartwheelError

_PREFIX: Final = "spark-"


class UnfitSparkError(HeartwheelError):
    """The job does not run on the Spark that is here."""

    exit_code = 2


def installed_spark() -> str:
    """Return the version of the PySpark that an import would find, without importing it.

    It is read from PySpark's own file, since one that `spark-submit` puts on the path is not registered as a package.

    Raises:
        ModuleNotFoundError: there is none.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None or not isinstance(spec.loader, SourceLoader | zipimporter):
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
    text = spec.loader.get_data(str(Path(spec.origin).with_name("version.py"))).decode()
    (version,) = re.findall(r"""__version__.*["'](.+)["']""", text)
    return str(version)


def connector_set(set_names: Iterable[str], version: str) -> str:
    """Return the set of the Kafka connector for a version of PySpark.

    A patch release and a vendor's build, as `4.0.1-amzn-0`, take the set of their minor release.

    Args:
        version: from `installed_spark`.

    Raises:
        UnfitSparkError: the lock has none, so the job does not run on it.
    """
    releases = sorted({name.removeprefix(_PREFIX) for name in set_names if name.startswith(_PREFIX)})
    release = ".".join(version.split(".")[:2])
    if release in releases:
        return _PREFIX + release
    raise UnfitSparkError(
        f"the job does not run on the installed PySpark, which is {version}",
        hint=f"install one of these releases: {', '.join(releases)}",
    )
