"""Where block files are: in a folder that all workers share, or in an object store.

Workers reach an object store by PyArrow (S3, Google Cloud Storage, Azure, HDFS where Hadoop is installed), which takes
its credentials from the environment of their process. A file never changes, so a worker keeps a copy of what it has
read or written in a folder of its machine, and reads from there.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from heartwheel.base.private import private_folder

if TYPE_CHECKING:
    from pyarrow import fs

FOLDER: Final = "blocks"
"""The folder of a checkpoint that has the block files, in a folder for each shard."""

_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}
"""What PyArrow calls the schemes that Hadoop has names of its own for."""


class BlockStoreError(Exception):
    """An object store cannot be reached, or a copy of one of its files cannot be kept."""


class BlockStore(Protocol):
    """The block files of one shard.

    Every method raises `BlockStoreError`; where files are in a folder, `OSError`.
    """

    def local(self, name: str, size: int) -> Path:
        """Return the path of a file on this machine. A copy that is missing or has another size is fetched first.

        Args:
            size: how much was written, bytes.

        Raises:
            FileNotFoundError: the object store has none. In a folder, opening the path raises it.
        """

    def put(self, name: str, blocks: Sequence[bytes]) -> None:
        """Write a new file, which no state names yet."""

    def names(self) -> list[str]:
        """Return the names of all files, and of what others put there."""

    def delete(self, name: str) -> None:
        """Delete a file."""

    def forget(self, kept: Collection[str]) -> None:
        """Delete the copies that this machine has of other files."""

    def where(self, name: str) -> str:
        """Return the location of a file."""


def block_store(checkpoint: str, shard: int) -> BlockStore:
    """Return the block files of a shard; those of an object store are not asked for yet.

    Args:
        checkpoint: a folder, or the URI of one in an object store.
    """
    return _Remote(checkpoint, shard) if "://" in checkpoint else _Folder(checkpoint, shard)


@lru_cache
def why_unreachable(checkpoint: str) -> str:
    """Write, read and delete a small file in an object store, once a process.

    Returns:
        What failed; empty if nothing did.
    """
    words = b"heartwheel"
    try:
        system, root = _opened(checkpoint)
        path = f"{root}/{FOLDER}/probe-{secrets.token_hex(8)}"
        with system.open_output_stream(path) as file:
            file.write(words)
        with system.open_input_stream(path) as file:
            found = file.read()
        system.delete_file(path)
    except (OSError, ValueError, ImportError) as error:
        return _first_line(error)
    return "" if found == words else "what was written there reads differently"


class _Folder:
    """A folder that workers and driver share; a path of it is the file itself."""

    def __init__(self, checkpoint: str, shard: int) -> None:
        self._folder = Path(checkpoint, FOLDER, str(shard))

    def local(self, name: str, size: int) -> Path:  # noqa: ARG002
        return self._folder / name

    def put(self, name: str, blocks: Sequence[bytes]) -> None:
        private_folder(self._folder.parent)
        private_folder(self._folder)
        _write(self._folder / name, blocks)

    def names(self) -> list[str]:
        return [path.name for path in self._folder.iterdir()]

    def delete(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def forget(self, kept: Collection[str]) -> None:
        pass

    def where(self, name: str) -> str:
        return str(self._folder / name)


class _Remote:
    """An object store, and a folder of this machine with copies."""

    def __init__(self, checkpoint: str, shard: int) -> None:
        self._checkpoint, self._shard = checkpoint, shard

    def local(self, name: str, size: int) -> Path:
        copy = self._copies / name
        if _size_of(copy) != size:
            with self._reached() as (system, folder), system.open_input_stream(f"{folder}/{name}") as file:
                content = file.read()
            self._keep(name, [content])
        return copy

    def put(self, name: str, blocks: Sequence[bytes]) -> None:
        with self._reached() as (system, folder), system.open_output_stream(f"{folder}/{name}") as file:
            file.write(b"".join(blocks))
        self._keep(name, blocks)

    def names(self) -> list[str]:
        from pyarrow import fs  # noqa: PLC0415 - as in _opened

        with self._reached() as (system, folder):
            found = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        return [each.base_name for each in found]

    def delete(self, name: str) -> None:
        with self._reached() as (system, folder):
            system.delete_file(f"{folder}/{name}")

    def forget(self, kept: Collection[str]) -> None:
        for path in self._copies.glob("*"):
            if path.name not in kept and not path.suffix:  # another worker is writing what has a suffix
                path.unlink(missing_ok=True)

    def where(self, name: str) -> str:
        return f"{self._checkpoint}/{FOLDER}/{self._shard}/{name}"

    @contextmanager
    def _reached(self) -> Iterator[tuple[fs.FileSystem, str]]:
        """Yield the file system and the path of the shard's folder there."""
        try:
            system, root = _opened(self._checkpoint)
            yield system, f"{root}/{FOLDER}/{self._shard}"
        except FileNotFoundError:
            raise
        except (OSError, ValueError, ImportError) as error:
            raise BlockStoreError(f"{self._checkpoint} cannot be reached: {_first_line(error)}") from error

    @cached_property
    def _copies(self) -> Path:
        checkpoint = hashlib.sha256(self._checkpoint.encode()).hexdigest()[:16]
        return _folder_of_copies() / checkpoint / str(self._shard)

    def _keep(self, name: str, blocks: Sequence[bytes]) -> None:
        """Write a copy; another worker that does so at the same time writes the same."""
        part = self._copies / f"{name}.{secrets.token_hex(4)}"
        try:
            private_folder(self._copies)
            _write(part, blocks)
            part.replace(self._copies / name)
        except OSError as error:
            raise BlockStoreError(f"{part} cannot be written: {error.strerror}") from error


def _size_of(path: Path) -> int | None:
    """Return the size of a file, bytes; `None` if it is not there, or cannot be asked for."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def _write(path: Path, blocks: Sequence[bytes]) -> None:
    with path.open("xb") as file:
        try:
            file.writelines(blocks)
            file.flush()
        except OSError:
            path.unlink()  # a full disk needs the room
            raise


@cache
def _folder_of_copies() -> Path:
    """Return a folder for copies: in one of Spark's, which deletes it when the executor ends."""
    of_spark = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    folder = Path(of_spark, "heartwheel-blocks") if of_spark else Path(tempfile.mkdtemp(prefix="heartwheel-blocks-"))
    private_folder(folder)
    return folder


@lru_cache
def _opened(location: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a location, and its path there."""
    # Half a second of imports, which a job whose checkpoint is a folder does without.
    from pyarrow import fs  # noqa: PLC0415

    scheme, _, rest = location.partition("://")
    system, path = fs.FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}://{rest}")
    if isinstance(system, fs.S3FileSystem):
        # A small file is one request then, in place of three, and a worker that is killed leaves no part of it there.
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        system = fs.S3FileSystem(region=system.region or None, endpoint_override=endpoint, allow_delayed_open=True)
    return system, path.rstrip("/")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
