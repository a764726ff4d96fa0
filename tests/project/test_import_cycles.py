"""Modules import each other in an order: none waits, by whatever way, for one that waits for it."""

from __future__ import annotations

from graphlib import TopologicalSorter

from project.test_layers import imported_by, modules_of


def test_modules_have_no_import_cycle() -> None:
    """Any module can be read with those that it imports, and without those that import it.

    Importing from a package runs its `__init__`, and that of the module's own packages runs anyway.
    """
    modules = set(modules_of("heartwheel")) - {"heartwheel"}
    graph = {
        module: {other for other in imported_by(module) & modules if not f"{module}.".startswith(f"{other}.")}
        for module in modules
    }
    assert len([*TopologicalSorter(graph).static_order()]) == len(modules)
