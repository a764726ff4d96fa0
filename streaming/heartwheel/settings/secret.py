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
    r"(?i)pass(word|phrase|wd)|pwd|secret|token|credential|jaas"
    r"|(api|access|account|private|shared|signing)[._-]?key|\.key$|\.pem$"
    r"|[._-]sas([._-]|$)"
    r"|^notify\.url$"
)
"""What the name of a secret looks like: for Python and for Java, which has to hide such values too."""

_SECRET: Final = re.compile(HIDDEN_NAMES)
_JVM_OPTION: Final = re.compile(r"""(-D([^\s=]+)=)("[^"]*"|'[^']*'|\S+)""")


def is_secret(path: str) -> bool:
    """Return whether a setting's name says that it holds a secret, such as a password or a JAAS line."""
    return _SECRET.search(path) is not None


def holds_secret(path: str, value: object) -> bool:
    """Return whether a setting is a secret, or contains one as a JVM option, such as `-Dstore.password=...`."""
    return is_secret(path) or (isinstance(value, str) and masked(value) != value)


def masked(text: str) -> str:
    """Mask the secrets among the options of a JVM (`-Dname=value`) in a text."""
    return _JVM_OPTION.sub(lambda option: f"{option[1]}{MASK}" if is_secret(option[2]) else option[0], text)


def secrets_within(text: str) -> list[str]:
    """List the secrets among the options of a JVM in a text."""
    return [value for _, name, value in _JVM_OPTION.findall(text) if is_secret(name)]


def is_reference(value: object) -> bool:
    """Return whether a secret's value names the file that holds the secret."""
    return isinstance(value, str) and value.startswith(FILE_PREFIX)


def read_reference(value: str) -> str:
    """Read a secret from the file that its value names; line breaks at the end do not count.

    Args:
        value: `file:` and a path.

    Raises:
        OSError: the file cannot be read.
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
    return f'"{masked(value)}"' if isinstance(value, str) else str(value)


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
