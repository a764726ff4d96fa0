"""The users of a file made by `htpasswd -B`: a name and a bcrypt hash per line, read again when the file changes."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import bcrypt

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.watched_file import WatchedFile

NAME_MAX: Final = 255
"""Longest name of a user, characters."""

COST_MAX: Final = 15
"""Highest cost of a hash: each step doubles the time of a login, which is about two seconds here."""

FILE_BYTES_MAX: Final = 1 << 20
"""Longest file of users, bytes."""

_COST_UNKNOWN: Final = 5
_BCRYPT_BYTES: Final = 72
_HASH: Final = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}")


class UsersFileError(HeartwheelError):
    """A file of users cannot be used."""


class Users:
    """The users in the file now: see `heartwheel.base.watched_file`.

    Args:
        file: made by `htpasswd -B`.

    Raises:
        UsersFileError: it cannot be read, or a line of it is wrong.
    """

    def __init__(self, file: Path) -> None:
        self._known = WatchedFile(file, _known_of, "the users")

    def check(self, name: str, password: str) -> bool:
        """Return whether a password is that of a user; takes as long for names that are unknown. It blocks.

        Args:
            password: only its first 72 bytes of UTF-8 count, as with `htpasswd`.
        """
        hashes, dummy = self._known.get()
        known = hashes.get(name)
        right = bcrypt.checkpw(password.encode("utf-8", "surrogatepass")[:_BCRYPT_BYTES], known or dummy)
        return right and known is not None

    def stamp(self, name: str) -> str | None:
        """Return a digest that changes with the password of a user; `None` if there is no such user."""
        known = self._known.get()[0].get(name)
        return hashlib.sha256(known).hexdigest()[:16] if known is not None else None


def read_users(file: Path) -> dict[str, bytes]:
    """Read a file of users.

    Args:
        file: a name, a colon and a bcrypt hash a line; empty lines and those that begin with `#` do not count.

    Returns:
        The hashes by the names.

    Raises:
        UsersFileError: it cannot be read, has no users, or a line of it is wrong; no hash is in the message.
    """
    try:
        with file.open("rb") as lines:
            text = lines.read(FILE_BYTES_MAX + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsersFileError(f"cannot be read: {why}", hint="make it with: htpasswd -B -c FILE NAME") from error
    if len(text.encode()) > FILE_BYTES_MAX:
        raise UsersFileError(f"is longer than {FILE_BYTES_MAX} bytes", hint="name a file that htpasswd -B has made")
    users: dict[str, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            name, hash_ = _user_of(line.strip(), number)
            users[name] = hash_
    if not users:
        raise UsersFileError("has no users", hint="add one with: htpasswd -B FILE NAME")
    return users


def _user_of(line: str, number: int) -> tuple[str, bytes]:
    name, colon, rest = line.partition(":")
    hash_ = rest.partition(":")[0]
    if not colon or not is_name(name):
        hint = f"a line is NAME:HASH, the name of at most {NAME_MAX} characters that can be printed"
        raise UsersFileError(f"line {number} has no name of a user", hint=hint)
    found = _HASH.fullmatch(hash_)
    if found is None:
        hint = f"make it again with: htpasswd -B FILE {name if name.isalnum() else 'NAME'}"
        raise UsersFileError(f"line {number} has no bcrypt hash", hint=hint)
    if not 4 <= int(found[1]) <= COST_MAX:
        hint = "make it again with: htpasswd -B -C 12 FILE NAME"
        raise UsersFileError(f"line {number} has a cost of {int(found[1])}, and {COST_MAX} is the most", hint=hint)
    return name, hash_.encode()


def is_name(name: str) -> bool:
    """Return whether a text can be the name of a user."""
    return bool(name) and len(name) <= NAME_MAX and name.isprintable() and ":" not in name


def _dummy_for(users: Mapping[str, bytes]) -> bytes:
    """Return the hash of an unknown password that takes as long to check as the slowest one of the users."""
    cost = max((int(hash_[4:6]) for hash_ in users.values()), default=_COST_UNKNOWN)
    # The hash need not be of any password, only well formed: checking it takes as long.
    salt = bcrypt.gensalt(cost)
    filler = bcrypt.hashpw(secrets.token_bytes(16), bcrypt.gensalt(4))[29:]
    return salt + filler


def _known_of(file: Path) -> tuple[Mapping[str, bytes], bytes]:
    users = read_users(file)
    return users, _dummy_for(users)
