"""`heartwheel replay`: the verdicts of a log, without Spark and Kafka."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, NamedTuple

import typer

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.phrases import count
from heartwheel.base.plain import plain, plain_json
from heartwheel.front.cli.console import AsJson, ConfigFile, SetFlags, stderr
from heartwheel.front.cli.files import read_file, write_file
from heartwheel.front.cli.replay_question import read_question

if TYPE_CHECKING:
    from heartwheel.engine.replay.log import LogReplay
    from heartwheel.engine.replay.meta import Meta
    from heartwheel.engine.replay.signs import SignsOfLife
    from heartwheel.wire.verdicts import Verdict

_STDIN: Final = "-"
_LINES_AT_ONCE: Final = 1_000
_BAD_SHOWN: Final = 5
_HEAD_BYTES: Final = 65_536
_LAST_MS: Final = 253_402_300_799_999  # the year 9999; `test_cli_replay.py` checks that lines end there too


def replay(
    *,
    events: Annotated[str, typer.Argument(metavar="EVENTS", help="The log, one JSON object a line; - reads stdin.")],
    until: Annotated[
        int | None,
        typer.Option(metavar="MS", min=0, max=_LAST_MS, help="Advance the clock to this time at the end, epoch ms."),
    ] = None,
    meta: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The broker's settings; by default meta.json next to the log.")
    ] = None,
    snapshot_in: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Continue where the replay that wrote this file stopped.")
    ] = None,
    snapshot_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save how far the log was replayed, to continue later.")
    ] = None,
    what_if: Annotated[
        str | None,
        typer.Option(metavar="session_timeout=10s,20s", help="Print what other timeouts would have done."),
    ] = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
    json: AsJson = False,
) -> None:
    """Print what Kafka's group coordinator decides on a log of requests: verdicts as JSON lines, in the order of time.

    Each line of the log is one request of a member, as JSON, with `t_ms`, the time at which it arrived. A broker's own
    log is read by `heartwheel explain`. The clock stops at the last event (of a recording with a meta.json: at its end)
    unless `--until` says otherwise. Lines that are no event are left out; the first five are named on stderr, and the
    exit code is 1.

    A log that is still being written can be replayed in parts: `--snapshot-out` writes down how far it was read, and
    `--snapshot-in` continues there. Verdicts are printed when the log ends, or, with `--until MS`, up to that time.

    `--what-if` prints a table instead: for each session timeout how many members would have expired, how many of them
    falsely, and how long it would have taken to notice the others. It takes session_timeout for all members,
    group_consumer_session_timeout, group_share_session_timeout or group_streams_session_timeout for those whose session
    the broker sets, rebalance_timeout for members that have to give partitions back, and heartbeat_interval.

    For example:

        heartwheel replay tests/recordings/kill-one/events.jsonl

        heartwheel replay - --set coordinator.group_max_size=3

        heartwheel replay monday.jsonl --snapshot-out monday.snapshot

        heartwheel replay tuesday.jsonl --snapshot-in monday.snapshot

        heartwheel replay monday.jsonl --what-if session_timeout=10s,20s,45s,60s

        heartwheel replay monday.jsonl --what-if rebalance_timeout=30s,60s,300s
    """
    question = None if what_if is None else read_question(what_if, whole=snapshot_in is None and snapshot_out is None)
    # A replay makes millions of small objects and hardly a cycle: Python's default frequency of cycle searches takes a
    # sixth of the time (tests/benchmarks/replay_bench.py).
    gc.set_threshold(200_000, 20, 100)
    from heartwheel.engine.replay.log import LogReplay
    from heartwheel.engine.replay.revocations import Revocations
    from heartwheel.engine.replay.signs import SignsOfLife
    from heartwheel.front.cli.replay_answer import answer_question
    from heartwheel.front.cli.replay_rules import rules_of

    described = _describe(events, meta)
    rules = rules_of(config, set_ or (), described.settings if described else {}, f"{meta or 'meta.json'}")
    revocations = Revocations() if question else None
    run = LogReplay(
        rules,
        snapshot=None if snapshot_in is None else read_file(snapshot_in),
        epochs=None if described is None else described.epoch_config(rules),
        revocations=revocations,
    )
    signs = SignsOfLife() if question else None
    with _open(events) as log:
        read = _feed(run, log, signs)
    if not read.events:
        _refuse_nothing(events, read, goes_on=snapshot_in is not None or snapshot_out is not None)
    end_ms = until if until is not None or described is None else described.end_ms
    if question is not None and signs is not None and revocations is not None:
        answer_question(question, signs, revocations, run.finish(end_ms), run.end_ms, json=json)
    elif snapshot_out is not None:
        _print(run.settle(until) if until is not None else [])
        write_file(snapshot_out, run.snapshot())
        stderr().print(f"{count(run.waiting, 'verdict')} kept in {snapshot_out} until the rest of the log is read")
    else:
        _print(run.finish(end_ms))
    if read.bad:
        raise typer.Exit(1)


def _describe(events: str, path: Path | None) -> Meta | None:
    from heartwheel.engine.replay.meta import find_meta, read_meta

    if path is None and events != _STDIN:
        path = find_meta(Path(events))
        if path is not None:
            stderr().print(f"broker settings and end of the recording: {path}")
    return None if path is None else read_meta(path)


@contextmanager
def _open(events: str) -> Iterator[BinaryIO]:
    if events == _STDIN:
        yield sys.stdin.buffer
        return
    try:
        with Path(events).open("rb") as log:
            yield log
    except OSError as error:
        hint = "name a file of JSON lines, or - for stdin"
        raise HeartwheelError(f"{events} cannot be read: {error.strerror}", hint=hint) from error


class _Read(NamedTuple):
    """Counts of a log: lines, bad lines, and verdicts among these; and its first bytes."""

    lines: int
    bad: int
    verdicts: int
    head: bytes

    @property
    def events(self) -> int:
        return self.lines - self.bad


def _feed(run: LogReplay, log: Iterable[bytes], signs: SignsOfLife | None) -> _Read:
    """Feed a log to a replay, and print the first of its bad lines."""
    from heartwheel.engine.replay.recorded import VERDICT
    from heartwheel.wire.events import RejectedError

    number = bad = verdicts = 0
    head = bytearray()
    for number, line in enumerate(log, start=1):
        if len(head) < _HEAD_BYTES:
            head += line[: _HEAD_BYTES - len(head)]
        try:
            read = run.feed(line)
            if signs is not None and read is not None:
                signs.add(read)
        except RejectedError as error:
            bad += 1
            verdicts += error.detail.startswith(VERDICT)
            if bad <= _BAD_SHOWN:
                stderr().print(f"line {number}: {plain(str(error))}")
    if bad > _BAD_SHOWN:
        stderr().print(f"and {bad - _BAD_SHOWN:,} more")
    if bad:
        stderr().print(f"left out as bad: {bad:,} of {count(number, 'line')}")
    return _Read(number, bad, verdicts, bytes(head))


def _refuse_nothing(events: str, read: _Read, *, goes_on: bool) -> None:
    """Raise an error for a log without an event; parts of a longer log may be empty.

    Raises:
        HeartwheelError: it names the likely kind of the file, and which command reads that.
    """
    from heartwheel.sources.explain.file_kind import BROKER, kind_of
    from heartwheel.sources.explain.layouts import NEEDLE

    if not read.lines:
        if not goes_on:
            hint = "name a log of requests, one JSON object a line: docs/replay.md"
            raise HeartwheelError(f"nothing was read: {events} is empty", hint=hint)
        return
    kind = kind_of(events, read.head)
    if read.verdicts:
        hint = "these are verdicts; replay reads the requests that they follow from: docs/replay.md"
    elif "heartwheel tap" in kind:
        hint = "heartwheel tap passes the requests of a request log on: docs/tap.md"
    elif NEEDLE.encode() in read.head or kind == BROKER or kind.startswith("a consumer's log"):
        hint = f"a broker's or a consumer's own log is read by: heartwheel explain {events}"
    else:
        hint = "a log of requests has one JSON object a line: docs/replay.md"
    raise HeartwheelError(f"{events} has no event in {count(read.lines, 'line')}", hint=hint)


def _print(verdicts: list[Verdict]) -> None:
    from heartwheel.engine.replay.output import encode_verdict

    for start in range(0, len(verdicts), _LINES_AT_ONCE):
        lines = [encode_verdict(verdict) + b"\n" for verdict in verdicts[start : start + _LINES_AT_ONCE]]
        text = b"".join(lines)
        # In ASCII, only DEL is invisible and not escaped by JSON.
        typer.echo(text if text.isascii() and b"\x7f" not in text else plain_json(text.decode()), nl=False)
