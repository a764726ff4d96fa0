"""Delayed produce: a write with `acks=all` that waits until every in-sync replica has it.

The rules are those of Kafka's `DelayedProduce`. Watch it under the keys of its partitions, and check a partition's key
whenever its high watermark moves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final, Generic, TypeVar

from timing_wheel.delayed_operation import DelayedOperation
from timing_wheel.partitions import Isolation, Partitions

PartitionT = TypeVar("PartitionT", bound=Hashable)

REQUEST_TIMED_OUT: Final = "request_timed_out"
"""The answer for a partition that lacked replicas at the deadline."""


class DelayedProduce(DelayedOperation, Generic[PartitionT]):
    """A write that waits until the high watermark of every partition has reached the written offset.

    Each partition is settled on its own, by its high watermark or by its error. The operation completes when the last
    one is settled. The answer for a partition that is not settled at the deadline is `REQUEST_TIMED_OUT`.

    Args:
        required: for each partition the offset that its high watermark must reach, the last one written plus one.
        partitions: the state of the partitions.
        timeout_ms: how long to wait, milliseconds.
        respond: called once at the end, with the error of each partition, `None` for success.

    Raises:
        ValueError: there is no partition, or the timeout is negative.
    """

    def __init__(
        self,
        required: Mapping[PartitionT, int],
        partitions: Partitions[PartitionT],
        timeout_ms: int,
        respond: Callable[[Mapping[PartitionT, str | None]], None] | None = None,
    ) -> None:
        super().__init__(timeout_ms)
        if not required:
            raise ValueError("nothing was written, so there is nothing to wait for; answer at once")
        self._lacking = dict(required)
        self._partitions = partitions
        self._respond = respond
        self._errors: dict[PartitionT, str | None] = dict.fromkeys(required, REQUEST_TIMED_OUT)

    @property
    def keys(self) -> tuple[PartitionT, ...]:
        """The keys to watch it under, which are its partitions."""
        return tuple(self._errors)

    @property
    def lacking(self) -> dict[PartitionT, int]:
        """The partitions that still lack replicas, with the offset that their high watermark must reach."""
        return dict(self._lacking)

    @property
    def errors(self) -> dict[PartitionT, str | None]:
        """The answer for each partition: `None` for success, and `REQUEST_TIMED_OUT` until it is settled."""
        return dict(self._errors)

    def is_satisfied(self) -> bool:
        """Settle the partitions that can be settled, and return whether all are."""
        for partition, offset in tuple(self._lacking.items()):
            error = self._partitions.error(partition)
            replicated = self._partitions.end(partition, Isolation.HIGH_WATERMARK).offset >= offset
            if error is not None or replicated:
                # As in Kafka the first answer is final: a later error does not replace it.
                self._errors[partition] = error
                del self._lacking[partition]
        return not self._lacking

    def on_complete(self) -> None:
        """Respond with the error of each partition."""
        if self._respond is not None:
            self._respond(self.errors)
