"""Errors in answers: JSON with the fault and a hint, in words for people."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.responses import Response

JSON: Final = "application/json"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an error answer.

    Args:
        error: what is wrong, with the value and the place.
        hint: what to do about it.
    """

    error: str
    hint: str


class RequestError(Exception):
    """A request cannot be answered.

    Args:
        status: HTTP's status code, 4xx or 5xx.
        error: what is wrong.
        hint: what to do about it.
        retry_s: after how long to ask again, seconds, if that helps.
    """

    def __init__(self, status: int, error: str, hint: str, *, retry_s: int | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.hint, self.retry_s = status, error, hint, retry_s

    def response(self) -> Response:
        """Return the answer for this error."""
        headers = {} if self.retry_s is None else {"retry-after": str(self.retry_s)}
        return problem_response(self.status, self.error, self.hint, headers)


def problem_response(status: int, error: str, hint: str, headers: dict[str, str] | None = None) -> Response:
    """Return an error answer.

    Args:
        status: HTTP's status code.
        error: what is wrong.
        hint: what to do about it.
        headers: further headers.
    """
    body = msgspec.json.encode(Problem(error=error, hint=hint))
    return Response(body, status, {"cache-control": "no-store"} | (headers or {}), JSON)
