"""The root of the errors that a person can act on. Any other error that reaches a command is a bug in heartwheel."""

from __future__ import annotations


class HeartwheelError(Exception):
    """An error for a person to read, with a hint; the command line prints it without a traceback.

    Args:
        message: what happened, with the value and the place, in one sentence without a full stop.

    Attributes:
        exit_code: the exit code of a command that ends with it; 2 if the command or the configuration is wrong.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def report(self) -> str:
        """Write the lines that a command prints: `error: ...`, and `hint: ...` if there is one."""
        return f"error: {self}\nhint: {self.hint}" if self.hint else f"error: {self}"
