"""Fetch the jars that a lock file names: real Kafka without a build tool, the same bytes on every machine.

    python -m heartwheel.kafka.broker.jars broker spark     # fetch these sets into the cache, print where they are

A jar comes from the cache, else the user's local Maven repository, else a remote one
(`heartwheel.kafka.broker.repository`), and counts only with the size and SHA-256 of the lock. Sets are separate class
paths: the broker and Spark's connector want two versions of `kafka-clients`, so never put the whole cache on one class
path.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import IO, Final

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.kafka.broker.repository import Repository, RepositoryError, RepositoryTroubleError, repository_address
from heartwheel.kafka.broker.spark_release import UnfitSparkError, connector_set, installed_spark

Progress = Callable[[int, int], None]
"""Called with the bytes that are here and the bytes that are wanted, from any thread but never from two at once."""

_CHUNK_BYTES: Final = 1 << 18
_ATTEMPTS: Final = 3
_THREADS: Final = 8


class JarError(HeartwheelError):
    """Which jars cannot be had and why, one line a jar, and what would help."""


class Jar(msgspec.Struct, frozen=True):
    """One line of the lock.

    Args:
        sha256: digest of the file, hexadecimal.
        sets: the class paths it belongs to.
        coordinate: `group:artifact:version`.
    """

    sha256: str
    size: int
    sets: tuple[str, ...]
    coordinate: str

    @property
    def name(self) -> str:
        """Return the file as Maven does: `artifact-version.jar`."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"

    @property
    def path(self) -> str:
        """Return where the file lies in a repository of Maven's layout."""
        group, artifact, version = self.coordinate.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.name}"


def read_lock(text: str) -> list[Jar]:
    """Parse a lock: one jar a line as `sha256 bytes set[,set] group:artifact:version`, `#` starts a comment.

    Raises:
        JarError: a line is none of these, as in a file that is being written.
    """
    lines = ((number, line.partition("#")[0]) for number, line in enumerate(text.splitlines(), 1))
    return [_read_line(number, line) for number, line in lines if line.strip()]


def _read_line(number: int, line: str) -> Jar:
    try:
        sha256, size, sets, coordinate = line.split()
        _group, _artifact, _version = coordinate.split(":")
        return Jar(sha256, int(size), tuple(sets.split(",")), coordinate)
    except ValueError:
        raise JarError(
            f"line {number} of the lock of jars is no jar: {line!r}",
            hint="a jar is SHA256 BYTES SET[,SET] GROUP:ARTIFACT:VERSION; take jars.lock from the release again",
        ) from None


def locked_jars(set_name: str) -> list[Jar]:
    """List the jars of one set of the packaged lock.

    Args:
        set_name: `broker`, `broker-4.3`, `image`, `streams`, `streams-4.3`, `tools`, `spark-4.2` and the like, or
            `spark` for the set of the PySpark that is installed.

    Raises:
        JarError: if the lock knows no such set.
        UnfitSparkError: `spark` was asked for, and the job does not run on the PySpark that is installed.
    """
    jars = read_lock(resources.files(__package__).joinpath("jars.lock").read_text())
    names = {name for jar in jars for name in jar.sets}
    wanted = connector_set(names, installed_spark()) if set_name == "spark" else set_name
    chosen = [jar for jar in jars if wanted in jar.sets]
    if not chosen:
        raise JarError(f"the lock has no set of jars named {set_name!r}", hint=f"it has {', '.join(sorted(names))}")
    return chosen


def require_known_spark() -> None:
    """Refuse a PySpark that the job does not run on.

    Raises:
        UnfitSparkError: with the releases that it runs on.
        ModuleNotFoundError: there is no PySpark.
    """
    locked_jars("spark")


def default_cache_dir() -> Path:
    """Return where jars are kept: `jars` in `$HEARTWHEEL_CACHE`, else in `heartwheel` of the user's cache folder."""
    own = os.environ.get("HEARTWHEEL_CACHE")
    if own:
        return Path(own).expanduser() / "jars"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heartwheel" / "jars"


def fetch_jars(
    set_name: str, cache_dir: Path | None = None, *, offline: bool = False, progress: Progress | None = None
) -> list[Path]:
    """Bring one set of jars into the cache, if it is not there, and verify every byte of it.

    Args:
        set_name: as in `locked_jars`.
        cache_dir: the cache; `default_cache_dir()` if absent. Several processes may share it.
        offline: ask no network.
        progress: called with how many bytes of the set are here.

    Returns:
        The files of the set: one class path, in the order of the lock.

    Raises:
        JarError: naming every jar that cannot be had, each with its cause.
        UnfitSparkError: as in `locked_jars`.
    """
    return fetch(locked_jars(set_name), cache_dir or default_cache_dir(), offline=offline, progress=progress)


