"""The checks of `heartwheel doctor` that need no broker: each examines one thing and returns what it found."""

from __future__ import annotations

import enum
import os
import re
import stat
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.phrases import count
from heartwheel.base.private import is_trustworthy
from heartwheel.front.cli.extras import EXTRAS, is_installed
from heartwheel.settings import Settings, format_size

_OF_OTHERS: Final = 0o027  # a group may read: containers get secrets that way


class Status(enum.StrEnum):
    """The result of a check; only `BAD` keeps heartwheel from running."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"
    SKIPPED = "skipped"


class DoctorCheck(NamedTuple):
    """A check and its result."""

    name: str
    status: Status
    detail: str
    hint: str = ""


def failed(name: str, error: HeartwheelError, status: Status = Status.BAD) -> DoctorCheck:
    """Return a check for an error that is written for people."""
    return DoctorCheck(name, status, str(error), error.hint or "")


def asked(name: str, ask: Callable[[], DoctorCheck]) -> DoctorCheck:
    """Return a check that asks Kafka; if no answer comes, or a refusal, that is its result."""
    from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError

    try:
        return ask()
    except (KafkaUnreachableError, KafkaRefusedError) as error:
        return failed(name, error)


def check_job(settings: Settings) -> Iterator[DoctorCheck]:
    """Check what only the job needs, if this machine can run it."""
    if not is_installed("job"):
        detail = "the extra job is not installed, so no job can run here; the next checks are those of a client"
        yield DoctorCheck("job", Status.SKIPPED, detail, 'pip install "heartwheel[job]"')
        return
    yield check_java()
    yield from check_jars()
    yield check_class_archive(settings)
    yield check_checkpoint(settings)
    yield from check_block_files(settings)
    yield check_memory(settings)


def check_java() -> DoctorCheck:
    """Check for a Java that runs Spark and the broker."""
    from heartwheel.kafka.broker.java import JavaError, find_java, java_version

    try:
        java = find_java()
        return DoctorCheck("java", Status.OK, f"Java {java_version(java)} at {java}")
    except JavaError as error:
        return failed("java", error)


def check_packages() -> DoctorCheck:
    """Compare the installed packages with what this version requires for itself and for each installed extra."""
    from packaging.requirements import Requirement

    installed = ["", *filter(is_installed, EXTRAS)]
    faults, found = [], []
    for text in metadata.requires("heartwheel") or []:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in installed):
            continue
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            faults.append(f"{requirement.name} is not installed")
            continue
        found.append(f"{requirement.name} {version}")
        if not requirement.specifier.contains(version, prereleases=True):
            faults.append(f"{requirement.name} is {version}, needs {requirement.specifier}")
    if faults:
        hint = "install this distribution again, or what requirements.lock names: make setup"
        return DoctorCheck("packages", Status.BAD, "; ".join(faults), hint)
    return DoctorCheck("packages", Status.OK, ", ".join(found))


def check_jars() -> Iterator[DoctorCheck]:
    """Verify every byte of the jars in the cache, without using the network."""
    from heartwheel.kafka.broker.jars import JarError, default_cache_dir, fetch_jars
    from heartwheel.kafka.broker.spark_release import UnfitSparkError

    cache = default_cache_dir()
    for name, purpose in (("spark", "Spark's Kafka connector"), ("broker", "the embedded broker")):
        try:
            jars = fetch_jars(name, cache, offline=True)
        except UnfitSparkError as error:
            yield failed(f"jars of {name}", error)
        except JarError:
            yield DoctorCheck(
                f"jars of {name}",
                Status.WARN,
                f"{purpose} is not whole in {cache}",
                "what is missing is fetched at the first start, which needs the network",
            )
        else:
            yield DoctorCheck(f"jars of {name}", Status.OK, f"{len(jars)} with the right hashes in {cache}")


def check_class_archive(settings: Settings) -> DoctorCheck:
    """Check for the archive of Spark's classes, with which a local job starts in about six tenths of the time."""
    from heartwheel.engine.runtime.driver.session import archive_file
    from heartwheel.kafka.broker.jars import default_cache_dir, locked_jars
    from heartwheel.kafka.broker.spark_release import UnfitSparkError
    from heartwheel.settings.locations import runs_elsewhere

    name = "class archive"
    if runs_elsewhere(settings.spark.master):
        return DoctorCheck(
            name, Status.SKIPPED, f"only a local JVM takes one, and the master is {settings.spark.master}"
        )
    try:
        jars = locked_jars("spark")
    except UnfitSparkError as error:
        return failed(name, error, Status.SKIPPED)
    file = archive_file([default_cache_dir() / jar.name for jar in jars])
    if is_trustworthy(file):
        return DoctorCheck(name, Status.OK, f"Spark's classes are in {file}")
    if file.exists():
        detail = f"{file} is not loaded: it, or its folder, can be changed by others than this user and root"
        return DoctorCheck(
            name, Status.WARN, detail, f"chmod go-w {file.parent} {file}, or make it again: make classes"
        )
    hint = (
        "make classes, or: python -m heartwheel.kafka.broker.jars spark"
        " | xargs python -m heartwheel.engine.runtime.driver.class_archive"
    )
    return DoctorCheck(
        name, Status.SKIPPED, "none of this Python, Java and jars: the job starts slower without it", hint
    )


