"""Bytes as ASCII text, seven bits a character: seven bytes become eight characters.

A shard's state is a STRING column of Spark's, which crosses to Python as UTF-8, so a text has as many bytes as
characters only if it is ASCII. Base64 uses six bits of a character. With seven there is a seventh less to pickle, to
ship and to store, and with whole 64-bit words encoding and decoding take half the time.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_STEPS: Final = tuple(
    (np.uint64(shift), np.uint64(lower), np.uint64(upper))
    for shift, lower, upper in (
        (4, 0x00000000_0FFFFFFF, 0x0FFFFFFF_00000000),
        (2, 0x00003FFF_00003FFF, 0x3FFF0000_3FFF0000),
        (1, 0x007F007F_007F007F, 0x7F007F00_7F007F00),
    )
)
"""How far the upper half of every group of bits is moved up, and where both halves are after that: 56 bits become twice
28, four times 14, eight times 7."""


def to_text(data: bytes) -> str:
    """Encode bytes as text."""
    words = -(-len(data) // 7)
    # Words overlap by a byte, which is masked.
    padded = b"".join((data, bytes(words * 7 + 1 - len(data))))
    word: NDArray[np.uint64] = np.ndarray(words, "<u8", padded, strides=(7,)) & np.uint64(2**56 - 1)
    for shift, lower, upper in _STEPS:
        moved = word << shift
        moved &= upper
        word &= lower
        word |= moved
    return str(word.tobytes()[: -(-len(data) * 8 // 7)], "ascii")


def to_bytes(text: str) -> bytes:
    """Decode what `to_text` returned.

    Raises:
        UnicodeEncodeError: if the text is not ASCII.
    """
    if not text:
        return b""
    words = -(-len(text) // 8)
    word = np.frombuffer(bytearray(text.ljust(words * 8, "\0"), "ascii"), "<u8")
    for shift, lower, upper in reversed(_STEPS):
        moved = word & upper
        moved >>= shift
        word &= lower
        word |= moved
    data = bytearray(words * 7)
    np.ndarray(words, "<u4", data, 0, (7,))[:] = word.view("<u4")[::2]
    np.ndarray(words, "<u2", data, 4, (7,))[:] = word.view("<u2")[2::4]
    np.ndarray(words, "u1", data, 6, (7,))[:] = word.view("u1")[6::8]
    return bytes(memoryview(data)[: len(text) * 7 // 8])
