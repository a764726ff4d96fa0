"""Progress: a log gets one line where something really takes long, and none where it does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from heartwheel.front.cli.progress import fetch_shown, phase
from heartwheel.kafka.broker import jars


@pytest.mark.parametrize(("steps", "lines"), [([(5, 5)], 0), ([(0, 2_000_000), (1, 2_000_000), (2_000_000,) * 2], 1)])
def test_fetching_is_told_once(
    steps: list[tuple[int, int]], lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log says once that jars are fetched and how much is missing; with a full cache it says nothing."""

    def fetch(_: str, *, progress: Callable[[int, int], None]) -> list[Path]:
        for step in steps:
            progress(*step)
        return [Path("a.jar")]

    monkeypatch.setattr(jars, "fetch_jars", fetch)
    assert fetch_shown("spark") == [Path("a.jar")]
    out, err = capsys.readouterr()
    assert not out
    assert err.splitlines() == ["fetching the jars of spark, 2.0 MB ..."] * lines


def test_phases_are_lines_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    """Where no person looks, each phase is a line of its own on stderr."""
    with phase("starting the broker") as say:
        say("starting Spark")
    assert capsys.readouterr() == ("", "starting the broker ...\nstarting Spark ...\n")
