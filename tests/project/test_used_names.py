"""No dead code: what a module defines is used by the product, and not only by its tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from heartwheel.front.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
SOURCES = {"streaming": "heartwheel", "wheel": "timing_wheel", "streaming/beats": "heartwheel_beats"}

FOR_OTHERS = {
    "heartwheel.engine.tick.is_tick": "for queries that read a topic with ticks",
    "heartwheel.engine.replay.log.replay_log": "the rules on a whole log in one call, for recordings and answered logs",
    "heartwheel.proof.testing.by_group": "the testing kit of those who change a rule",
    "heartwheel.proof.testing.run_rules": "likewise",
    "heartwheel.proof.testing.run_shard": "likewise",
    "heartwheel.readers.metrics.catalogue.CATALOGUE": "docs/metrics.md is held against it",
    "heartwheel.readers.notify.signature.verify": "for programs that receive a webhook",
    "heartwheel.sources.tap.cost.cost_table": "docs/tap.md is held against it",
    "heartwheel_beats.command.main": "a console script of pyproject.toml",
}
"""Names that no module of ours uses, and who does."""

COMMANDS_BY_NAME = {f"heartwheel.front.cli.{name}.{name}" for name in COMMANDS}
"""The functions of commands, which the table of commands finds by its names."""


def _trees() -> dict[str, ast.Module]:
    found = {}
    for folder, package in SOURCES.items():
        for file in sorted((ROOT / folder / package).rglob("*.py")):
            parts = file.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = ast.parse(file.read_text(encoding="utf-8"))
    return found


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            # A decorator may hand the function to a framework, which calls it.
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if not node.decorator_list:
                yield node.name
            case ast.Assign(targets=targets):
                yield from (each.id for each in targets if isinstance(each, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def test_each_name_of_a_module_is_used() -> None:
    """A function, class or constant is read in its module, imported by another, or named above with its user."""
    trees = _trees()
    imported, attributes = set[str](), set[str]()
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                # Only the modules of one folder import each other without its name.
                package = f"{module.rpartition('.')[0] or module}." if node.level else ""
                imported |= {f"{package}{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Attribute):
                attributes.add(node.attr)
    unused = set()
    for module, tree in trees.items():
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        names = {name for name in _defined(tree) if not name.startswith("__")} - read - attributes
        unused |= {f"{module}.{name}" for name in names} - imported
    assert unused - COMMANDS_BY_NAME == set(FOR_OTHERS)
