"""Who beats, and what it sends: the records of heartwheel's heartbeat topic."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

JOB: Final = "job"
"""The client id of a job between two runs: its session is the time by which the next success must be there."""

JOB_RUN: Final = "job-run"
"""The client id of a job while it runs."""

MEMBER: Final = "HEARTWHEEL_BEATS_MEMBER"
"""The variable of the environment that names the member."""

_MS_PER_UNIT: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION_MS_MAX: Final = 2**31 - 1
_REASON_CHARS_MAX: Final = 200


def parse_duration_ms(value: str | int) -> int:
    """Return the milliseconds of a duration such as `500ms`, `30s`, `1.5m`, `1d`.

    The rule is that of heartwheel's settings: a text needs a unit, as `10` is taken for seconds by some and for
    milliseconds by others, and an integer counts milliseconds.

    Returns:
        The duration in milliseconds, at least 1.

    Raises:
        ValueError: it is no duration or has no unit, or it is longer than 24 days, which no session timeout can hold.
    """
    text = f"{value}ms" if isinstance(value, int) else value.strip()
    if re.fullmatch(r"\d{1,12}", text, re.ASCII):
        raise ValueError(f"{value!r} must be a duration with its unit; hint: write {text}s for seconds")
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?) ?(ms|s|m|h|d)", text, re.ASCII)
    duration_ms = Fraction(match[1]) * _MS_PER_UNIT[match[2]] if match else Fraction(0)
    if duration_ms > _DURATION_MS_MAX:
        raise ValueError(f"{value!r} is too long a duration: at most 24d")
    if not duration_ms or duration_ms.denominator != 1:
        raise ValueError(f'{value!r} is no duration such as "500ms", "30s" or "5m"')
    return int(duration_ms)


def default_member_id(*, job: bool = False) -> str:
    """Return the id of this process: `$HEARTWHEEL_BEATS_MEMBER`, else its host and process id.

    Args:
        job: whether it is a run of a job, whose processes are all the same member; its name is `job` then.
    """
    return os.environ.get(MEMBER) or (JOB if job else f"{socket.gethostname()}-{os.getpid()}")


_last_incarnation = 0


def next_incarnation() -> int:
    """Return a number for a start of a worker, greater than those before it: wall clock time in epoch microseconds.

    Of the clocks only this one goes on over a boot of the machine, and a count would have to be kept on a disk. The
    next start in this process has a greater number even if the clock stands still or is set back. A random number would
    not say which of two starts is the later one.
    """
    global _last_incarnation  # noqa: PLW0603 - the one place that counts; a lock would be held for ever in a fork
    _last_incarnation = max(_last_incarnation + 1, time.time_ns() // 1_000)
    return _last_incarnation


@dataclass(frozen=True, kw_only=True)
class Member:
    """The member that beats.

    Args:
        group_id: the group, never empty.
        member_id: the member, never empty; the same id again is the same member.
        incarnation: which start of the worker this is; it identifies late heartbeats of the previous one.

    Raises:
        ValueError: an id is empty.
    """

    group_id: str
    member_id: str = field(default_factory=default_member_id)
    session_timeout_ms: int = 30_000
    client_id: str = "heartwheel-beats"
    client_host: str = field(default_factory=socket.gethostname)
    incarnation: int = field(default_factory=next_incarnation)

    def __post_init__(self) -> None:
        if not self.group_id or not self.member_id:
            raise ValueError("neither the group nor the member may be empty")

    @property
    def key(self) -> bytes:
        """The record's key: a group's records must be in one partition."""
        return self.group_id.encode()

    def heartbeat(self) -> bytes:
        """Write a heartbeat."""
        return _json(
            group_id=self.group_id,
            member_id=self.member_id,
            session_timeout_ms=self.session_timeout_ms,
            client_id=self.client_id,
            client_host=self.client_host,
            incarnation=self.incarnation,
        )

    def leave(self, reason: str) -> bytes:
        """Write that it leaves, and why; a long reason is cut."""
        return _json(
            type="leave",
            group_id=self.group_id,
            member_id=self.member_id,
            reason=reason[:_REASON_CHARS_MAX],
            incarnation=self.incarnation,
        )

    def fail(self, failure: str) -> bytes:
        """Write that it failed, and how; long words are cut. It says who failed, as it may never have beaten."""
        return _json(
            type="leave",
            group_id=self.group_id,
            member_id=self.member_id,
            failure=failure[:_REASON_CHARS_MAX],
            session_timeout_ms=self.session_timeout_ms,
            client_id=self.client_id,
            client_host=self.client_host,
            incarnation=self.incarnation,
        )


def _json(**fields: str | int) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()
