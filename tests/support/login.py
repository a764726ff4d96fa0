"""A file of users, as htpasswd makes it, with hashes that are cheap to check."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import bcrypt

PASSWORD: Final = "correct horse"  # noqa: S105 - of tests alone
"""Everybody's password."""


def hash_of(password: str, *, cost: int = 4) -> str:
    """Hash a password as `htpasswd -B` does."""
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode().replace("$2b$", "$2y$")


def write_users(file: Path, **passwords: str) -> Path:
    """Write a file of users; without any, that of alice."""
    users = passwords or {"alice": PASSWORD}
    file.write_text("".join(f"{name}:{hash_of(password)}\n" for name, password in users.items()), encoding="utf-8")
    return file
