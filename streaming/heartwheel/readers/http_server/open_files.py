"""The limit of open files, which also limits connections: shells set a low soft limit, which may be raised."""

from __future__ import annotations

import resource
from typing import Final

WANTED: Final = 8_192
"""How many files and connections may be open after `raise_limit`, where the hard limit allows it."""


def raise_limit(wanted: int = WANTED) -> int:
    """Raise the soft limit of open files of this process; it is never lowered, nor raised above the hard limit.

    Returns:
        The limit from now on.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted if soft == resource.RLIM_INFINITY else soft
    target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return target
