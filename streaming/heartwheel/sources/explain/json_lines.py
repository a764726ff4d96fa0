"""JSON on a line of a log, in the ways that collectors of logs write it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec


def json_of(text: str) -> Any:
    """Return a text as a JSON object or list; `None` if it is none."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def json_objects(text: str) -> Iterator[tuple[Any, int]]:
    """Yield the objects that follow each other on a line, as Firehose writes them, and where each ends."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        while at < len(text) and text[at] in " ,\t\r":
            at += 1
        yield value, at


def bytes_text(values: list[Any]) -> str:
    """Return a message that was written as the numbers of its bytes; empty if it is none."""
    try:
        return bytes(values).decode("utf-8", "replace")
    except (TypeError, ValueError):
        return ""
