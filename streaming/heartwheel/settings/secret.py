"""Which values are secrets: shown nowhere, neither by `config` nor in an error."""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "********"
"""What is shown in place of a secret."""

_SECRET: Final = re.compile(
    r"pass(word|phrase|wd)|secret|token|credential|jaas|access[._-]?key|\.key$|\.pem$", re.IGNORECASE
)


def is_secret(path: str) -> bool:
    """Tell by its name whether a setting holds a secret, such as a password or a JAAS line."""
    return _SECRET.search(path) is not None


def shown(path: str, value: object) -> str:
    """Write a value for people: text in quotes, a secret masked."""
    if is_secret(path) and value not in (None, ""):
        return MASK
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {shown(f'{path}.{key}', item)}" for key, item in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value)
