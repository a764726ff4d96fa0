"""Python's cycle collector, kept out of a batch."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_cycle_collection() -> Iterator[None]:
    """Leave cycles for later: a batch makes none, but hundreds of thousands of objects, looked at again and again.

    What is not used any more is freed at once as ever, by its count of references.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
