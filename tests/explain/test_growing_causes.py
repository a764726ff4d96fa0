"""Files of causes that grow: what was added is read, and a file that was written again is read from its begin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heartwheel.sources.explain.causes.read import CauseFile
from heartwheel.sources.explain.local_zone import LocalZone


def _line(kind: str, number: int) -> str:
    """Write a line of a file that grows; all are of one length."""
    time = f"2026-11-22T02:12:{number:02}"
    if kind == "objects":
        about = {"kind": "Pod", "name": f"orders-{number:03}"}
        return json.dumps({"kind": "Event", "involvedObject": about, "reason": "Evicted", "lastTimestamp": f"{time}Z"})
    if kind == "pauses":
        return f"[{time}.000+0000][info][gc] GC({number:03}) Pause Full (System.gc()) 1M->1M(2M) 2000.000ms"
    return f"{time}Z,version {number:03}"


@pytest.mark.parametrize("kind", ["objects", "pauses", "times"])
def test_of_a_file_that_grows_only_what_was_added_is_read(tmp_path: Path, kind: str) -> None:
    """Lines keep their numbers; a line without its end is read again, and a bad one is counted once."""
    path = tmp_path / "causes"
    path.write_text("")
    file = CauseFile(str(path), LocalZone())
    assert file.read() == []
    path.write_text("".join(_line(kind, number) + "\n" for number in range(3)))
    assert [each.line for each in file.read()] == [1, 2, 3]
    for text, lines in (
        (_line(kind, 3) + "\n" + _line(kind, 4), [4, 5]),
        ("\n", [5]),
        ("{bad\n" if kind == "objects" else "bad\n", []),
        (_line(kind, 6) + "\n", [7]),
    ):
        with path.open("a") as more:
            more.write(text)
        assert [each.line for each in file.read()] == lines
    assert (file.bad, file.doubt.partition(": ")[0]) == (1, f"{path}:6")


@pytest.mark.parametrize("how", ["shorter", "same size", "longer", "another file", "rotated", "end changed"])
@pytest.mark.parametrize("kind", ["objects", "pauses", "times"])
def test_a_file_that_was_written_again_is_read_from_its_begin(tmp_path: Path, kind: str, how: str) -> None:
    """Truncated, written over, replaced or rotated: the next look has what is in it now, under its numbers."""
    path, other = tmp_path / "causes", tmp_path / "new"
    path.write_text("".join(_line(kind, number) + "\n" for number in range(3)))
    file = CauseFile(str(path), LocalZone())
    file.read()
    match how:
        case "shorter":
            path.write_text(_line(kind, 7) + "\n")
        case "same size":  # the first line is as before
            path.write_text("".join(_line(kind, number) + "\n" for number in (0, 7, 2)))
        case "longer":
            path.write_text("".join(_line(kind, number) + "\n" for number in (7, 8, 9, 10)))
        case "end changed":
            path.write_text("".join(_line(kind, number) + "\n" for number in (0, 1, 7, 8)))
        case "another file":
            other.write_text("".join(_line(kind, number) + "\n" for number in (0, 7, 2, 8)))
            other.replace(path)
        case "rotated":
            with path.open("a") as more:
                more.write(_line(kind, 6) + "\n")
            path.rename(tmp_path / "causes.1")
            path.write_text(_line(kind, 7) + "\n")
    found = file.read()
    now = CauseFile(str(path), LocalZone()).read()
    assert now
    assert found[-len(now) :] == now
    assert [each.line for each in found[: -len(now)]] == ([4] if how == "rotated" else [])
