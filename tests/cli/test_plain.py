"""Somebody's ids in a terminal: whatever they are made of, no command hands it a control, on stdout or on stderr."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.plain import plain, plain_json, plain_lines
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.runtime.driver.checkpoint import Manifest
from heartwheel.engine.runtime.state.schema import STATE_VERSION
from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.front.cli import inspect_state
from heartwheel.front.cli.app import run
from heartwheel.front.cli.commands import COMMANDS
from heartwheel.front.cli.console import PlainFormatter, plain_table, print_error, stdout
from heartwheel.front.cli.demo import _show as show_judgement
from heartwheel.front.cli.demo_screen import DemoScreen, nearest
from heartwheel.front.cli.inspect_state import CheckpointView, decode_shard
from heartwheel.front.demo.folder import fresh_folder
from heartwheel.front.demo.lines import RollUp, expiration_line
from heartwheel.front.demo.tally import Tally
from heartwheel.proof.audit.findings import Finding, FindingKind
from heartwheel.proof.testing import LogBuilder, read_records
from heartwheel.readers.live.now import View
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.notify.message import Message
from heartwheel.readers.notify.sentence import safe
from heartwheel.readers.top import watch
from heartwheel.readers.top.cells import short
from heartwheel.readers.top.frame import frame_of
from heartwheel.wire.events import Event
from heartwheel.wire.partitioner import shard_of
from heartwheel.wire.status import AtRiskMember
from support.output_rows import T0, begun, expired, job, status, topic_rows

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}

EVIL = "[red]:x:\x1b]0;owned\x07\x9b2J\x7f\u202egro\u200b\u2028\u2066\U000e0041\nerror: a line\r"
"""An id that moves the cursor, sets the title, turns its line around, hides a part and begins new lines."""

NOW_MS = 1_700_000_000_000
Read = Callable[[], str]


def is_harmless(text: str) -> bool:
    """Tell whether a terminal can show a text: nothing hidden, and no line that an id began."""
    lines = text.split("\n")
    return not any(unicodedata.category(sign) in HIDDEN for line in lines for sign in line) and not any(
        line.startswith("error: a line") for line in lines
    )


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Read:
    """Give a function that reads what was printed since it was last asked, on both streams."""
    return lambda: "".join(capsys.readouterr())


def test_every_hidden_character_is_seen() -> None:
    """Of all of Unicode no control, format, surrogate or separator of lines is left, and no other category is hurt."""
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    left = {sign for sign in every if plain(sign) == sign}
    assert not {unicodedata.category(sign) for sign in left} & HIDDEN
    changed = {unicodedata.category(sign) for sign in every if sign not in left}
    assert changed <= HIDDEN | {"Mn", "Lo", "Cn"}  # what is invisible though it counts as a mark or a letter
    assert plain("é ü 語 😀 العربية") == "é ü 語 😀 العربية"
    assert plain_lines("a\n\x1b") == "a\n\ufffd"


@given(
    st.recursive(
        st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_says_the_same(value: Any) -> None:
    """JSON for a terminal has nothing hidden in it and is read as what it was."""
    text = plain_json(json.dumps(value, indent=1, ensure_ascii=False))
    assert is_harmless(text.replace("error: a line", ""))
    assert json.loads(text) == value


def test_one_rule_for_cells_and_chats() -> None:
    """`top` and `notify` show an id as `plain` does."""
    assert short(EVIL) == plain(EVIL)
    assert safe(EVIL).startswith(plain(EVIL)[:20])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("words", [["--config", f"{EVIL}.toml"], [f"--x{EVIL}"], ["--set", f"engine.{EVIL}={EVIL}"]])
def test_error_lines_of_every_command(command: str, words: list[str], printed: Read) -> None:
    """What is wrong with a command line or a configuration is reported with nothing hidden in it."""
    assert run([command, *words]) in (1, 2)
    text = printed()
    assert is_harmless(text)
    assert text


def test_words_that_are_no_text_are_told(printed: Read) -> None:
    """Bytes of a command line that are no UTF-8 make an error like others, no traceback."""
    assert run(["config", "--config", "\udcff\udc9b.toml"]) == 2
    assert is_harmless(printed())


def test_errors_and_logs(printed: Read) -> None:
    """Whatever an error or a record of the log says, it is shown harmless; a record is one line."""
    print_error(HeartwheelError(f"a {EVIL}\nhint: none of ours", hint=f"b {EVIL}"))
    text = printed()
    assert is_harmless(text)
    assert [line[:8] for line in text.splitlines() if line[0] != " "] == ["error: a", "hint: b "]
    record = logging.LogRecord("x", logging.INFO, "x", 1, "posted: %s", (EVIL,), None)
    line = PlainFormatter("%(levelname)s %(message)s").format(record)
    assert is_harmless(line)
    assert "\n" not in line


def test_a_traceback_is_harmless() -> None:
    """A bug keeps its traceback, without what would steer the terminal."""
    code = (
        "from heartwheel.front.cli import app\n"
        "def fail(*_, **__): raise ZeroDivisionError('\\x1b]0;owned\\x07\\x9b')\n"
        "app.app = fail\n"
        "app.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ZeroDivisionError: \ufffd]0;owned" in done.stderr
    assert is_harmless(done.stderr)


def test_config(monkeypatch: pytest.MonkeyPatch, printed: Read) -> None:
    """Values of settings are shown harmless, as a table and as JSON."""
    monkeypatch.setenv("HEARTWHEEL_KAFKA__CLIENT__CLIENT_ID", EVIL)
    for words in ([], ["--json"]):
        assert run(["config", *words]) == 0
        assert is_harmless(printed())


def test_lines_that_are_piped_end_with_their_last_word(monkeypatch: pytest.MonkeyPatch, printed: Read) -> None:
    """A table in a pipe is as wide as it must be, whatever `COLUMNS` says, and no row is filled up with blanks."""
    monkeypatch.setenv("COLUMNS", "60")
    table = plain_table("check", "found")
    table.add_row("one", Text("short\nhint: " + "word " * 20))
    table.add_row("two", "")
    stdout().print(table)
    lines = printed().splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert max(map(len, lines)) == len("one    hint: " + ("word " * 20).rstrip())


def test_replay(tmp_path: Path, printed: Read) -> None:
    """Verdicts, bad lines and the answer to `--what-if` are harmless, and the verdicts still name the group."""
    log = tmp_path / "log.jsonl"
    beats = [
        {"t_ms": NOW_MS + at_ms, "group_id": EVIL, "member_id": EVIL, "session_timeout_ms": 10_000}
        for at_ms in (0, 3_000, 9_000, 40_000)
    ]
    bad = [{"t_ms": NOW_MS, "type": EVIL}, {"t_ms": NOW_MS, "group_id": 1, EVIL: 2}]
    log.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [*beats, *bad]) + f"{EVIL}\n")
    assert run(["replay", str(log)]) == 1
    text = printed()
    assert is_harmless(text)
    assert {json.loads(line)["group_id"] for line in text.splitlines() if line.startswith("{")} == {EVIL}
    assert run(["replay", str(log), "--what-if", "session_timeout=5s"]) == 1
    text = printed()
    assert is_harmless(text)
    assert "Longest silence" in text


def _view() -> CheckpointView:
    shard = Shard(coordinator=CoordinatorConfig(), limits=ShardLimits())
    log = LogBuilder()
    beat = Event(group_id=EVIL, member_id=EVIL, session_timeout_ms=10_000, client_id=EVIL, client_host=EVIL)
    log.add(NOW_MS, beat)
    shard.apply(*read_records(log.records, clock_ms=NOW_MS + 500))
    state = (STATE_VERSION, NOW_MS + 1_500, NOW_MS + 500, 1, 1, shard.encode())
    made = Manifest(format=1, shards=1, shuffle_partitions=1, topic="beats")
    return CheckpointView(EVIL, made, 7, [decode_shard(shard_of(EVIL, 1), state, Path("unused"))])


@pytest.mark.parametrize(
    "words", [["--groups"], ["--groups", "--json"], ["--group", EVIL], ["--group", EVIL, "--json"]]
)
def test_inspect(words: list[str], printed: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups and members of a checkpoint are shown harmless; so is a group that it does not know."""
    view = _view()
    monkeypatch.setattr(inspect_state, "open_manifest", lambda _: (view.manifest, 7))
    monkeypatch.setattr(inspect_state, "read_checkpoint", lambda *_: view)
    assert run(["inspect", *words]) == 0
    text = printed()
    assert is_harmless(text)
    assert "owned" in text
    assert run(["inspect", "--group", f"no{EVIL}"]) == 1
    assert is_harmless(printed())


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_audit(words: list[str], tmp_path: Path, printed: Read) -> None:
    """A finding shows the ids of a forged row harmless."""
    row = expired(EVIL, EVIL, T0)
    for name, value in (("heartbeats", b""), ("expirations", msgspec.json.encode(row) + b"\n"), ("triggers", b"")):
        (tmp_path / name).write_bytes(value)
    files = [word for name in ("heartbeats", "expirations", "triggers") for word in (f"--{name}", str(tmp_path / name))]
    assert run(["audit", *files, "--until", str(T0 + 60_000), *words]) == 1
    text = printed()
    assert is_harmless(text)
    assert "owned" in text


