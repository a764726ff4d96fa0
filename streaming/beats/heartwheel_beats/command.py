"""`heartwheel-beat`: start a worker, beat while it lives, and report how it ended."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from .beating import Beats
from .checks import AliveFile, Check, Command, TcpPort
from .host_names import held_member_id
from .member import MEMBER, parse_duration_ms
from .senders import BeatsError, Sender
from .supervisor import Supervisor

_EXIT_USAGE = 2


def main() -> None:
    """Run the command line, and end the process with the worker's exit code."""
    parser = argparse.ArgumentParser(
        prog="heartwheel-beat",
        description="Start a worker, beat for it while it lives, and report how it ended.",
        epilog="For example: heartwheel-beat --group orders --tcp 8080 -- ./worker --fast",
    )
    parser.add_argument("--group", required=True, help="the group, such as the name of a service")
    parser.add_argument("--member", help="the member's id; the default is HOST-PROGRAM, or HOST-PROGRAM-2")
    parser.add_argument("--session", default="30s", help="how long it may be silent (30s)")
    parser.add_argument("--to", help="http://GATEWAY:8486 or kafka://HOST:PORT; else $HEARTWHEEL_BEATS_TO")
    parser.add_argument("--alive-file", metavar="PATH", help="beat only while the worker touches it")
    parser.add_argument("--tcp", type=int, metavar="PORT", help="beat only while this port takes connections")
    parser.add_argument("--check", metavar="CMD", help="beat only while this command ends with 0")
    parser.add_argument("--start-timeout", default="5m", help="how long the checks may take to be well at first (5m)")
    parser.add_argument("--ok-exit", default="0", metavar="CODES", help="exit codes that are no failure, as 0,143")
    parser.add_argument("--every", metavar="TIME", help="it is a job: how often it runs, such as 24h")
    parser.add_argument("--grace", metavar="TIME", help="with --every: how much later it may be done (1h)")
    parser.add_argument("--limit", metavar="TIME", help="how long it may take at most")
    parser.add_argument("worker", nargs="+", help="the worker and its arguments, after --")
    given = parser.parse_args()
    try:
        code = beat_for(
            given.worker,
            group=given.group,
            member=given.member,
            session=given.session,
            to=given.to,
            alive_file=given.alive_file,
            tcp=given.tcp,
            check=given.check,
            start_timeout=given.start_timeout,
            ok_exit=given.ok_exit,
            every=given.every,
            grace=given.grace,
            limit=given.limit,
        )
    except (BeatsError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - to people
        code = _EXIT_USAGE
    sys.exit(code)


def beat_for(  # noqa: PLR0913 - the options of a command, all named
    worker: Sequence[str],
    *,
    group: str,
    member: str | None = None,
    session: str = "30s",
    to: str | None = None,
    token: str | None = None,
    sender: Sender | None = None,
    alive_file: str | None = None,
    tcp: int | None = None,
    check: str | None = None,
    start_timeout: str = "5m",
    ok_exit: str = "0",
    every: str | None = None,
    grace: str | None = None,
    limit: str | None = None,
) -> int:
    """Start a worker, beat for it while it lives and the checks are well, and report how it ended.

    Args:
        worker: its program and arguments.
        group: as `Beats` has it; so are member, session, to, token, sender, every, grace and limit.
        member: likewise; without it and `$HEARTWHEEL_BEATS_MEMBER` that of `held_member_id`, which a restart keeps.
        session: see there.
        to: see there.
        token: see there.
        sender: see there.
        alive_file: a file that the worker must touch at least once a session.
        tcp: a port of this machine that must take connections.
        check: a command that must end with 0.
        start_timeout: how long the checks may take to be well for the first time, until the worker has failed.
        ok_exit: exit codes beside 0 that are no failure, with commas between.
        every: see there.
        grace: see there.
        limit: see there.

    Returns:
        The exit code for this process.

    Raises:
        ValueError: a duration, an id, the port, the check or an exit code is wrong.
        BeatsError: the address is wrong.
    """
    logging.basicConfig(level=logging.WARNING, format="heartwheel: %(message)s")
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    for option, text in {
        "session": session,
        "start-timeout": start_timeout,
        "every": every,
        "grace": grace,
        "limit": limit,
    }.items():
        if text is not None:
            _check_duration(option, text)
    supervisor, checks = Supervisor(), list[Check]()
    if alive_file is not None:
        checks.append(AliveFile(alive_file, parse_duration_ms(session) / 1000))
    if tcp is not None:
        if not 0 < tcp < 2**16:
            raise ValueError(f"--tcp {tcp} is no port: it must be 1 to 65535")
        checks.append(TcpPort(tcp))
    if check is not None:
        checks.append(Command(check, supervisor.run))
    start_s, ok_codes = parse_duration_ms(start_timeout) / 1000, _codes(ok_exit)
    with ExitStack() as held:
        if member is None and every is None and not os.environ.get(MEMBER):
            member = held.enter_context(held_member_id(group, worker[0]))
        beats = Beats(
            group, member=member, session=session, to=to, token=token, sender=sender, every=every, grace=grace,
            limit=limit,
        )  # fmt: skip
        return supervisor.supervise(worker, beats, checks, start_s=start_s, ok_codes=ok_codes)


def _check_duration(option: str, text: str) -> None:
    """Raise a `ValueError` that names the option if its value is no duration."""
    try:
        parse_duration_ms(text)
    except ValueError as error:
        raise ValueError(f"--{option} {error}") from None


def _codes(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(re.fullmatch("[0-9]{1,3}", word) and int(word) < 256 for word in words):
        raise ValueError(f"--ok-exit {text!r} are no exit codes such as 0,143")
    return [int(word) for word in words]
