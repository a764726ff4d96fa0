"""What is packed comes out whole up to a limit, and nothing beyond it: not into memory either."""

from __future__ import annotations

import os
import tracemalloc

import pytest
from kafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from kafka.errors import CorruptRecordError, UnsupportedCodecError

from heartwheel.kafka.unpack import GZIP, LZ4, SNAPPY, ZSTD, UnpackedTooLargeError, unpack
from support.bombs import CODECS, MIB, bomb

ENCODERS = {GZIP: gzip_encode, SNAPPY: snappy_encode, LZ4: lz4_encode, ZSTD: zstd_encode}
HONEST = os.urandom(3_000) * 1_000
HEADER_BYTES = 61
"""Before the records of a batch."""


@pytest.mark.parametrize("codec", ENCODERS)
def test_what_is_within_the_limit_comes_out_whole(codec: int) -> None:
    """Every codec gives what was packed, at a limit of just its size; one byte less is refused."""
    packed = ENCODERS[codec](HONEST)
    assert unpack(codec, packed, len(HONEST)) == HONEST
    with pytest.raises(UnpackedTooLargeError):
        unpack(codec, packed, len(HONEST) - 1)


@pytest.mark.parametrize("codec", CODECS)
def test_p6_a_bomb_is_refused_before_it_is_unpacked(codec: str) -> None:
    """P6: 128 MiB of zeros behind a limit of 4 MiB: refused, and no more than a few chunks are ever held."""
    packed = bomb(codec, 128 * MIB)[HEADER_BYTES:]
    tracemalloc.start()
    try:
        with pytest.raises(UnpackedTooLargeError):
            unpack(CODECS[codec], packed, 4 * MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * MIB + len(packed)


def test_p6_many_frames_count_together() -> None:
    """P6: a stream of many small frames is as large as all of them."""
    for codec, encode in ((GZIP, gzip_encode), (ZSTD, zstd_encode)):
        with pytest.raises(UnpackedTooLargeError):
            unpack(codec, encode(bytes(MIB)) * 5, 4 * MIB)


def test_p6_a_size_that_is_only_claimed_makes_no_room_for_itself() -> None:
    """P6: a block of snappy that claims four gigabytes in its first five bytes is refused by the claim."""
    with pytest.raises(UnpackedTooLargeError):
        unpack(SNAPPY, b"\xff\xff\xff\xff\x0f" + b"x", 64 * MIB)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
@pytest.mark.parametrize("part", [0.5, 0.999])
def test_what_is_cut_off_is_corrupt(codec: int, part: float) -> None:
    """A stream without its end is reported as that, by the error of the client's library."""
    packed = ENCODERS[codec](HONEST)
    with pytest.raises(CorruptRecordError, match="cannot be unpacked"):
        unpack(codec, packed[: int(len(packed) * part)], 64 * MIB)


@pytest.mark.parametrize("codec", ENCODERS)
def test_garbage_is_corrupt(codec: int) -> None:
    """Bytes that are no stream of the codec are reported as that."""
    with pytest.raises(CorruptRecordError):
        unpack(codec, b"\x07garbage" * 10, 64 * MIB)


def test_an_unknown_codec_is_refused() -> None:
    """A number that Kafka gives to no codec is refused."""
    with pytest.raises(UnsupportedCodecError, match="number 7"):
        unpack(7, b"", 1)
