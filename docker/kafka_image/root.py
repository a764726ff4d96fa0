"""Lay out the root file system of the image as one tar file."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Final

from heartwheel.kafka.broker.node_config import SMALL_NODE, properties_text
from kafka_image.elf import shared_libraries, unpack_natives

_KAFKA_UID: Final = 1000
_MODULES: Final = (
    *("java.base", "java.desktop", "java.logging", "java.management", "java.management.rmi", "java.naming"),
    *("java.net.http", "java.rmi", "java.security.jgss", "java.security.sasl", "java.sql", "java.xml"),
    *("jdk.crypto.ec", "jdk.management", "jdk.unsupported", "jdk.zipfs"),
)
_LISTENERS: Final = {
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "advertised.listeners": "PLAINTEXT://localhost:9092",
    "log.dirs": "/var/lib/kafka/data",
}


class Root:
    """Collect the files of a root file system in a tar file.

    Every parent folder gets its own entry: `docker import` would make a missing one for root's eyes only.

    Args:
        tar: open for writing.
    """

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._made: set[str] = set()

    def folder(self, path: str, *, mode: int = 0o755, uid: int = 0) -> None:
        """Make a folder, and its parents as root's."""
        self._parents(path)
        if path not in self._made:
            self._made.add(path)
            self._tar.addfile(_entry(path, mode, uid, tarfile.DIRTYPE))

    def text(self, path: str, text: str, *, mode: int = 0o644) -> None:
        """Write a file."""
        self._parents(path)
        entry = _entry(path, mode)
        entry.size = len(text.encode())
        self._tar.addfile(entry, io.BytesIO(text.encode()))

    def copy(self, source: Path, path: str) -> None:
        """Copy a file, following links, as root's."""
        self._parents(path)
        entry = self._tar.gettarinfo(source.resolve(), path)
        entry.uid = entry.gid = 0
        with source.open("rb") as stream:
            self._tar.addfile(entry, stream)

    def tree(self, source: Path, path: str) -> None:
        """Copy a folder with all that is in it, as root's."""
        self._parents(path)
        self._tar.add(source, path, filter=_as_root)

    def _parents(self, path: str) -> None:
        for parent in reversed(PurePosixPath(path).parents[:-1]):
            if str(parent) not in self._made:
                self._made.add(str(parent))
                self._tar.addfile(_entry(str(parent), 0o755, 0, tarfile.DIRTYPE))


def write_root(tar_file: Path, *, java_home: Path, jars: Sequence[Path], work: Path) -> None:
    """Write the root file system: a Java runtime, what it needs of this machine's libraries, a shell, and the jars.

    Args:
        tar_file: where it goes.
        java_home: home of a JDK, which is cut down, or of a JRE, which is taken whole.
        jars: the `image` set.
        work: a scratch folder.
    """
    runtime = java_runtime(java_home, work / "java")
    shell = Path(shutil.which("dash") or "/bin/sh").resolve()
    programs = [runtime / "bin" / "java", *runtime.rglob("*.so"), shell, *unpack_natives(jars, work / "natives")]
    with tarfile.open(tar_file, "w") as tar:
        root = Root(tar)
        _system(root)
        root.tree(runtime, "opt/java")
        root.copy(shell, "bin/sh")
        for library in sorted(shared_libraries(programs)):
            if not library.is_relative_to(runtime):
                root.copy(library, str(library).lstrip("/"))
        for jar in jars:
            root.copy(jar, f"opt/kafka/libs/{jar.name}")
        _kafka(root)


def java_runtime(java_home: Path, target: Path) -> Path:
    """Cut a JDK down to the modules that the broker needs; a JRE cannot be cut and is copied.

    Args:
        target: where the runtime goes.

    Returns:
        `target`.
    """
    jlink = java_home / "bin" / "jlink"
    flags = ["--strip-java-debug-attributes", "--no-header-files", "--no-man-pages"]
    if jlink.exists():
        command: list[str | Path] = [jlink, "--add-modules", ",".join(_MODULES), *flags, "--output", target]
        if not subprocess.run(command, capture_output=True, check=False).returncode:
            return target
        shutil.rmtree(target, ignore_errors=True)
    unwanted = shutil.ignore_patterns("src.zip", "man", "docs", "jmods")
    return Path(shutil.copytree(java_home, target, ignore=unwanted))


def _system(root: Root) -> None:
    root.folder("tmp", mode=0o1777)
    for path in ("proc", "sys", "dev"):
        root.folder(path)
    root.text("etc/passwd", f"root:x:0:0::/:/bin/sh\nkafka:x:{_KAFKA_UID}:{_KAFKA_UID}::/tmp:/bin/sh\n")
    root.text("etc/group", f"root:x:0:\nkafka:x:{_KAFKA_UID}:\n")
    root.text("etc/nsswitch.conf", "hosts: files dns\npasswd: files\n")


def _kafka(root: Root) -> None:
    root.folder("mnt/shared/config")
    for path in ("opt/kafka/config", "opt/kafka/logs", "var/lib/kafka/data", "etc/kafka/docker"):
        root.folder(path, mode=0o775, uid=_KAFKA_UID)
    files = resources.files(__package__)
    logging = files.joinpath("log4j2.yaml").read_text()
    root.text("etc/kafka/docker/server.properties", properties_text({**SMALL_NODE, **_LISTENERS}))
    root.text("etc/kafka/docker/log4j2.yaml", logging)
    root.text("etc/kafka/docker/tools-log4j2.yaml", logging)
    root.text("etc/kafka/docker/run", files.joinpath("run.sh").read_text(), mode=0o755)


def _entry(path: str, mode: int, uid: int = 0, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path)
    entry.mode, entry.type = mode, kind
    entry.uid = entry.gid = uid
    return entry


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    return entry
