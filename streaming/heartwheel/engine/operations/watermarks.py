"""The high watermarks that a shard remembers: unlike completions, those that came before a watch count for it.

A high watermark is known to an operation unless the last word of it came a whole `remembered_ms` before the watch. So a
topic that was deleted and made anew does not complete writes to it by what its namesake once had.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from timing_wheel import Partitions, Position


class HighWatermark(msgspec.Struct, frozen=True, array_like=True):
    """The high watermark of one partition.

    Args:
        offset: its offset.
        size_bytes: bytes before it.
        reported_ms: effective time of the last record that named it, new or not, epoch ms.
    """

    offset: int
    size_bytes: int
    reported_ms: int


_decode = msgspec.msgpack.Decoder(dict[str, HighWatermark]).decode
_encode = msgspec.msgpack.Encoder().encode


class Watermarks:
    """High watermarks by key.

    Args:
        remembered_ms: how long one is known after the last word of it, ms.
        timeout_ms_max: longest timeout of an operation: so long one may still be asked for after that, ms.
        watermarks_max: most that are remembered.
        encoded: what `encode` returned; it is not decoded before somebody asks.
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
        """Take in a high watermark; an older one only confirms what is known.

        Args:
            key: the partition.
            offset: the high watermark.
            size_bytes: bytes before it; `None` leaves them as they were.
            now_ms: effective time of the record, epoch ms.

        Returns:
            Whether there was room to remember it.
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
        """Return what an operation knows of its partitions.

        Args:
            keys: its partitions.
            watched_ms: when it was watched, epoch ms.
        """
        partitions: Partitions[str] = Partitions()
        for key in keys:
            watermark = self._watermarks.get(key)
            if watermark is not None and watched_ms < watermark.reported_ms + self._remembered_ms:
                partitions.replicate(key, Position(watermark.offset, watermark.size_bytes))
        return partitions

    def forget(self, now_ms: int) -> None:
        """Drop those that no operation, waiting or to come, can know any more."""
        kept = {
            key: watermark
            for key, watermark in self._watermarks.items()
            if now_ms < watermark.reported_ms + self._kept_ms
        }
        if len(kept) < len(self._watermarks):
            self._decoded = kept

    def encode(self) -> bytes:
        """Encode them; untouched ones are returned as they came."""
        return self._encoded if self._decoded is None else _encode(self._decoded)
