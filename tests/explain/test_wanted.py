"""Several groups and members, and patterns of them; a name that the log does not have is an error, not an empty answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heartwheel.front.cli.app import run
from support.broker_logs import REAL

LOG = str(REAL / "server.log")


def _groups(out: str) -> set[str]:
    return {json.loads(line)["group_id"] for line in out.splitlines()}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["orders", "video"], {"orders", "video"}),
        (["*o*"], {"orders", "video", "deploys"}),
        (["orders", "bill*", "c[k-m]icks"], {"orders", "billing", "clicks"}),
    ],
)
def test_several_groups(capsys: pytest.CaptureFixture[str], names: list[str], found: set[str]) -> None:
    """Each `--group` adds to the others; none wins silently."""
    assert run(["explain", LOG, "--json", *(part for name in names for part in ("--group", name))]) == 0
    assert _groups(capsys.readouterr().out) == found


def test_several_members(capsys: pytest.CaptureFixture[str]) -> None:
    """Likewise, by any of a member's names."""
    assert run(["explain", LOG, "--json", "--member", "billing-1", "--member", "video-*"]) == 0
    assert _groups(capsys.readouterr().out) == {"billing", "video"}


@pytest.mark.parametrize("more", [[], ["--fail-on-expired"], ["--json"], ["--summary"]])
def test_a_group_that_the_log_does_not_have(capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    """It is an error that names those that are, the most alike first; also beside one that is there."""
    assert run(["explain", LOG, "--group", "clicks", "--group", "order", *more]) == 1
    err = capsys.readouterr().err
    assert "no group 'order' in this log" in err
    assert "it has 6 groups: orders, " in err
    assert run(["explain", LOG, "--group", "pay*", *more]) == 1
    assert "no group 'pay*'" in capsys.readouterr().err


def test_a_member_that_the_log_does_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    """Likewise."""
    assert run(["explain", LOG, "--member", "orders-22"]) == 1
    err = capsys.readouterr().err
    assert "no member 'orders-22' in this log" in err
    assert "orders-2" in err.partition("hint")[2]


def test_a_group_without_events_at_that_time_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The log names it: that nothing happened to it then is an answer."""
    wanted = ["--group", "orders", "--since", "2026-11-22T02:12:50"]
    assert run(["explain", LOG, "--json", "--fail-on-expired", *wanted]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("text", ["", "\0\x01\x02" * 500, "[2026-11-22 02:12:24,836] INFO nothing (a.B)\n"])
def test_a_log_that_shows_nothing_is_not_green(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> None:
    """A check must not pass on an empty file, on another one, or on a broker that logs too little."""
    (tmp_path / "server.log").write_text(text)
    assert run(["explain", str(tmp_path / "server.log"), "--fail-on-expired"]) == 1
    assert "error: " in capsys.readouterr().err
