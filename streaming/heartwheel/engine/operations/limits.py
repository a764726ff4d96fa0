"""The limits of a shard of operations (promise P6)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class OperationLimits:
    """The limits of what one shard holds.

    Args:
        operations_max: most operations, including those that ended and are remembered.
        waiting_max: most records that wait for their place in the order of the log.
        timeout_ms_max: longest timeout of an operation, ms.
        remembered_ms: how long a high watermark and the id of an ended operation are remembered, ms.
    """

    operations_max: int = 250_000
    watermarks_max: int = 100_000
    waiting_max: int = 1_000_000
    timeout_ms_max: int = 86_400_000
    remembered_ms: int = 3_600_000
