"""What the request log costs the broker that writes it: `doctor` and the docs take the figures from here.

`tests/benchmarks/request_log_bench.py` measures them: alternately with and without the log, the CPU time of the
broker's threads that handle requests and collect garbage.
"""

from __future__ import annotations

from typing import Final

import msgspec


class RequestCost(msgspec.Struct, frozen=True):
    """The cost of one kind of request.

    Args:
        without_us: CPU of the broker without the log, us.
        with_us: with it.
    """

    request: str
    without_us: int
    with_us: int
    line_bytes: int

    @property
    def more_us(self) -> int:
        """How much more CPU it takes with the log, us."""
        return self.with_us - self.without_us

    @property
    def times(self) -> float:
        """How many times the CPU it takes with the log."""
        return self.with_us / self.without_us


CLASSIC: Final = RequestCost("classic heartbeat", 28, 35, 782)
EPOCH: Final = RequestCost("heartbeat of KIP-848", 18, 26, 1_014)
FETCH: Final = RequestCost("fetch of 1 partition", 23, 33, 1_202)
WIDE_FETCH: Final = RequestCost("fetch of 100 partitions", 91, 256, 30_583)

COSTS: Final = (CLASSIC, EPOCH, FETCH, WIDE_FETCH)
"""Kafka 4.3.1 on Java 17, on two cores that were busy with other things: the ratios say more than the microseconds."""


def cost_in_words() -> str:
    """Return a line that says how much more requests cost a broker that logs them."""
    dearer = ", ".join(f"{cost.times:.1f} for a {cost.request}" for cost in COSTS)
    return f"requests take more CPU (times {dearer}), and {_kb(CLASSIC)} to {_kb(WIDE_FETCH)} kB of log each"


def cost_table() -> str:
    """Return the figures as a table in Markdown, as docs/tap.md has it."""
    rows = ["| a request | CPU without | with | | a line |", "|---|---|---|---|---|"]
    rows += [
        f"| {cost.request} | {cost.without_us} us | {cost.with_us} us | +{cost.more_us} us, {cost.times:.1f} times "
        f"| {_kb(cost)} kB |"
        for cost in COSTS
    ]
    return "\n".join(rows)


def _kb(cost: RequestCost) -> str:
    return f"{cost.line_bytes / 1000:.1f}"
