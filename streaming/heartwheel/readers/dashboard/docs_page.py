"""Plain pages that need no script: the list of the API's endpoints, and the page about troubleshooting."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib import resources
from itertools import pairwise
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from heartwheel.readers.dashboard.openapi import openapi

_TROUBLESHOOTING: Final = resources.files("heartwheel.readers.dashboard") / "troubleshooting.md"
"""In a checkout a link to the documentation's page, in a wheel a copy of it."""


@cache
def docs_page(base: str) -> str:
    """Return the page about the API."""
    document = openapi()
    parts = [_entry(base, path, path_item["get"]) for path, path_item in document["paths"].items()]
    return _page(
        base,
        "API",
        f"<h1>The API of the dashboard</h1><p>{escape(document['info']['description'])}</p>"
        f'<p>For programs: <a href="{base}/openapi.json">openapi.json</a>. '
        f'Back to <a href="{base}/">the dashboard</a>.</p>'
        f"{''.join(parts)}",
    )


@cache
def troubleshooting_page(base: str) -> str:
    """Return docs/troubleshooting.md as a page; its headings have the anchors that links use."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(_TROUBLESHOOTING.read_text(encoding="utf-8"))
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _anchor(following.content))
        for child in token.children or ():
            _keep_within(child)
    body = parser.renderer.render(tokens, parser.options, {})
    return _page(base, "troubleshooting", f'<p>Back to <a href="{base}/">the dashboard</a>.</p>{body}')


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _keep_within(token: Token) -> None:
    """Remove a link to another page of the documentation: it is not served."""
    href = str(token.attrs.get("href", "#"))
    if not href.startswith(("#", "https://")):
        token.attrs = {"title": f"docs/{href} of the project"}


def _page(base: str, title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>heartwheel: {title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'{_sheets(base)}</head><body class="docs">{body}</body></html>'
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
    # A path without a placeholder can be tried at once.
    title = escape(path) if "{" in path else f'<a href="{base}{escape(path)}">{escape(path)}</a>'
    return f"<h2><code>{title}</code></h2><p>{escape(operation['summary'])}</p><dl>{rows}</dl>"