def test_demo(tmp_path: Path, printed: Read) -> None:
    """Lines of events, the member that is next, and those that were judged wrongly are harmless."""
    tally = Tally(1)
    tally.take(topic_rows(status(0, AtRiskMember(group_id=EVIL, member_id=EVIL, deadline_ms=T0))), T0)
    roll_up = RollUp()
    list(roll_up.add([(begun(EVIL, EVIL), T0)]))
    with DemoScreen(tally) as screen:
        screen.say(expiration_line(expired(EVIL, EVIL, client_host=EVIL, reason=EVIL), T0))
        for line in roll_up.add([]):
            screen.say(line)
        screen.note(nearest(tally))
    text = printed()
    assert is_harmless(text)
    assert text.count("owned") >= 4
    finding = msgspec.to_builtins(
        Finding(kind=FindingKind.FALSE, topic="expirations", group_id=EVIL, member_id=EVIL, time_ms=T0, detail=EVIL)
    )
    numbers = ("members", "killed", "expected", "expired", "false", "missed", "duplicates", "triggers_expected")
    report: dict[str, Any] = dict.fromkeys((*numbers, "heartbeats", "triggers_written", "rebalances_begun"), 1) | {
        "lateness_ms": {"p50": 1, "p99": 1, "max": 1},
        "first_expiration_s": 1,
        "ok": False,
        "unread": 0,
        "fed": {"unknown": 0},
        "findings": [finding],
    }
    with fresh_folder(tmp_path / "demo") as place:
        show_judgement(report, place)
    text = printed()
    assert is_harmless(text)
    assert text.count("owned") == 3


