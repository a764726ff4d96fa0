"""Read class files, and find what the classes of some jars name and would not find when they are linked."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

_UTF8, _CLASS, _FIELD, _METHOD, _INTERFACE_METHOD, _NAME_AND_TYPE = 1, 7, 9, 10, 11, 12
_SIZES: Final = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
"""Bytes of each kind of constant after its tag, by JVMS 4.4."""
_TWO_PLACES: Final = {5, 6}
_OF_EVERY_OBJECT: Final = {
    "clone",
    "equals",
    "finalize",
    "getClass",
    "hashCode",
    "notify",
    "notifyAll",
    "toString",
    "wait",
}
"""Methods of java.lang.Object, which no jar here has."""


class Member(NamedTuple):
    """A field or method as a class names it, by its owner, name and descriptor."""

    owner: str
    name: str
    descriptor: str

    def __str__(self) -> str:
        return f"{self.owner}.{self.name} {self.descriptor}"


class ClassFile:
    """The parts of a class file that linking needs.

    Attributes:
        parents: its superclass and interfaces.
        members: names and descriptors of its own fields and methods.
        references: the fields and methods of any class that its code names.
        classes: the classes that it names.
    """

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 8
        constants = self._constants()

        def text(index: int) -> str:
            found = constants[index]
            assert isinstance(found, str)
            return found

        def pair(index: int) -> tuple[int, int]:
            found = constants[index]
            assert isinstance(found, tuple)
            return found[1], found[2]

        self.classes = {
            text(found[1]) for found in constants.values() if isinstance(found, tuple) and found[0] == _CLASS
        }
        self.references = set()
        for found in constants.values():
            if isinstance(found, tuple) and found[0] in {_FIELD, _METHOD, _INTERFACE_METHOD}:
                name, descriptor = pair(found[2])
                self.references.add(Member(text(pair(found[1])[0]), text(name), text(descriptor)))
        _, self_index, parent, interfaces = self._take(">HHHH")
        self.name = text(pair(self_index)[0])
        above = [parent, *(self._take(">H")[0] for _ in range(interfaces))]
        self.parents = [text(pair(index)[0]) for index in above if index]
        self.members = set()
        for _ in ("fields", "methods"):
            for _ in range(self._take(">H")[0]):
                _, name, descriptor, attributes = self._take(">HHHH")
                self.members.add((text(name), text(descriptor)))
                for _ in range(attributes):
                    _, size = self._take(">HI")
                    self._at += size

    def _take(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from(layout, self._content, self._at)
        self._at += struct.calcsize(layout)
        return values

    def _constants(self) -> dict[int, str | tuple[int, int, int]]:
        """Read the constant pool: texts as they are, others as their tag and up to two indices."""
        (count,) = self._take(">H")
        found: dict[int, str | tuple[int, int, int]] = {}
        index = 1
        while index < count:
            (tag,) = self._take(">B")
            if tag == _UTF8:
                (size,) = self._take(">H")
                found[index] = self._content[self._at : self._at + size].decode(errors="replace")
                self._at += size
            else:
                if _SIZES[tag] in {2, 4}:
                    first, *second = struct.unpack_from(">H" if _SIZES[tag] == 2 else ">HH", self._content, self._at)
                    found[index] = (tag, first, second[0] if second else 0)
                self._at += _SIZES[tag]
            index += 2 if tag in _TWO_PLACES else 1
        return found


class ClassPath:
    """The classes of some jars, each read when it is asked for.

    Args:
        jars: in the order of the class path.
    """

    def __init__(self, jars: Iterable[Path]) -> None:
        self._jars = [zipfile.ZipFile(jar) for jar in jars]
        self._places: dict[str, zipfile.ZipFile] = {}
        for jar in reversed(self._jars):
            self._places |= {name.removesuffix(".class"): jar for name in jar.namelist() if name.endswith(".class")}
        self._read: dict[str, ClassFile] = {}

    def find(self, name: str) -> ClassFile | None:
        """Return a class; `None` if no jar has it."""
        if name not in self._read and name in self._places:
            self._read[name] = ClassFile(self._places[name].read(f"{name}.class"))
        return self._read.get(name)

    def lacks(self, member: Member) -> bool:
        """Return whether a member is neither in its class nor in a parent; a class of no jar here is not judged."""
        if member.name in _OF_EVERY_OBJECT:
            return False
        above = [member.owner]
        for name in above:
            found = self.find(name)
            if name == "java/lang/Object":
                continue
            if found is None or (member.name, member.descriptor) in found.members:
                return False
            above += (parent for parent in found.parents if parent not in above)
        return True


def unlinked(jars: Sequence[Path], others: Iterable[Path], package: str) -> Iterator[str]:
    """Find what the classes of jars name of a package and would not find.

    Args:
        jars: whose classes are looked at.
        others: the rest of the class path.
        package: as in a class file, `org/apache/spark/`.

    Yields:
        Missing classes, fields and methods, with the class that names them.
    """
    path = ClassPath([*jars, *others])
    for jar in jars:
        with zipfile.ZipFile(jar) as packed:
            names = [name.removesuffix(".class") for name in packed.namelist() if name.endswith(".class")]
        for name in names:
            found = path.find(name)
            assert found is not None
            for other in sorted(found.classes):
                if other.startswith(package) and path.find(other) is None:
                    yield f"{name} names the class {other}"
            for member in sorted(found.references):
                if member.owner.startswith(package) and path.find(member.owner) and path.lacks(member):
                    yield f"{name} names {member}"