def fetch(
    jars: Sequence[Jar], cache_dir: Path, *, offline: bool = False, progress: Progress | None = None
) -> list[Path]:
    """Bring these jars into the cache; as `fetch_jars`, for a lock of one's own."""
    missing = [jar for jar in jars if not _intact(cache_dir / jar.name, jar)]
    total = sum(jar.size for jar in jars)
    meter = _Meter(progress, total - sum(jar.size for jar in missing), total)
    if missing:
        _fetch_missing(missing, cache_dir, meter, offline=offline)
    return [cache_dir / jar.name for jar in jars]


class _Meter:
    """A sum of bytes from several threads, passed on as it grows."""

    def __init__(self, progress: Progress | None, done: int, total: int) -> None:
        self._progress, self._done, self._total = progress, done, total
        self._lock = threading.Lock()
        self.add(0)

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            if self._progress:
                self._progress(self._done, self._total)


def _fetch_missing(jars: list[Jar], cache_dir: Path, meter: _Meter, *, offline: bool) -> None:
    with contextlib.ExitStack() as stack:
        sources = [Repository(_local_repository_dir().as_uri())]
        if not offline:
            sources.append(_remote_repository())
        for source in sources:
            stack.callback(source.close)
        pool = stack.enter_context(ThreadPoolExecutor(_THREADS))
        causes = list(pool.map(lambda jar: _fetch_one(jar, cache_dir / jar.name, sources, meter), jars))
    lost = [f"{jar.coordinate}: {cause}" for jar, cause in zip(jars, causes, strict=True) if cause]
    if lost:
        asked = "offline was asked for, and they are not in the cache" if offline else "no source has them"
        raise JarError(
            f"{len(lost)} jars cannot be had ({asked}):\n  " + "\n  ".join(lost),
            hint=f"put them into {cache_dir}, or set HEARTWHEEL_MAVEN_REPO to a Maven repository that has them"
            " (a proxy: HTTPS_PROXY; own certificates: SSL_CERT_FILE)",
        )


def _local_repository_dir() -> Path:
    return Path(os.environ.get("MAVEN_LOCAL_REPO") or Path.home() / ".m2" / "repository").absolute()


def _remote_repository() -> Repository:
    try:
        return Repository(repository_address())
    except RepositoryError as error:
        raise JarError(str(error), hint=error.hint) from None


def _fetch_one(jar: Jar, target: Path, sources: Sequence[Repository], meter: _Meter) -> str:
    """Try the sources in turn; return why the last one failed, or nothing."""
    cause = ""
    for source in sources:
        cause = _fetch_from(source, jar, target, meter)
        if not cause:
            return ""
    return cause


def _fetch_from(source: Repository, jar: Jar, target: Path, meter: _Meter) -> str:
    cause = ""
    for attempt in range(_ATTEMPTS):
        try:
            with source.open(jar.path) as stream:
                return _store(stream, jar, target, meter)
        except RepositoryTroubleError as trouble:
            cause = str(trouble)
            time.sleep(0.5 * 2**attempt)
        except RepositoryError as refusal:
            return str(refusal)
    return cause


def _store(stream: IO[bytes], jar: Jar, target: Path, meter: _Meter) -> str:
    """Write the file whole or not at all: a rename is atomic, so that processes can share a cache."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{jar.name}.", delete=False) as file:
        temporary = Path(file.name)
        try:
            # One byte more than there should be says that it is another file, however long that is.
            while chunk := stream.read(min(_CHUNK_BYTES, jar.size + 1 - size)):
                digest.update(chunk)
                file.write(chunk)
                size += len(chunk)
                meter.add(len(chunk))
                if size > jar.size:
                    meter.add(-size)
                    return f"it is longer than the {jar.size} bytes that the lock says"
            file.flush()
            if digest.hexdigest() == jar.sha256:
                temporary.chmod(0o644)
                temporary.replace(target)
                return ""
            meter.add(-size)
            return f"its SHA-256 is {digest.hexdigest()}, the lock says {jar.sha256}"
        finally:
            temporary.unlink(missing_ok=True)


def _intact(file: Path, jar: Jar) -> bool:
    return file.is_file() and file.stat().st_size == jar.size and file_sha256(file) == jar.sha256


def file_sha256(file: Path) -> str:
    """Digest a file.

    Returns:
        Its SHA-256, hexadecimal.
    """
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch the named sets and print their files, one path a line.

    Returns:
        The exit code of the command.
    """
    parser = argparse.ArgumentParser(prog="python -m heartwheel.kafka.broker.jars", description="Fetch locked jars.")
    parser.add_argument("sets", nargs="*", default=["broker", "spark"], help="sets of the lock, as in jars.lock")
    parser.add_argument("--cache-dir", type=Path, default=None)
    parser.add_argument("--offline", action="store_true")
    options = parser.parse_args(arguments)
    try:
        for name in options.sets:
            for path in fetch_jars(name, options.cache_dir, offline=options.offline):
                sys.stdout.write(f"{path}\n")
    except (JarError, UnfitSparkError) as error:
        sys.stderr.write(f"{error.report()}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