def check_private_files(settings: Settings) -> Iterator[DoctorCheck]:
    """Check for files with passwords, tokens or keys that other users of this machine can read or change."""
    for section, keys in (("gateway", ("access_file", "tls_key")), ("dashboard", ("users_file", "tls_key"))):
        for key in keys:
            name, file = f"{section}.{key}", str(getattr(getattr(settings, section), key))
            if not file:
                continue
            try:
                mode = Path(file).stat().st_mode
            except OSError as error:
                yield DoctorCheck(name, Status.BAD, f"{file} cannot be read: {error.strerror}", f"set {name}")
                continue
            if mode & _OF_OTHERS:
                detail = f"{file} can be read or changed by others (mode {stat.S_IMODE(mode):04o})"
                yield DoctorCheck(name, Status.WARN, detail, f"chmod 600 {file}")
            else:
                yield DoctorCheck(name, Status.OK, f"{file} cannot be read or changed by others")


def check_checkpoint(settings: Settings) -> DoctorCheck:
    """Check whether the checkpoint can be written, and belongs to this version and configuration; write nothing."""
    from heartwheel.engine.runtime.driver.checkpoint import CheckpointError, open_checkpoint, read_manifest
    from heartwheel.settings.locations import (
        ONE_JOB_HINT,
        folder_of,
        is_local,
        renames_atomically,
        without_atomic_rename,
    )

    location = settings.checkpoint.location
    if not renames_atomically(location):
        return DoctorCheck("checkpoint", Status.WARN, without_atomic_rename(location), ONE_JOB_HINT)
    if not is_local(location):
        return DoctorCheck(
            "checkpoint", Status.SKIPPED, f"{location} is not a local folder", "Spark checks it at the start"
        )
    try:
        # Opening writes the manifest of a new checkpoint, so only one that has a manifest is opened.
        manifest = open_checkpoint(settings) if read_manifest(location) else None
    except CheckpointError as error:
        return failed("checkpoint", error)
    root = folder_of(location).absolute()
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        return DoctorCheck("checkpoint", Status.BAD, f"{existing} cannot be written", "set checkpoint.location")
    if manifest is None:
        return DoctorCheck("checkpoint", Status.OK, f"{location} is new and can be written")
    return DoctorCheck(
        "checkpoint", Status.OK, f"{location} has format {manifest.format} and {count(manifest.shards, 'shard')}"
    )


def check_block_files(settings: Settings) -> Iterator[DoctorCheck]:
    """Write, read and delete a small file where the checkpoint is an object store that is to have block files."""
    from heartwheel.engine.heartbeats.config import (
        WITHOUT_BLOCK_FILES_HINT,
        needs_object_store,
        without_block_files,
    )

    if not needs_object_store(settings):
        return
    location = settings.checkpoint.location
    if reason := without_block_files(settings):
        detail = f"Python does not reach {location}, so all state stays in its rows: {reason}"
        yield DoctorCheck("block files", Status.WARN, detail, WITHOUT_BLOCK_FILES_HINT)
    else:
        yield DoctorCheck("block files", Status.OK, f"Python can write to {location}")


def check_memory(settings: Settings, meminfo: Path = Path("/proc/meminfo")) -> DoctorCheck:
    """Compare the free memory with the heap that the driver may take."""
    wanted = settings.spark.driver_memory_bytes
    match = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE) if meminfo.exists() else None
    if match is None:
        return DoctorCheck("memory", Status.SKIPPED, "this system does not say how much is free")
    free = int(match[1]) * 1024
    detail = f"{free / 2**30:.1f} GiB free, the driver may take {format_size(wanted)}"
    if free < wanted:
        return DoctorCheck("memory", Status.WARN, detail, "lower spark.driver_memory, or free some")
    return DoctorCheck("memory", Status.OK, detail)
