"""Where a checkpoint's manifest lies: in a folder, or at an address that only Spark's own file systems can reach."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from heartwheel.base.private import private_folder
from heartwheel.settings.locations import folder_of, is_local


class CheckpointStore(Protocol):
    """The files at one location."""

    def read(self, name: str) -> bytes | None:
        """Read a file; `None` if there is none.

        Raises:
            OSError: it cannot be read.
        """
        ...

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Write a file in the place of one that may be there, of Spark's too.

        On an address it may be left half written by a crash, so whoever calls this must be able to write it again.

        Raises:
            OSError: it cannot be written.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete a file; harmless if there is none.

        Raises:
            OSError: it cannot be deleted.
        """
        ...

    def highest(self, folder: str) -> int | None:
        """Return the highest number that names a file of a folder; `None` if none does.

        Raises:
            OSError: it cannot be read.
        """
        ...

    def newest(self, folder: str) -> bytes | None:
        """Read the file of a folder whose name is the highest number; `None` if there is none.

        Raises:
            OSError: it cannot be read.
        """
        number = self.highest(folder)
        return self.read(f"{folder}/{number}") if number is not None else None

    def is_empty(self) -> bool:
        """Return whether nothing is there, the location itself included."""
        ...


def open_store(location: str, spark: SparkSession | None) -> CheckpointStore | None:
    """Open a location; `None` if that takes a Spark session and there is none yet.

    Args:
        location: a folder or an address.
    """
    if is_local(location):
        return _Folder(location)
    return _Address(location, spark) if spark is not None else None


class _Folder(CheckpointStore):
    def __init__(self, location: str) -> None:
        self._folder = folder_of(location)

    def read(self, name: str) -> bytes | None:
        path = self._folder / name
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, data: bytes) -> None:
        path = self._folder / name
        private_folder(path.parent)
        draft = path.with_name(f".{path.name}.tmp")
        draft.write_bytes(data)
        draft.replace(path)

    def replace(self, name: str, data: bytes) -> None:
        path = self._folder / name
        draft = path.with_name(f".{path.name}.tmp")
        draft.write_bytes(data)
        # Hadoop's file systems would hold the new content against the old checksum.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        draft.replace(path)

    def delete(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def highest(self, folder: str) -> int | None:
        root = self._folder / folder
        name = _highest(file.name for file in root.iterdir()) if root.is_dir() else None
        return int(name) if name is not None else None

    def is_empty(self) -> bool:
        return not (self._folder.is_dir() and any(self._folder.iterdir()))


class _Address(CheckpointStore):
    """Reach a location through Hadoop's file systems, inside Spark's JVM."""

    def __init__(self, location: str, spark: SparkSession) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to Hadoop's file systems
        configuration = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - likewise
        self._location = location
        self._path = jvm.org.apache.hadoop.fs.Path
        self._read_all = jvm.org.apache.commons.io.IOUtils.toByteArray
        self._root = self._path(location)
        try:
            self._files = self._root.getFileSystem(configuration)
        except Py4JJavaError as error:
            raise _os_error(error) from error

    def read(self, name: str) -> bytes | None:
        path = self._path(self._root, name)
        try:
            if not self._files.exists(path):
                return None
            stream = self._files.open(path)
            try:
                return bytes(self._read_all(stream))
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise _os_error(error) from error

    def write(self, name: str, data: bytes) -> None:
        # Object stores show a file when it is closed, whole; the others get it under its name by a rename.
        folder, _, base = name.rpartition("/")
        draft, path = self._path(self._root, f"{folder or '.'}/.{base}.tmp"), self._path(self._root, name)
        try:
            stream = self._files.create(draft, True)
            stream.write(bytearray(data))
            stream.close()
            if not self._files.rename(draft, path):
                raise OSError(f"{path} cannot be put in its place")
        except Py4JJavaError as error:
            raise _os_error(error) from error

    def replace(self, name: str, data: bytes) -> None:
        # A rename over an existing file is refused by some file systems.
        try:
            stream = self._files.create(self._path(self._root, name), True)
            stream.write(bytearray(data))
            stream.close()
        except Py4JJavaError as error:
            raise _os_error(error) from error

    def delete(self, name: str) -> None:
        try:
            self._files.delete(self._path(self._root, name), False)
        except Py4JJavaError as error:
            raise _os_error(error) from error

    def highest(self, folder: str) -> int | None:
        path = self._path(self._root, folder)
        try:
            found = self._files.listStatus(path) if self._files.exists(path) else ()
            name = _highest(str(one.getPath().getName()) for one in found)
        except Py4JJavaError as error:
            raise _os_error(error) from error
        return int(name) if name is not None else None

    def is_empty(self) -> bool:
        try:
            return not (self._files.exists(self._root) and len(self._files.listStatus(self._root)))
        except Py4JJavaError as error:
            raise _os_error(error) from error


def _highest(names: Iterable[str]) -> str | None:
    """Find the highest number among names; Spark's drafts and checksums beside them are none."""
    return max((name for name in names if name.isdecimal()), key=int, default=None)


def _os_error(error: Py4JJavaError) -> OSError:
    return OSError(str(error.java_exception.toString()).partition("\n")[0])
