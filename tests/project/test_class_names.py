"""Names of classes: one name, one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]

SHARED = {
    "Group": "the rules' own, and a group as readers show it: each is the subject of its room",
    "Member": "the rules' own, and the worker of `heartwheel_beats`, a distribution of its own",
    "Sender": "of the Kafka clients, and of `heartwheel_beats`, a distribution of its own",
}
"""Public names that two classes share, and why they may."""


def test_public_names_of_classes_are_used_once() -> None:
    """Who searches for a class finds one class."""
    named = defaultdict(list)
    for folder in ("streaming", "wheel"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    named[node.name].append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in named.items() if len(files) > 1 and name not in SHARED} == {}
    assert {name for name in SHARED if len(named[name]) != 2} == set()
