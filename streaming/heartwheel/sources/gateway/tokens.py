"""Access control: a file of tokens, and of the groups that each may send heartbeats for."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.watched_file import WatchedFile

_CHARS_MIN: Final = 16
_EVERY: Final = "*"


class TokensFileError(HeartwheelError):
    """Lines of the token file are wrong; the message lists them all, and contains no token."""


class Tokens:
    """The groups of each token, as in the file now: see `heartwheel.base.watched_file`.

    Args:
        file: as `read_tokens` reads it.

    Raises:
        TokensFileError: the file cannot be read, or lines of it are wrong.
    """

    def __init__(self, file: Path) -> None:
        self._groups = WatchedFile(file, read_tokens, "the tokens")

    def groups_of(self, token: str) -> frozenset[str] | None:
        """Return the groups that a token allows; `None` for an unknown token."""
        # The lookup is by hash, so that its duration reveals nothing about the known tokens.
        return self._groups.get().get(_hash(token)) if token else None


def may(groups: frozenset[str], group_id: str) -> bool:
    """Return whether a token with these groups allows one group."""
    return group_id in groups or any(name[-1] == _EVERY and group_id.startswith(name[:-1]) for name in groups)


def read_tokens(path: Path) -> dict[bytes, frozenset[str]]:
    """Read lines of a group and a token, separated by blanks; `#` begins a comment.

    Returns:
        The groups by the SHA-256 of their token; a group that ends with `*` allows all groups with that prefix.

    Raises:
        TokensFileError: the file cannot be read, or lines of it are wrong.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise TokensFileError(f"cannot be read: {why}", hint="it has a line GROUP TOKEN for each") from None
    groups, faults = dict[bytes, frozenset[str]](), list[str]()
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2:
            faults.append(f"line {number} is not a group and a token")
        elif len(words[1]) < _CHARS_MIN or not words[1].isascii():
            faults.append(f"line {number} has a token of fewer than {_CHARS_MIN} ASCII characters")
        else:
            key = _hash(words[1])
            groups[key] = groups.get(key, frozenset()) | {words[0]}
    if faults or not groups:
        raise TokensFileError(
            "; ".join(faults) or "has no token", hint="a line is a group and a token: orders s3cret..."
        )
    return groups


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
