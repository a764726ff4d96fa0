"""The root of the errors that a person can act on."""

from __future__ import annotations


class HeartwheelError(Exception):
    """Tell a person what went wrong, and what would help; the command line prints it without a traceback.

    Args:
        message: what happened, with the value and the place, in one sentence without a full stop.
        hint: what to do about it, if that is known.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
