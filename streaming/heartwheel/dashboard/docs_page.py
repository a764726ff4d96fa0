"""A plain page that lists the API, for people; it needs no script."""

from __future__ import annotations

from functools import cache
from html import escape
from typing import Any

from heartwheel.dashboard.openapi import openapi


@cache
def docs_page(base: str) -> str:
    """Write the page.

    Args:
        base: what stands before each path.
    """
    document = openapi()
    parts = [_entry(base, path, path_item["get"]) for path, path_item in document["paths"].items()]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>heartwheel: API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'{_sheets(base)}</head><body class="docs">'
        f"<h1>The API of the dashboard</h1><p>{escape(document['info']['description'])}</p>"
        f'<p>For programs: <a href="{base}/openapi.json">openapi.json</a>. '
        f'Back to <a href="{base}/">the dashboard</a>.</p>'
        f"{''.join(parts)}</body></html>"
    )


def _sheets(base: str) -> str:
    icon = f'<link rel="icon" href="{base}/page/icon.svg" type="image/svg+xml">'
    return icon + "".join(
        f'<link rel="stylesheet" href="{base}/page/css/{name}.css">' for name in ("tokens", "base", "docs")
    )


def _entry(base: str, path: str, operation: dict[str, Any]) -> str:
    rows = "".join(
        f"<dt><code>{escape(each['name'])}</code></dt><dd>{escape(each.get('description', 'part of the path'))}</dd>"
        for each in operation["parameters"]
    )
    # A path without a hole in it can be tried at once.
    title = escape(path) if "{" in path else f'<a href="{base}{escape(path)}">{escape(path)}</a>'
    return f"<h2><code>{title}</code></h2><p>{escape(operation['summary'])}</p><dl>{rows}</dl>"
