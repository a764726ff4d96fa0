"""`heartwheel inspect` without Spark: what it says of shards, groups and members, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.runtime.driver.checkpoint import FORMAT, MANIFEST, CheckpointError, Manifest
from heartwheel.engine.runtime.state.schema import STATE_VERSION, StateRow
from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.front.cli.app import run
from heartwheel.front.cli.inspect import document, find_group, group_document, show_deadline, show_time
from heartwheel.front.cli.inspect_state import CheckpointView, ShardView, decode_shard, open_manifest
from heartwheel.proof.testing import LogBuilder, read_records
from heartwheel.wire.events import Event
from heartwheel.wire.partitioner import shard_of

NOW_MS = 1_700_000_000_000
NOWHERE = Path("/nowhere")
"""Where a checkpoint would be; none of these states is so large that it has block files."""

MADE = Manifest(format=FORMAT, shards=2, shuffle_partitions=2, topic="beats")


def _state(group_id: str = "orders", members: int = 3) -> tuple[int, int, int, int, int, str]:
    """Build the state row of a shard that heard of one group."""
    shard = Shard(coordinator=CoordinatorConfig(), limits=ShardLimits())
    log = LogBuilder()
    for i in range(members):
        beat = Event(group_id=group_id, member_id=f"m{i}", session_timeout_ms=10_000, client_id=f"c{i}")
        log.add(NOW_MS + i, beat)
    shard.apply(*read_records(log.records, clock_ms=NOW_MS + 500))
    return (STATE_VERSION, NOW_MS + 1_500, NOW_MS + 500, members, 1, shard.encode())


def _view(group_id: str = "orders") -> CheckpointView:
    number = shard_of(group_id, MADE.shards)
    empty = decode_shard(1 - number, (STATE_VERSION, NOW_MS, NOW_MS, 0, 0, ""), NOWHERE)
    return CheckpointView(
        "there", MADE, 7, sorted([decode_shard(number, _state(group_id), NOWHERE), empty], key=_number)
    )


def _number(view: ShardView) -> int:
    return view.number


def _write_manifest(folder: Path, **changes: object) -> None:
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST).write_bytes(msgspec.json.encode(msgspec.to_builtins(MADE) | changes))


def test_a_checkpoint_is_shown_shard_by_shard() -> None:
    """Each shard tells its clock, members, groups by state and kind, size, wheel and next deadline."""
    found = document(_view(), with_groups=True)
    assert (found["batch_id"], found["manifest"]["topic"]) == (7, "beats")
    shards = {row["shard"]: row for row in found["shards"]}
    shard = shards[shard_of("orders", 2)]
    assert (shard["members"], shard["groups"], shard["clock_ms"]) == (3, 1, NOW_MS + 500)
    assert (shard["groups_by_state"], shard["groups_by_kind"]) == ({"Stable": 1}, {"presence": 1})
    assert shard["next_deadline_ms"] == NOW_MS + 10_000
    assert sum(level["entries"] for level in shard["wheel"]) == 3
    assert [row["group_id"] for row in found["groups"]] == ["orders"]
    json.dumps(found)


def test_a_group_is_shown_with_its_members() -> None:
    """A member's row says who it is, when it was last seen, and by when it must be heard of."""
    found = group_document(*find_group(_view(), "orders"))
    assert (found["kind"], found["state"], found["generation"]) == ("presence", "Stable", 3)
    first = found["members"][0]
    assert (first["member_id"], first["client_id"], first["timer"]) == ("m0", "c0", "session")
    assert (first["last_seen_ms"], first["session_timeout_ms"], first["deadline_ms"]) == (
        NOW_MS,
        10_000,
        NOW_MS + 10_000,
    )


def test_an_unknown_group_is_told() -> None:
    """A group that the checkpoint does not know is an error that says how to list those it knows."""
    with pytest.raises(HeartwheelError, match="has no group nobody") as caught:
        find_group(_view(), "nobody")
    assert "--groups" in (caught.value.hint or "")


def test_damaged_state_is_refused_by_name() -> None:
    """State that was cut short, or that a newer release wrote, is an error that names the shard."""
    state = StateRow(*_state())
    with pytest.raises(CheckpointError, match="shard 1 cannot be read"):
        decode_shard(1, state._replace(blob=state.blob[: len(state.blob) // 2]), NOWHERE)
    with pytest.raises(CheckpointError, match=f"shard 1 has version {STATE_VERSION + 1}"):
        decode_shard(1, state._replace(version=STATE_VERSION + 1), NOWHERE)


def test_a_folder_without_a_checkpoint_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No checkpoint, somebody else's folder, a newer format: one error, before Spark is started."""
    assert run(["inspect", "--checkpoint", str(tmp_path / "none")]) == 1
    assert "error: there is no checkpoint at" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert run(["inspect", "--checkpoint", str(tmp_path)]) == 1
    assert "it is not heartwheel's" in capsys.readouterr().err
    _write_manifest(tmp_path, format=99)
    assert run(["inspect", "--checkpoint", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert "format 99" in err
    assert "starting Spark" not in err


def test_a_checkpoint_without_a_batch_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A job that never finished a batch leaves a manifest and no shards, which is no error and needs no Spark."""
    _write_manifest(tmp_path)
    assert open_manifest(str(tmp_path)) == (MADE, -1)
    assert run(["inspect", "--checkpoint", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["batch_id"], found["shards"]) == (-1, [])
    assert run(["inspect", "--checkpoint", str(tmp_path)]) == 0
    assert "none was committed" in capsys.readouterr().out


def test_the_last_batch_is_by_number(tmp_path: Path) -> None:
    """Batch 10 comes after batch 9, and checksum files beside them are no batches."""
    _write_manifest(tmp_path)
    (tmp_path / "commits").mkdir()
    for name in ("9", "10", ".10.crc"):
        (tmp_path / "commits" / name).touch()
    assert open_manifest(str(tmp_path))[1] == 10


def test_times_are_shown_for_people() -> None:
    """A clock that never ran is a dash; a deadline is shown by its distance from the shard's clock."""
    assert show_time(-1) == "-"
    assert show_time(NOW_MS)[:4] == "2023"
    assert show_deadline(None, NOW_MS) == "-"
    assert show_deadline(NOW_MS + 1_500, NOW_MS) == "+1.5 s of the clock"
    assert show_deadline(NOW_MS, -1) == show_time(NOW_MS)
