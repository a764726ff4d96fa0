"""Read files with what may have caused removals; what each is, its content tells.

Three kinds are known: objects of Kubernetes (`kubectl get pods,events,nodes -o json`, also one a line), a log of a
JVM's garbage collector (`-Xlog:gc:file=gc.log:time`), and lines of `time,what`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.phrases import count
from heartwheel.base.plain import plain
from heartwheel.sources.explain.causes.happening import HAPPENINGS_MAX, TEXT_CHARS_MAX, Happening, HappeningKind
from heartwheel.sources.explain.causes.kubernetes_objects import UNREADABLE, happenings_of
from heartwheel.sources.explain.causes.moments import moment_ms
from heartwheel.sources.explain.local_zone import LocalZone

KUBERNETES: Final = "kubernetes:"
"""How the name of a namespace begins among those of files."""

FILE_BYTES_MAX: Final = 256 << 20
"""Largest file that is read, bytes."""

_LINE_BYTES_MAX: Final = 1 << 20
_PAUSE_MS_MIN: Final = 1_000
_GC: Final = re.compile(r"^\[(\d{4}-\d\d-\d\dT[^\]]{8,24})\].*?\b(Pause [^\d]*?)\s.*?(\d+(?:[.,]\d+)?)ms\s*$")
_GC_TIME: Final = re.compile(r"^\[(\d{4}-\d\d-\d\dT[0-9:.,+-]{8,20})\]")
_GC_LINE: Final = re.compile(r"^(?:\[[^\]]*\]){1,8}")
_UNREADABLE: Final = (*UNREADABLE, RecursionError, msgspec.DecodeError)


class CauseFile:
    """A file with what may have caused removals.

    Args:
        name: of the file, or `POD=FILE` for a log of that pod, or of the client or host of that name.
        zone: that of times that name none.

    Attributes:
        bad: how many lines or items could not be read.
        doubt: the first of them, and why; empty if there is none.
    """

    def __init__(self, name: str, zone: LocalZone) -> None:
        whose, is_named, path = name.partition("=")
        self._whose, self.path = (whose, Path(path)) if is_named and not Path(name).exists() else ("", Path(name))
        self._zone = zone
        self.bad, self.doubt = 0, ""

    def stat(self) -> tuple[int, int]:
        """Return its size and when it was changed; zeros if it is not there."""
        try:
            status = self.path.stat()
        except OSError:
            return 0, 0
        return status.st_size, status.st_mtime_ns

    def read(self) -> list[Happening]:
        """Return what it shows.

        Raises:
            HeartwheelError: it cannot be read, or is too large.
        """
        self.bad, self.doubt = 0, ""
        try:
            if (size := self.path.stat().st_size) > FILE_BYTES_MAX:
                words = f"{self.path} has {size:,} bytes, at most {FILE_BYTES_MAX:,} are read"
                raise HeartwheelError(words, hint="name a part of it")
            with self.path.open("rb") as file:
                found = self._read(file)
                return [each for each, _ in zip(found, range(HAPPENINGS_MAX), strict=False)]
        except OSError as error:
            hint = "name files of Kubernetes' objects in JSON, logs of garbage collectors, or lines of time,what"
            raise HeartwheelError(f"{self.path} cannot be read: {error.strerror}", hint=hint) from None

    def _read(self, file: BinaryIO) -> Iterator[Happening]:
        first = file.read(1)
        while first.isspace():
            first = file.read(1)
        file.seek(0)
        if first == b"{":
            yield from self._objects(file)
            return
        for number, line in enumerate(iter(lambda: file.readline(_LINE_BYTES_MAX), b""), 1):
            text = line.decode("utf-8", "replace").strip()
            if text and not text.startswith("#"):
                yield from self._tried(number, self._line, text)

    def _objects(self, file: BinaryIO) -> Iterator[Happening]:
        data = file.read()
        try:
            whole = msgspec.json.decode(data)
            items = whole.get("items", [whole])
        except _UNREADABLE:
            items = data.splitlines()
        for number, item in enumerate(items, 1):
            if not isinstance(item, bytes) or item.strip():
                yield from self._tried(number, self._object, item)

    def _tried(self, number: int, read: Callable[[int, str], Sequence[Happening]], item: str) -> Sequence[Happening]:
        """Return what a line or an item shows; one that cannot be read is counted."""
        try:
            return read(number, item)
        except _UNREADABLE as error:
            self.bad += 1
            self.doubt = self.doubt or f"{self.path}:{number}: {plain(str(error))[:TEXT_CHARS_MAX]}"
            return ()

    def _object(self, number: int, item: object) -> Sequence[Happening]:
        value = msgspec.json.decode(item) if isinstance(item, bytes) else item
        if not isinstance(value, dict):
            raise TypeError("no object of Kubernetes")
        return list(happenings_of(value.get("object", value), str(self.path), number, self._zone))

    def _line(self, number: int, text: str) -> Sequence[Happening]:
        head = _GC_LINE.match(text)
        if head is not None:
            return self._pause(number, text)
        at, comma, what = text.partition(",")
        if not comma:
            raise ValueError("no line of time,what")
        return [self._happening(HappeningKind.DEPLOYED, moment_ms(at, self._zone), number, text=what.strip())]

    def _pause(self, number: int, text: str) -> Sequence[Happening]:
        pause = _GC.match(text)
        if pause is None:
            if "Pause" in text and not _GC_TIME.match(text):
                raise ValueError("a pause without a time of day: -Xlog:gc:file=gc.log:time writes it")
            return ()
        took_ms = round(float(pause[3].replace(",", ".")))
        if took_ms < _PAUSE_MS_MIN:
            return ()
        ended_ms = moment_ms(pause[1].replace(",", "."), self._zone)
        began_ms = ended_ms - took_ms
        return [self._happening(HappeningKind.PAUSED, ended_ms, number, began_ms=began_ms, text=pause[2])]

    def _happening(
        self, kind: HappeningKind, time_ms: int, line: int, *, text: str, began_ms: int | None = None
    ) -> Happening:
        return Happening(
            kind=kind,
            time_ms=time_ms,
            began_ms=began_ms,
            pod=self._whose,
            text=text[:TEXT_CHARS_MAX],
            file=str(self.path),
            line=line,
        )


def places_of(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the files among names, and the namespaces of Kubernetes."""
    files, namespaces = [], []
    for name in names:
        if name.startswith(KUBERNETES):
            namespaces.append(name.removeprefix(KUBERNETES))
        else:
            files.append(name)
    return files, namespaces


class CauseFiles:
    """Several files, each read again when it has changed.

    Args:
        names: of them, as `CauseFile` takes them.
        zone: that of times that name none.
    """

    def __init__(self, names: Sequence[str], zone: LocalZone) -> None:
        self._files = [CauseFile(name, zone) for name in dict.fromkeys(names)]
        self._seen: dict[CauseFile, tuple[int, int]] = {}

    def read(self) -> list[Happening]:
        """Return what the files show that have changed since the last look.

        Raises:
            HeartwheelError: one cannot be read; the next look leaves it out until it has changed again.
        """
        found = []
        for file in self._files:
            stat = file.stat()
            if self._seen.get(file) != stat:
                self._seen[file] = stat
                found += file.read()
        return found

    def doubts(self) -> list[str]:
        """Return a sentence for each file with something that could not be read."""
        return [
            f"{count(file.bad, 'line')} of {file.path} could not be read, the first: {file.doubt}"
            for file in self._files
            if file.bad
        ]
