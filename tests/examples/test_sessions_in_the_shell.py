"""README's lines in `pyspark`, with a session of its own and with a local server of Spark Connect.

A Connect session and an ordinary one do not mix in one process, so the shell is a process of its own.
"""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from heartwheel import sessions
from support.job import wait_for
from support.pyspark_shell import PysparkShell
from support.sink import batch_times_ms, stopped_for

pytestmark = [pytest.mark.spark, pytest.mark.proof, pytest.mark.timeout(600)]

README = Path(__file__).parents[2] / "README.md"

TIMEOUT_S = 5
STOPPED_S = 3 * TIMEOUT_S
TRIGGER_S = 0.5
SOURCE_S = 0.25
"""The rate source gives the rows of a second at its end, 0.05 s after the deadline, and Spark notes the time of a batch
some ms after it has asked the source."""

NOON_S = 1_767_268_800
ROWS = [
    ("a", 0, False, 1),
    ("b", 5, False, 1),
    ("a", 40, False, 2),
    ("b", 45, True, 2),
    ("a", 60, False, 3),
]
"""A device, seconds after noon, whether it says goodbye, and its firmware."""

ONCE = """
import contextlib, io, json
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    sessions.describe(gone.sparkSession.createDataFrame([(1, 2)], "key int, at int"), key="key", timeout="5 seconds")

listed = spark.createDataFrame(ROWS, "device string, second bigint, bye boolean, firmware int")
listed = listed.withColumn("seen", F.timestamp_seconds(F.col("second") + NOON))
found = sessions(listed, key="device", timeout="30 seconds", time="seen", ends=F.col("bye"), carry=["firmware"])
found = found.withColumn("at", F.unix_seconds("at")).select("device", "event", "at", "times", "reason", "firmware")
ANSWER.write_text(json.dumps([printed.getvalue(), type(spark).__module__, [list(row) for row in found.collect()]]))
"""
"""The same session used once more: described, and on a DataFrame that is not streaming."""

READ_ON = """
import time
def clock():
    figures = (query.lastProgress or {"observedMetrics": {}})["observedMetrics"].get("heartwheel_sessions")
    if figures is None:
        return 0
    named = figures.asDict()
    if "values" in named:
        named = dict(zip((field["name"] for field in named["schema"]["fields"]), named["values"]))
    return named["now_ms"]

while clock() < SINCE:
    time.sleep(0.1)
"""
"""Waits until the query has read all up to a time. Spark Connect has the figures as values and their schema."""


def the_ten_lines(checkpoint: Path) -> str:
    """Return README's lines, with a checkpoint of this test."""
    section = README.read_text(encoding="utf-8").partition("## I have a Spark")[2]
    code: str = re.findall(r"```python\n(.+?)```", section, re.DOTALL)[0]
    assert len(code.splitlines()) <= 10
    code, found = re.subn(r'(?<="checkpointLocation", ")[^"]+', str(checkpoint), code)
    assert found == 1
    return code


def at_s(shown: str) -> float:
    """Return a timestamp as the console sink prints it, in UTC, in epoch s."""
    return datetime.fromisoformat(shown).replace(tzinfo=UTC).timestamp()


def expected() -> list[list[Any]]:
    """Return what `sessions` makes of the rows, without Spark."""
    rows = [
        {"device": device, "seen": datetime.fromtimestamp(NOON_S + second, UTC), "bye": bye, "firmware": firmware}
        for device, second, bye, firmware in ROWS
    ]
    found = sessions.test(rows, key="device", timeout="30 seconds", time="seen", ends="bye", carry=["firmware"])
    return sorted(
        [row["device"], row["event"], int(row["at"].timestamp()), row["times"], row["reason"], row["firmware"]]
        for row in found
    )


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--remote", "local[2]"], id="connect"),
        pytest.param(["--master", "local[2]"], id="classic"),
    ],
)
def test_the_lines_of_the_readme_show_a_dead_device_and_a_stop_shows_none(words: list[str], tmp_path: Path) -> None:
    """A device that dies is shown by the first batch after its deadline, and a stop of three timeouts ends nobody.

    A batch begins every half second: so that is within a second where it takes less than 0.45 s.
    """
    checkpoint, answer = tmp_path / "devices", tmp_path / "answer.json"
    zone = ["--conf", "spark.sql.session.timeZone=UTC"]
    with PysparkShell([*words, *zone], tmp_path) as shell:
        code = the_ten_lines(checkpoint)
        shell.run(code)
        gone = wait_for(
            lambda: [each for each in shell.shown() if each.row["event"] == "gone"],
            lambda: f"a device that is gone\n{shell.text[-5000:]}",
        )[0]
        assert (gone.row["device"], gone.row["reason"]) == ("3", "timeout")
        assert gone.row["at"] == gone.row["deadline"]
        # On a busy machine a batch begins later and takes longer, and by so much the row may come later.
        batches_s = [ms / 1000 for ms in batch_times_ms(checkpoint)]
        late_s = gone.at_s - at_s(gone.row["deadline"])
        waited_s = max(0.0, batches_s[gone.batch] - batches_s[gone.batch - 1] - TRIGGER_S)
        took_s = gone.at_s - batches_s[gone.batch]
        assert 0 < late_s <= SOURCE_S + TRIGGER_S + waited_s + took_s, (waited_s, took_s)

        names = {"ROWS": repr(ROWS), "NOON": repr(NOON_S), "ANSWER": f"__import__('pathlib').Path({str(answer)!r})"}
        (tmp_path / "once.py").write_text(re.sub("ROWS|NOON|ANSWER", lambda found: names[found[0]], ONCE))
        shell.run(f"exec(open({str(tmp_path / 'once.py')!r}).read())")
        printed, session, rows = json.loads(answer.read_text())
        assert ("connect" in session) == ("--remote" in words)
        assert printed.startswith("sessions  of key; gone after 5s without an event\n")
        assert sorted(rows) == expected()

        shell.run("query.stop()")
        wait_for(lambda: stopped_for(checkpoint, STOPPED_S), "a stop of three timeouts")
        since_ms = int(time.time() * 1000)
        shell.run(code.splitlines()[-1])
        shell.run(READ_ON.replace("SINCE", str(since_ms)))
        shell.run("query.stop()")
    assert sorted((each.row["event"], each.row["device"]) for each in shell.shown()) == [
        *(("came", device) for device in "0123"),
        ("gone", "3"),
    ]
