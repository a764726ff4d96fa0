"""The high watermarks that a shard remembers: unlike completions, they count for operations that were watched later.

An operation uses a high watermark if it was last reported less than `remembered_ms` before the watch. So if a topic is
deleted and created again, the high watermarks of the old one do not complete writes to the new one.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from timing_wheel import Partitions, Position


class HighWatermark(msgspec.Struct, frozen=True, array_like=True):
    """The high watermark of one partition.

    Args:
        size_bytes: bytes before it.
        reported_ms: effective time of the last record that reported it, changed or not, epoch ms.
    """

    offset: int
    size_bytes: int
    reported_ms: int


_decode = msgspec.msgpack.Decoder(dict[str, HighWatermark]).decode
_encode = msgspec.msgpack.Encoder().encode


class Watermarks:
    """High watermarks by key.

    Args:
        remembered_ms: how long a high watermark is used after its last report, ms.
        timeout_ms_max: longest timeout of an operation, ms: it may still use a high watermark for so long after that.
        encoded: the result of `encode`; it is decoded when it is first used.
    """

    def __init__(self, *, remembered_ms: int, timeout_ms_max: int, watermarks_max: int, encoded: bytes = b"") -> None:
        self._remembered_ms = remembered_ms
        self._kept_ms = remembered_ms + timeout_ms_max
        self._watermarks_max = watermarks_max
        self._encoded = encoded
        self._decoded: dict[str, HighWatermark] | None = None

    def __len__(self) -> int:
        return len(self._watermarks)

    @property
    def _watermarks(self) -> dict[str, HighWatermark]:
        if self._decoded is None:
            self._decoded = _decode(self._encoded) if self._encoded else {}
        return self._decoded

    def update(self, key: str, offset: int, size_bytes: int | None, now_ms: int) -> bool:
        """Set a high watermark. A lower one than the known one leaves that unchanged, and counts as a report of it.

        Args:
            offset: the high watermark.
            size_bytes: bytes before it; `None` leaves the known number unchanged.
            now_ms: effective time of the record, epoch ms.

        Returns:
            Whether there was room for it.
        """
        before = self._watermarks.get(key)
        if before is None and len(self) >= self._watermarks_max:
            self.forget(now_ms)
            if len(self) >= self._watermarks_max:
                return False
        if before is None or now_ms >= before.reported_ms + self._remembered_ms:
            before = HighWatermark(0, 0, now_ms)
        position = Position(offset, before.size_bytes if size_bytes is None else size_bytes)
        newest = max(position, Position(before.offset, before.size_bytes))
        self._watermarks[key] = HighWatermark(newest.offset, newest.size_bytes, now_ms)
        return True

    def known_at(self, keys: Iterable[str], watched_ms: int) -> Partitions[str]:
        """Return the high watermarks that an operation uses."""
        partitions: Partitions[str] = Partitions()
        for key in keys:
            watermark = self._watermarks.get(key)
            if watermark is not None and watched_ms < watermark.reported_ms + self._remembered_ms:
                partitions.replicate(key, Position(watermark.offset, watermark.size_bytes))
        return partitions

    def forget(self, now_ms: int) -> None:
        """Drop the high watermarks that no present or future operation can use."""
        kept = {
            key: watermark
            for key, watermark in self._watermarks.items()
            if now_ms < watermark.reported_ms + self._kept_ms
        }
        if len(kept) < len(self._watermarks):
            self._decoded = kept

    def encode(self) -> bytes:
        """Encode the high watermarks; if they were not used, the bytes are those that were decoded."""
        return self._encoded if self._decoded is None else _encode(self._decoded)
