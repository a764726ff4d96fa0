"""The reference of all metrics, written from the catalogue into docs/metrics.md.

`python -m heartwheel.readers.metrics.reference docs/metrics.md` writes it; tests/metrics/test_metrics_page.py compares
the page with the catalogue.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from heartwheel.readers.metrics.catalogue import SECTIONS
from heartwheel.readers.metrics.metric import Metric

BEGIN: Final = "<!-- made by python -m heartwheel.readers.metrics.reference -->"
"""The line before the reference."""

END: Final = "<!-- end of what is made -->"
"""The line after the reference."""


def reference() -> str:
    """Return the reference of all metrics in Markdown."""
    head = ("| metric | kind | label | meaning |", "|---|---|---|---|")
    rows = (line for title, metrics in SECTIONS.items() for line in _section(title, metrics))
    return "\n".join([*head, *rows, ""])


def _section(title: str, metrics: tuple[Metric, ...]) -> Iterator[str]:
    yield f"| **{title}** | | | |"
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |"


def page_with_reference(page: str) -> str:
    """Return a page with its reference replaced by the present one.

    Args:
        page: the text of the page, with the two lines that mark the place.
    """
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reference()}\n{END}{after}"


def main(path: str = "docs/metrics.md") -> None:
    """Write the reference into the page."""
    page = Path(path)
    page.write_text(page_with_reference(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
