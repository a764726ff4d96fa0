"""Which values are secrets: shown nowhere, neither by `config` nor in an error; and those that lie in files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

MASK: Final = "********"
"""What is shown in place of a secret."""

FILE_PREFIX: Final = "file:"
"""What a secret begins with that is not given itself, but lies in a file."""

HIDDEN_NAMES: Final = (
    r"(?i)pass(word|phrase|wd)|secret|token|credential|jaas|(access|account|private)[._-]?key|\.key$|\.pem$"
    r"|^notify\.url$"
)
"""What the name of a secret looks like: for Python and for Java, which is told to hide such values too."""

_SECRET: Final = re.compile(HIDDEN_NAMES)


def is_secret(path: str) -> bool:
    """Tell by its name whether a setting holds a secret, such as a password or a JAAS line."""
    return _SECRET.search(path) is not None


def is_reference(value: object) -> bool:
    """Tell whether a secret's value names the file that it lies in."""
    return isinstance(value, str) and value.startswith(FILE_PREFIX)


def read_reference(value: str) -> str:
    """Read a secret from the file that its value names; line breaks at the end do not count.

    Args:
        value: `file:` and a path.

    Raises:
        OSError: the file can not be read.
        ValueError: it is empty, or no text.
    """
    text = Path(value.removeprefix(FILE_PREFIX)).read_text(encoding="utf-8").rstrip("\r\n")
    if not text:
        raise ValueError("the file is empty")
    return text


def shown(path: str, value: object) -> str:
    """Write a value for people: text in quotes, a secret masked."""
    if is_secret(path) and value not in (None, ""):
        return MASK
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {shown(f'{path}.{key}', item)}" for key, item in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def secret_of(least: int) -> Callable[[str], str]:
    """Make a check for secrets that are guessed by machines: empty, or at least so many characters.

    Args:
        least: the fewest characters.
    """

    def check(value: str) -> str:
        fits = least <= len(value) <= 1_024 and value.isascii() and value.isprintable() and " " not in value
        if value and not fits:
            raise ValueError(f"must be {least} to 1024 letters, digits and signs of ASCII, without spaces")
        return value

    return check
