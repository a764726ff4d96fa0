"""Read files with what may have caused removals; what each is, its content tells.

Three kinds are known: objects of Kubernetes (`kubectl get pods,events,nodes -o json`, also one a line), a log of a
JVM's garbage collector (`-Xlog:gc:file=gc.log:time`), and lines of `time,what`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.phrases import count
from heartwheel.base.plain import plain
from heartwheel.sources.explain.causes.happening import HAPPENINGS_MAX, TEXT_CHARS_MAX, Happening, HappeningKind
from heartwheel.sources.explain.causes.kubernetes_objects import UNREADABLE, happenings_of
from heartwheel.sources.explain.causes.moments import moment_ms
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.explain.rotated_log import LINE_BYTES_MAX, RotatedLog, TailPosition

KUBERNETES: Final = "kubernetes:"
"""How the name of a namespace begins among those of files."""

FILE_BYTES_MAX: Final = 256 << 20
"""Largest file that is read, bytes."""

_NEAR_BYTES: Final = 64 << 10
_PAUSE_MS_MIN: Final = 1_000
_GC: Final = re.compile(r"^\[(\d{4}-\d\d-\d\dT[^\]]{8,24})\].*?\b(Pause [^\d]*?)\s.*?(\d+(?:[.,]\d+)?)ms\s*$")
_GC_TIME: Final = re.compile(r"^\[(\d{4}-\d\d-\d\dT[0-9:.,+-]{8,20})\]")
_GC_LINE: Final = re.compile(r"^(?:\[[^\]]*\]){1,8}")
_UNREADABLE: Final = (*UNREADABLE, RecursionError, msgspec.DecodeError)


class _ReadTo(NamedTuple):
    """How far the lines of a file were read.

    Args:
        position: of the next line.
        are_objects: whether each line is an object in JSON.
        line: its number.
        before: the text before it: if that is another one by now, the file was written again.
        rest_bytes: how much of the next line was there.
        bad: how many lines before it could not be read.
        doubt: the first of them.
    """

    position: TailPosition
    are_objects: bool
    line: int = 1
    before: bytes = b""
    rest_bytes: int = 0
    bad: int = 0
    doubt: str = ""


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
        self._read_to: _ReadTo | None = None
        self.bad, self.doubt = 0, ""

    def stat(self) -> tuple[int, int]:
        """Return its size and when it was changed; zeros if it is not there."""
        try:
            status = self.path.stat()
        except OSError:
            return 0, 0
        return status.st_size, status.st_mtime_ns

    def read(self) -> list[Happening]:
        """Return what it shows; of lines that were read before, and are still there, only what was added.

        Raises:
            HeartwheelError: it cannot be read, or is too large.
        """
        try:
            return [each for each, _ in zip(self._read(), range(HAPPENINGS_MAX), strict=False)]
        except OSError as error:
            hint = "name files of Kubernetes' objects in JSON, logs of garbage collectors, or lines of time,what"
            raise HeartwheelError(f"{self.path} cannot be read: {error.strerror}", hint=hint) from None

    def _read(self) -> Iterator[Happening]:
        begin, self._read_to = self._read_to, None
        if begin is not None:
            with closing(RotatedLog(self.path, begin.position)) as log:
                if not log.lost and log.before(_NEAR_BYTES) == begin.before:
                    data = log.read()
                    if len(data) > begin.rest_bytes and not log.is_next:
                        yield from self._lines(log, data, begin)
                        if not log.is_next:
                            return
        yield from self._whole()

    def _whole(self) -> Iterator[Happening]:
        self.bad, self.doubt = 0, ""
        if (size := self.path.stat().st_size) > FILE_BYTES_MAX:
            words = f"{self.path} has {size:,} bytes, at most {FILE_BYTES_MAX:,} are read"
            raise HeartwheelError(words, hint="name a part of it")
        with self.path.open("rb") as file:
            first = file.read(1)
            while first.isspace():
                first = file.read(1)
            file.seek(0)
            is_json = first == b"{"
            if is_json and not _is_object(file.readline()):
                file.seek(0)
                yield from self._objects(file)
                return
        if first:  # before that nothing shows what its lines will be
            with closing(RotatedLog(self.path, from_begin=True)) as log:
                yield from self._lines(log, log.read(), _ReadTo(log.position(0), are_objects=is_json))

    def _lines(self, log: RotatedLog, data: bytes, begin: _ReadTo) -> Iterator[Happening]:
        """Yield what lines show; the last one, if it has no end, is read again with what follows."""
        self.bad, self.doubt = begin.bad, begin.doubt
        line, rest = begin.line, b""
        while data and not log.is_next:
            *whole, rest = (rest + data).split(b"\n")
            if len(rest) > LINE_BYTES_MAX:
                whole, rest = [*whole, rest], b""
            for number, each in enumerate(whole, line):
                yield from self._shown(number, each, are_objects=begin.are_objects)
            line += len(whole)
            data = log.read()
        if not log.is_next:
            before = log.before(_NEAR_BYTES + len(rest))
            self._read_to = _ReadTo(
                log.position(log.at - len(rest)), begin.are_objects, line, before[: len(before) - len(rest)],
                len(rest), self.bad, self.doubt,
            )  # fmt: skip
        yield from self._shown(line, rest, are_objects=begin.are_objects)

    def _shown(self, number: int, line: bytes, *, are_objects: bool) -> Sequence[Happening]:
        text = line.decode("utf-8", "replace").strip()
        if not text or (text.startswith("#") and not are_objects):
            return ()
        return self._tried(number, self._object, line) if are_objects else self._tried(number, self._line, text)

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

    def _tried(self, number: int, read: Callable[[int, Any], Sequence[Happening]], item: Any) -> Sequence[Happening]:
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


def _is_object(line: bytes) -> bool:
    """Return whether a line is a whole object; a list of objects is none, as it is numbered by its items."""
    try:
        value = msgspec.json.decode(line)
    except _UNREADABLE:
        return False
    return isinstance(value, dict) and "items" not in value


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
    """Several files, each looked at again when it has changed.

    Args:
        names: of them, as `CauseFile` takes them.
        zone: that of times that name none.

    Attributes:
        errors: why files could not be read at the last look; the next one leaves these out until they have changed.
    """

    def __init__(self, names: Sequence[str], zone: LocalZone) -> None:
        self.errors: list[HeartwheelError] = []
        self._files = [CauseFile(name, zone) for name in dict.fromkeys(names)]
        self._seen: dict[CauseFile, tuple[int, int]] = {}

    def read(self) -> list[Happening]:
        """Return what the files show that have changed since the last look."""
        found = list[Happening]()
        self.errors = []
        for file in self._files:
            stat = file.stat()
            if self._seen.get(file) != stat:
                self._seen[file] = stat
                try:
                    found += file.read()
                except HeartwheelError as error:
                    self.errors.append(error)
        return found

    def check(self) -> None:
        """Raise why a file could not be read at the last look; the first of them, if there are several."""
        if self.errors:
            raise self.errors[0]

    def doubts(self) -> list[str]:
        """Return a sentence for each file with something that could not be read."""
        return [
            f"{count(file.bad, 'line')} of {file.path} could not be read, the first: {file.doubt}"
            for file in self._files
            if file.bad
        ]
