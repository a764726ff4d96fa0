"""The one HTML file of the page, with the addresses in it as they are behind a proxy."""

from __future__ import annotations

import html
from importlib import resources
from typing import Final

ACCOUNT: Final = "<!-- account -->"
"""Where the page says who has logged in."""

_BASE: Final = '<meta name="heartwheel-base" content="">'
_GATEWAY: Final = '<meta name="heartwheel-gateway" content="">'


def page_text(base: str, gateway: str = "") -> str:
    """Read the file.

    Args:
        base: what stands before each path.
        gateway: address where workers beat, for the line that shows how; empty shows none.
    """
    file = resources.files("heartwheel.dashboard") / "page" / "index.html"
    text = file.read_text(encoding="utf-8")
    for attribute in ("href", "src"):
        text = text.replace(f'{attribute}="/', f'{attribute}="{base}/')
    text = text.replace(_BASE, _BASE.replace('""', f'"{base}"'))
    return text.replace(_GATEWAY, _GATEWAY.replace('""', f'"{html.escape(gateway)}"'))
