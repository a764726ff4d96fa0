"""What the request log costs: one place has the figures, and all else says the same."""

from __future__ import annotations

from pathlib import Path

from heartwheel.sources.tap.cost import COSTS, WIDE_FETCH, cost_in_words, cost_table

DOCS = Path(__file__).parents[2] / "docs" / "tap.md"


def test_docs_have_the_figures_of_the_code() -> None:
    """The table of docs/tap.md is that of the code, and what `doctor` says names every request of it."""
    assert cost_table() in DOCS.read_text(encoding="utf-8")
    assert all(cost.request in cost_in_words() for cost in COSTS)


def test_more_is_what_the_log_adds() -> None:
    """A request takes longer with the log, and one of many partitions has the longest line."""
    assert all(0 < cost.more_us < cost.with_us and cost.times > 1 for cost in COSTS)
    assert max(COSTS, key=lambda cost: cost.line_bytes) == WIDE_FETCH
