"""The picture of the imports: which room imports which. It has no cycle, and no arrow that nobody has agreed to."""

from __future__ import annotations

from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

from project.test_layout import imports_of

PACKAGE: Final = Path(__file__).parents[2] / "streaming" / "heartwheel"

ARROWS_MAX: Final = 104
"""How many arrows there are between rooms. A new one is drawn on purpose: raise this, and say in the commit why."""


def arrows() -> dict[str, set[str]]:
    """List for each room the rooms that its modules import, wherever in them."""
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return {
        room: {
            module.split(".")[1]
            for file in (PACKAGE / room).rglob("*.py")
            for module in imports_of(file)
            if module.startswith("heartwheel.")
        }
        & rooms - {room}
        for room in sorted(rooms)
    }


def test_the_rooms_have_no_cycle() -> None:
    """Rooms can be read one after the other, each before those that are built on it."""
    assert [*TopologicalSorter(arrows()).static_order()]


def test_there_are_no_more_arrows_than_agreed() -> None:
    """The picture stays one that fits into a head: an arrow more is a decision."""
    drawn = arrows()
    assert sum(map(len, drawn.values())) <= ARROWS_MAX, drawn
