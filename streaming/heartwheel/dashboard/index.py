"""The one HTML file of the page, with the addresses in it as they are behind a proxy."""

from __future__ import annotations

import html
from importlib import resources
from typing import Final

ACCOUNT: Final = "<!-- account -->"
"""Where the page says who has logged in."""

_ROOT: Final = '<html lang="en">'
_BASE: Final = '<meta name="heartwheel-base" content="">'
_GATEWAY: Final = '<meta name="heartwheel-gateway" content="">'


def page_text(base: str, gateway: str = "", *, from_log: bool = False) -> str:
    """Read the file.

    Args:
        base: what stands before each path.
        gateway: address where workers beat, for the line that shows how; empty shows none.
        from_log: whether brokers' logs are shown, with no engine behind them.
    """
    file = resources.files("heartwheel.dashboard") / "page" / "index.html"
    text = file.read_text(encoding="utf-8")
    if from_log:
        text = text.replace(_ROOT, f'{_ROOT[:-1]} data-source="log">')
    for attribute in ("href", "src"):
        text = text.replace(f'{attribute}="/', f'{attribute}="{base}/')
    text = text.replace(_BASE, _BASE.replace('""', f'"{base}"'))
    return text.replace(_GATEWAY, _GATEWAY.replace('""', f'"{html.escape(gateway)}"'))
