"""Lines that no broker writes by itself: whatever a client makes of them, the next line is read."""

from __future__ import annotations

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fuzz.hostile import EXAMPLES
from fuzz.line_oracle import check_cost, check_line
from heartwheel.sources.explain.identified_texts import IDENTIFIED
from heartwheel.sources.explain.text_patterns import BY_START
from support.hostile_lines import EXPIRY, HEAD, LOGGER, METADATA, ODD, PREFIX, SHAPES, TIME

_WORDS = (
    *(
        HEAD,
        PREFIX,
        TIME,
        LOGGER,
        EXPIRY,
        METADATA,
        "\n",
        "\r",
        "\0",
        "\x1b[",
        "{",
        "}",
        "[",
        "]",
        "] ",
        '"',
        "\\",
        " ",
        "  ",
    ),
    *(
        "][MemberId ",
        "[GroupId ",
        "Member ",
        "Group ",
        " (reason: ",
        "; client reason: ",
        "9" * 19,
        "-1",
        "\u2028",
        "é",
        "\ufeff",
    ),
    *(text.needle for texts in (*BY_START.values(), IDENTIFIED) for text in texts if text.needle),
    *("2026-11-22T02:12:24.836Z stdout P ", "0001-01-01 00:00:00,000+05:00", "99999999999999", "Completed request:"),
)
_FUZZING = 1_000
"""From so many examples on a run is the fuzzer's, and looks at the processor's time, too."""
_pieces = st.one_of(st.sampled_from(sorted(set(_WORDS))), st.text(max_size=12))
_texts = st.lists(_pieces, max_size=14).map("".join)


@st.composite
def log_lines(draw: st.DrawFn) -> bytes:
    """Draw a line of words of the coordinator and others, bare, in JSON, or behind a true head."""
    text = draw(_texts)
    match draw(st.integers(0, 3)):
        case 0:
            text = HEAD + text + draw(st.sampled_from(["", LOGGER]))
        case 1:
            text = json.dumps({"time": draw(st.one_of(st.integers(), st.text(max_size=20))), "message": PREFIX + text})
        case 2:
            text = f'Completed request:{{"a":"HEARTBEAT"{text}}}'
    return text.encode("utf-8", "surrogatepass")


@given(st.one_of(log_lines(), st.binary(max_size=200)))
@example(b"")
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_records_of_a_log_leave_the_next_line_readable(line: bytes) -> None:
    """Nothing raises in reading, explaining or showing, and a line behind it is read, or named as suspicious."""
    check_line(line)
    if EXAMPLES >= _FUZZING:
        check_cost(line)


def test_known_shapes_leave_the_next_line_readable() -> None:
    """The shapes that ended `explain`, or took it minutes, each in a size of its own."""
    for number, shape in enumerate(SHAPES.values(), start=1):
        check_line(shape(1_000 * number).encode())
    for line in ODD.values():
        check_line(line.encode("utf-8", "surrogatepass"))
