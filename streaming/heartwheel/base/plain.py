"""Text of clients made safe for a terminal: ids, names and reasons come from anybody who may write to the topics.

An ESC, or a C1 control such as 0x9b, moves the cursor, sets the title or asks the terminal to type; a line break forges
a line; bidirectional controls turn a line around; what is invisible makes two ids look like one.
"""

from __future__ import annotations

import re
from typing import Final

# Unicode's categories Cc, Cf, Cs, Zl and Zp, and what is not drawn though it counts as a letter or a mark (its property
# Default_Ignorable_Code_Point). The line break is not among them: it has a class of its own.
_HIDDEN: Final = (
    r"\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    r"\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_IN_LINES: Final = re.compile(f"[{_HIDDEN}]")
_IN_A_LINE: Final = re.compile(f"[\n{_HIDDEN}]")


def plain(text: str) -> str:
    """Return a client's text as one harmless line: each hidden character becomes U+FFFD, so that it can be seen."""
    return _IN_A_LINE.sub("\N{REPLACEMENT CHARACTER}", text)


def plain_lines(text: str) -> str:
    """Do the same with text whose line breaks are our own."""
    return _IN_LINES.sub("\N{REPLACEMENT CHARACTER}", text)


def plain_json(text: str) -> str:
    r"""Escape hidden characters in JSON as `\uXXXX`: what it says is the same, and a terminal can show it.

    Args:
        text: JSON, one value or many; what is hidden can only be inside of its strings.
    """
    return _IN_LINES.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