@pytest.mark.parametrize("words", [["--once"], ["--json"]])
def test_top(words: list[str], printed: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot is harmless, as tables and as JSON."""
    picture = Picture()
    picture.link(True, now_ms=T0)
    risk = AtRiskMember(group_id=EVIL, member_id=EVIL, deadline_ms=T0 + 9_000)
    rows = (job(T0), status(0, risk, batch_ms=T0), expired(EVIL, EVIL, T0), begun(EVIL, EVIL, at_ms=T0))
    picture.apply(topic_rows(*rows), now_ms=T0)

    class Stub(watch.Watch):
        def __init__(self, *_: object) -> None:
            """Follow nothing."""

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            """Leave nothing."""

        def settle(self) -> None:
            """Wait for nothing."""

        def frame(self, text: str = "") -> Any:
            return frame_of(picture, View(), now_ms=T0, text=text)

    monkeypatch.setattr(watch, "Watch", Stub)
    assert run(["top", *words]) == 0
    text = printed()
    assert is_harmless(text)
    assert "owned" in text


def test_notify(printed: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `--dry-run` prints is harmless, and still the message."""
    from heartwheel.front.cli import notify  # noqa: PLC0415 - the module, whose name is its command's too
    from heartwheel.readers.notify import notifier  # noqa: PLC0415 - beside the one above

    body = json.dumps({"group_id": EVIL}, ensure_ascii=False)

    class Stub:
        def __init__(self, _: object, show: Callable[[Message], object], **__: object) -> None:
            self._show = show

        def stop(self) -> None:
            """Stop nothing."""

        def run(self) -> None:
            self._show(Message(id="i", body=body, incidents=(), title="t", made_ms=0))

    monkeypatch.setattr(notifier, "Notifier", Stub)
    monkeypatch.setattr(notify, "_require_topics", lambda _: None)
    assert run(["notify", "--dry-run"]) == 0
    text = printed()
    assert is_harmless(text)
    assert json.loads(text) == {"group_id": EVIL}
