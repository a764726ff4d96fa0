"""Paths of the API: matched before they are decoded, so that an id may hold anything, also a slash."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote, unquote_to_bytes

from heartwheel.readers.http_server.problems import RequestError

T = TypeVar("T")

# Browsers and proxies resolve the segments "." and "..", also encoded ones, so such an id gets the prefix "~". An id
# that looks like a prefixed one gets one more "~", so that each id has one path. page/js/api.js writes the same.
_DOTS: Final = re.compile(r"~+\.{1,2}")


class Paths(Generic[T]):
    """A table from path templates to values.

    Args:
        table: the value of each template, such as `/api/groups/{group_id}`.
    """

    def __init__(self, table: Mapping[str, T]) -> None:
        self._table = [(template.strip("/").split("/"), what) for template, what in table.items()]

    def find(self, scope: Mapping[str, Any]) -> tuple[T, dict[str, str]] | None:
        """Return the value for a request's path, and the decoded ids in the path; `None` if no template matches.

        Args:
            scope: of ASGI.

        Raises:
            RequestError: 400, if a segment is not UTF-8.
        """
        segments = raw_path(scope).strip("/").split("/")
        for template, what in self._table:
            if _fits(template, segments):
                pairs = zip(template, segments, strict=True)
                return what, {name[1:-1]: _decoded(value) for name, value in pairs if name.startswith("{")}
        return None


def raw_path(scope: Mapping[str, Any]) -> str:
    """Return the path as it was sent, still percent-encoded; ASGI servers may leave that out."""
    raw: bytes | None = scope.get("raw_path")
    return raw.decode("latin-1") if raw is not None else quote(scope["path"])


def _fits(template: Sequence[str], segments: Sequence[str]) -> bool:
    return len(template) == len(segments) and all(
        bool(segment) if name.startswith("{") else name == segment
        for name, segment in zip(template, segments, strict=True)
    )


def _decoded(segment: str) -> str:
    try:
        value = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise RequestError(400, "a part of the path is not UTF-8", "percent-encode ids as UTF-8") from None
    return value[1:] if _DOTS.fullmatch(value) else value
