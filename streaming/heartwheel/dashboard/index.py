"""The one HTML file of the page, with the addresses in it as they are behind a proxy."""

from __future__ import annotations

from importlib import resources
from typing import Final

ACCOUNT: Final = "<!-- account -->"
"""Where the page says who has logged in."""

_BASE: Final = '<meta name="heartwheel-base" content="">'


def page_text(base: str) -> str:
    """Read the file.

    Args:
        base: what stands before each path.
    """
    file = resources.files("heartwheel.dashboard") / "page" / "index.html"
    text = file.read_text(encoding="utf-8")
    for attribute in ("href", "src"):
        text = text.replace(f'{attribute}="/', f'{attribute}="{base}/')
    return text.replace(_BASE, _BASE.replace('""', f'"{base}"'))
