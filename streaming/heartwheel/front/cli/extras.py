"""The extras of the distribution: what each installs, and the error where one is missing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from heartwheel.base.errors import HeartwheelError

EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "kafka": ("kafka", "packaging"),
    "page": (
        *("bcrypt", "confluent_kafka", "httpx", "itsdangerous", "kafka", "markdown_it", "packaging"),
        *("prometheus_client", "starlette", "textual", "uvicorn"),
    ),
    "mcp": ("httpx", "mcp", "starlette", "uvicorn"),
    "job": ("kafka", "numpy", "packaging", "pandas", "pyarrow", "pyspark"),
}
"""The packages that each extra installs, by the names under which they are imported."""

ALL: Final = "all"
"""The extra with all others."""


class MissingExtraError(HeartwheelError):
    """A command needs packages that are not installed."""

    exit_code = 2


def is_installed(extra: str) -> bool:
    """Return whether all packages of an extra are there; nothing is imported."""
    names = EXTRAS.get(extra) or {name for each in EXTRAS.values() for name in each}
    return all(find_spec(name) is not None for name in names)


def require(extra: str, user: str) -> None:
    """Check that an extra is installed.

    Args:
        extra: its name.
        user: what needs it, such as `heartwheel top`.

    Raises:
        MissingExtraError: a package of it is missing.
    """
    if not is_installed(extra):
        raise MissingExtraError(f'{user} needs the extra "{extra}"; hint: pip install "heartwheel[{extra}]"')
