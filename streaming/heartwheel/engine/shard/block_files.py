"""Block files: what a large shard seldom changes, in files of the checkpoint that are written once.

A state row is read and written whole in every batch, so it should hold what changes. A **block** of ids, details or
fingerprints may lie in a file instead, and the row then has a reference to it. Whatever crashes, every version of the
state finds the blocks that it names, by four rules:

1. A file is complete before the batch that names it commits, and nothing is ever written to it again.
2. Its name is the number of the batch and a random part. A batch that is done again, a speculative task and a second
   job by mistake write files of their own; if they do not commit, nobody names those.
3. A file that the state names no longer is kept, by a list in the state, for as many batches as Spark keeps versions.
4. Every `SWEEP_EVERY` batches a shard deletes those files of its folder that neither the state nor that list names and
   that are older than those versions: no task that may still commit has written them.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from heartwheel.engine.shard.block_store import BlockStoreError, block_store
from heartwheel.engine.shard.frame import StateBlobError

MARK: Final = "@"
"""The first character of a reference; no text of a block begins so."""

SWEEP_EVERY: Final = 64
"""From how many batches to how many a shard looks for files that nobody names."""

_NAME: Final = re.compile(r"[0-9a-f]{16}")
_BATCH_CHARS: Final = 8
_NUMBERS: Final = re.compile(r"@([0-9a-f]{16})([0-9a-f]{8})([0-9a-f]{8})([0-9a-f]{8})")


class BlockFileError(StateBlobError):
    """A block file that the state names is missing, cut short or changed."""


class _Listed(msgspec.Struct, array_like=True):
    """The section of a state about its files.

    Args:
        files: name to size, bytes.
        dropped: name to the batch from which on no state names it.
        filed_bytes: of the blocks that are referred to.
    """

    files: dict[str, int] = {}
    dropped: dict[str, int] = {}
    filed_bytes: int = 0


class BlockFiles:
    """The block files of one shard in one batch.

    Args:
        checkpoint: the folder of the checkpoint, or its URI in an object store.
        batch: the number of the batch; `None` where nothing is to be written.
        from_bytes: size of all blocks from which on they are in files, bytes; 0 for never, which also brings those that
            are in files back into the row.
        versions: how many versions of the state are kept.
    """

    def __init__(
        self, checkpoint: str, shard: int, *, batch: int | None = None, from_bytes: int = 0, versions: int = 10
    ) -> None:
        self._store = block_store(checkpoint, shard)
        self._shard, self._batch = shard, batch
        # Spark deletes old versions now and then, and counts them from the batch that is running or the one before.
        self._oldest = (batch or 0) - versions - 2
        self.from_bytes = from_bytes if batch is not None else 0
        self._listed = _Listed()

    @property
    def files(self) -> dict[str, int]:
        """The files that the state names, with the size of each, bytes."""
        return self._listed.files

    @property
    def filed_bytes(self) -> int:
        """The size of the blocks that the state names in them, bytes."""
        return self._listed.filed_bytes

    def load(self, section: bytes) -> None:
        """Take the section of a state, and look whether its files are there.

        Raises:
            BlockFileError: one is not, or has not its size.
            BlockStoreError: the object store cannot be reached.
            msgspec.MsgspecError: it is no such section.
        """
        self._listed = msgspec.msgpack.decode(section, type=_Listed)
        for name, size in self.files.items():
            try:
                found = self._store.local(name, size).stat().st_size
            except OSError as error:
                raise self._error(name, f"cannot be read ({error.strerror})") from error
            if found != size:
                raise self._error(name, f"has {found} bytes, and {size} were written")

    def section(self) -> bytes:
        """Return the section of the state; empty if there is nothing to say."""
        return msgspec.msgpack.encode(self._listed) if self.files or self._listed.dropped else b""

    def are_wanted(self, block_bytes: int) -> bool:
        """Return whether blocks of this size are to be in files; those that are stay until half of it is left."""
        return 0 < self.from_bytes <= block_bytes * (2 if self.files else 1)

    def write(self, blocks: Sequence[bytes]) -> list[str]:
        """Write a new file, and return a reference to each block.

        Raises:
            BlockStoreError: the object store cannot be reached.
            OSError: it cannot be written; nothing is left of it on this machine.
        """
        name = f"{self._batch:0{_BATCH_CHARS}x}{secrets.token_hex(4)}"
        self._store.put(name, blocks)
        references, at = [], 0
        for block in blocks:
            references.append(f"{MARK}{name}{at:08x}{len(block):08x}{zlib.crc32(block):08x}")
            at += len(block)
        self.files[name] = at
        return references

    def read(self, references: Iterable[str]) -> list[bytes]:
        """Read blocks; those that follow each other in a file are read together.

        Raises:
            BlockFileError: the file is missing, or the block is not what was written.
        """
        blocks: list[bytes] = []
        with contextlib.ExitStack() as opened:
            name, file = "", None
            for run in _runs(map(_parsed, references)):
                try:
                    if file is None or name != run[0].name:
                        opened.close()
                        name = run[0].name
                        path = self._store.local(name, self.files.get(name, -1))
                        file = opened.enter_context(path.open("rb", buffering=0))
                    file.seek(run[0].at)
                    read = file.read(run[-1].end - run[0].at)
                except OSError as error:
                    raise self._error(run[0].name, f"cannot be read ({error.strerror})") from error
                blocks += self._checked(run, read)
        return blocks

    def _checked(self, run: Sequence[_Place], read: bytes) -> Iterator[bytes]:
        """Yield the blocks of a run."""
        for name, at, size, checksum in run:
            start = at - run[0].at
            block = read[start : start + size]
            if len(block) != size or zlib.crc32(block) != checksum:
                raise self._error(name, f"was changed: the {size} bytes at {at} have another checksum")
            yield block

    def name_only(self, named: Mapping[str, int]) -> None:
        """Note which files the state refers to; all others are kept for as long as a version names them.

        Args:
            named: the size of the blocks that are referred to, by file, bytes.
        """
        batch = self._batch or 0
        dropped = self._listed.dropped | {name: batch for name in self.files if name not in named}
        files = {name: size for name, size in self.files.items() if name in named}
        self._listed = _Listed(files, dropped, sum(named.values()))

    def sweep(self) -> None:
        """Delete, every `SWEEP_EVERY` batches, the files that no kept version of the state names.

        What cannot be deleted is left to the next time. A shard that has no files, and is to have none, does not look.
        """
        listed = self._listed
        if self._batch is None or self._batch % SWEEP_EVERY or not (self.from_bytes or listed.files or listed.dropped):
            return
        listed.dropped = {name: since for name, since in listed.dropped.items() if since >= self._oldest}
        kept = listed.files.keys() | listed.dropped.keys()
        with contextlib.suppress(OSError, BlockStoreError):
            self._store.forget(kept)
            for name in self._store.names():
                if _NAME.fullmatch(name) and name not in kept and int(name[:_BATCH_CHARS], 16) < self._oldest:
                    self._store.delete(name)

    def _error(self, name: str, what: str) -> BlockFileError:
        return BlockFileError(f"block file {self._store.where(name)} of shard {self._shard} {what}")


class _Place(NamedTuple):
    """Where a block lies: name of the file, position and size, bytes, and the checksum of its content."""

    name: str
    at: int
    size: int
    checksum: int

    @property
    def end(self) -> int:
        return self.at + self.size


def _parsed(reference: str) -> _Place:
    found = _NUMBERS.fullmatch(reference)
    if found is None:
        raise ValueError(f"{reference[:60]!r} is no reference to a block")
    name, *numbers = found.groups()
    return _Place(name, *(int(number, 16) for number in numbers))


def _runs(places: Iterable[_Place]) -> Iterator[list[_Place]]:
    """Yield places together that follow each other in one file."""
    run: list[_Place] = []
    for place in places:
        if run and (place.name != run[-1].name or place.at != run[-1].end):
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def filed_bytes_of(references: Sequence[str]) -> Counter[str]:
    """Return the size of the blocks that are referred to in each file, by its name, bytes."""
    # A million members have five thousand of these, and each batch adds all of them up.
    sizes = np.frombuffer(bytes.fromhex("".join([reference[25:33] for reference in references])), ">u4")
    found = Counter[str]()
    for reference, size in zip(references, sizes.tolist(), strict=True):
        found[reference[1:17]] += size
    return found
