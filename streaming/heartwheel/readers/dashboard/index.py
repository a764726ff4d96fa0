"""The one HTML file of the page, with its addresses adapted to the base path of a proxy."""

from __future__ import annotations

import html
from importlib import resources
from typing import Final

ACCOUNT: Final = "<!-- account -->"
"""The placeholder for the name of the user."""

_ROOT: Final = '<html lang="en">'
_BASE: Final = '<meta name="heartwheel-base" content="">'
_GATEWAY: Final = '<meta name="heartwheel-gateway" content="">'


def page_text(base: str, gateway: str = "", *, from_log: bool = False, follows: bool = False) -> str:
    """Return the text of the page.

    Args:
        gateway: the address of the gateway, for the line that shows how to use it; empty shows none.
        from_log: whether brokers' logs are shown, without an engine.
        follows: whether these are followed as they grow.
    """
    file = resources.files("heartwheel.readers.dashboard") / "page" / "index.html"
    text = file.read_text(encoding="utf-8")
    if from_log:
        text = text.replace(_ROOT, f'{_ROOT[:-1]} data-source="log"{" data-follows" if follows else ""}>')
    for attribute in ("href", "src"):
        text = text.replace(f'{attribute}="/', f'{attribute}="{base}/')
    text = text.replace(_BASE, _BASE.replace('""', f'"{base}"'))
    return text.replace(_GATEWAY, _GATEWAY.replace('""', f'"{html.escape(gateway)}"'))
