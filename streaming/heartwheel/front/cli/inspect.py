"""`heartwheel inspect`: the content of a checkpoint, without Kafka and without the job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Table

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.phrases import count
from heartwheel.base.wall_clock import moment_words
from heartwheel.front.cli.console import (
    AsJson,
    ConfigFile,
    SetFlags,
    figures_table,
    load,
    plain_table,
    print_json,
    stderr,
    stdout,
)
from heartwheel.front.cli.progress import phase
from heartwheel.front.cli.run import spark_log_file
from heartwheel.settings import format_duration

if TYPE_CHECKING:
    from heartwheel.engine.rules.epochs.model import EpochMember
    from heartwheel.engine.rules.manager import AnyGroup
    from heartwheel.engine.rules.model import Member
    from heartwheel.front.cli.inspect_state import CheckpointView, ShardView

_NEVER: Final = "-"


def inspect(
    *,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="Which checkpoint (checkpoint.location).")
    ] = None,
    groups: Annotated[bool, typer.Option("--groups", help="List the groups too.")] = False,
    group: Annotated[str | None, typer.Option("--group", metavar="ID", help="Show one group and its members.")] = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
    json: AsJson = False,
) -> None:
    """Show the content of a checkpoint: its shards, their groups, and the members of a group with their deadlines.

    It needs neither Kafka nor a running job, and changes nothing; Spark, which wrote the state, reads it. Exit code 1
    if there is no checkpoint, it cannot be read, or a newer version wrote it.

    For example:

        heartwheel inspect

        heartwheel inspect --checkpoint artifacts/demo/checkpoint --groups

        heartwheel inspect --group orders --json
    """
    settings = load(config, set_, checkpoint__location=checkpoint).settings
    with phase("reading the checkpoint") as say:
        from heartwheel.front.cli.inspect_state import open_manifest, read_checkpoint

        open_manifest(settings.checkpoint.location)  # a wrong folder is reported before Spark is started
        say("starting Spark to read the state")
        view = read_checkpoint(settings, spark_log_file())
    if group is not None:
        found = find_group(view, group)
        print_json(group_document(*found)) if json else _show_group(*found)
    elif json:
        print_json(document(view, with_groups=groups))
    else:
        _show(view, with_groups=groups)


def find_group(view: CheckpointView, group_id: str) -> tuple[ShardView, AnyGroup]:
    """Return a group and its shard, which Kafka's hash of its id selects.

    Raises:
        HeartwheelError: it is not there.
    """
    from heartwheel.wire.partitioner import shard_of

    number = shard_of(group_id, view.manifest.shards)
    for shard in view.shards:
        if shard.number == number:
            for group in shard.groups():
                if group.group_id == group_id:
                    return shard, group
    raise HeartwheelError(
        f"the checkpoint {view.location} has no group {group_id}",
        hint="heartwheel inspect --groups lists them",
    )


def document(view: CheckpointView, *, with_groups: bool) -> dict[str, Any]:
    """Return a checkpoint as a document for JSON; times are epoch ms."""
    import msgspec

    found: dict[str, Any] = {
        "checkpoint": view.location,
        "manifest": msgspec.to_builtins(view.manifest),
        "batch_id": view.batch_id,
        "shards": [shard_document(shard) for shard in view.shards],
    }
    if with_groups:
        found["groups"] = [_group_row(shard, group) for shard in view.shards for group in shard.groups()]
    return found


def shard_document(view: ShardView) -> dict[str, Any]:
    """Return a shard as a document for JSON; times are epoch ms, -1 before the first."""
    shard = view.shard
    return {
        "shard": view.number,
        "clock_ms": view.clock_ms,
        "last_trigger_ms": view.last_trigger_ms,
        "members": shard.member_count,
        "groups": shard.group_count,
        "groups_by_state": shard.figures.groups_by_state(),
        "groups_by_kind": shard.figures.groups_by_kind(),
        "state_bytes": view.state_bytes,
        "wheel": [{"tick_ms": level.tick_ms, "entries": level.entries} for level in shard.figures.occupancy()],
        "next_deadline_ms": next((member.deadline_ms for member in shard.figures.at_risk(1)), None),
        "totals": dict(shard.totals),
    }


def _group_row(view: ShardView, group: AnyGroup) -> dict[str, Any]:
    from heartwheel.engine.rules.model import Group

    if isinstance(group, Group):
        kind, state, generation, pending = group.kind.value, group.state, group.generation, len(group.pending)
    else:
        kind, state, generation, pending = group.type.value, group.state(), group.epoch, 0
    return {
        "group_id": group.group_id,
        "shard": view.number,
        "kind": kind,
        "state": state.value,
        "generation": generation,
        "members": len(group.members),
        "pending": pending,
    }


def group_document(view: ShardView, group: AnyGroup) -> dict[str, Any]:
    """Return a group with its members as a document for JSON; times are epoch ms, absent ones `None`."""
    from heartwheel.engine.rules.model import Group

    members = [_member_row(member) for member in group.all_members()]
    leader, protocol_name = (group.leader, group.protocol_name) if isinstance(group, Group) else (None, None)
    more = {"clock_ms": view.clock_ms, "leader": leader, "protocol_name": protocol_name}
    return _group_row(view, group) | more | {"members": members}


def _member_row(member: Member | EpochMember) -> dict[str, Any]:
    from heartwheel.engine.rules.model import NEVER, Member, TimerKind

    if isinstance(member, Member):
        pending, timer, session_ms = member.pending, member.timer.value, member.session_timeout_ms
        epoch = None
    else:
        running = sorted((each.deadline_ms, name.value) for name, each in member.timers.items())
        pending, timer, session_ms = False, running[0][1] if running else TimerKind.NONE.value, member.session_ms
        epoch = member.epoch
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_epoch": epoch,
        "pending": pending,
        "timer": timer,
        "session_timeout_ms": session_ms,
        "last_seen_ms": member.last_seen_ms,
        "deadline_ms": None if member.deadline_ms == NEVER else member.deadline_ms,
    }


def _show(view: CheckpointView, *, with_groups: bool) -> None:
    manifest = view.manifest
    head = _head(
        {
            "checkpoint": view.location,
            "format": manifest.format,
            "topic": manifest.topic,
            "shards": f"{manifest.shards} in {count(manifest.shuffle_partitions, 'state partition')}",
            "last batch": view.batch_id if view.batch_id >= 0 else "none was committed",
        }
    )
    stdout().print(head, "")
    if view.shards:
        stdout().print(_shard_table(view))
    if with_groups:
        table = plain_table("group", "shard", "kind", "state", "generation", "members", "pending")
        for shard in view.shards:
            for group in shard.groups():
                table.add_row(*map(str, _group_row(shard, group).values()))
        stdout().print("", table)


def _head(pairs: Mapping[str, object]) -> Table:
    table = figures_table("", pairs)
    table.show_header = False
    return table


def _shard_table(view: CheckpointView) -> Table:
    table = plain_table("shard", "clock", "members", "groups", "by state", "state bytes", "wheel", "next deadline")
    for shard in map(shard_document, view.shards):
        wheel = ", ".join(
            f"{level['entries']} at {format_duration(level['tick_ms'])}" for level in shard["wheel"] if level["entries"]
        )
        states = ", ".join(f"{count} {state}" for state, count in shard["groups_by_state"].items())
        table.add_row(
            str(shard["shard"]),
            show_time(shard["clock_ms"]),
            f"{shard['members']:,}",
            f"{shard['groups']:,}",
            states or _NEVER,
            f"{shard['state_bytes']:,}",
            wheel or _NEVER,
            show_deadline(shard["next_deadline_ms"], shard["clock_ms"]),
        )
    return table


def _show_group(view: ShardView, group: AnyGroup) -> None:
    stdout().print(_head(_group_row(view, group) | {"clock": show_time(view.clock_ms)}), "")
    table = plain_table("member", "client", "host", "session", "last seen", "deadline", "timer")
    for member in map(_member_row, group.all_members()):
        table.add_row(
            member["member_id"],
            member["client_id"] or _NEVER,
            member["client_host"] or _NEVER,
            format_duration(member["session_timeout_ms"]),
            show_time(member["last_seen_ms"]),
            show_deadline(member["deadline_ms"], view.clock_ms),
            member["timer"],
        )
    stdout().print(table)
    if not group.all_members():
        stderr().print("the group has no members")


def show_time(time_ms: int) -> str:
    """Return a time of epoch ms in local time; a dash before the first."""
    if time_ms < 0:
        return _NEVER
    return moment_words(time_ms)


def show_deadline(deadline_ms: int | None, clock_ms: int) -> str:
    """Return a deadline as its distance from the shard's clock."""
    if deadline_ms is None:
        return _NEVER
    return f"{show_time(deadline_ms)}" if clock_ms < 0 else f"{(deadline_ms - clock_ms) / 1000:+.1f} s of the clock"
