"""No sentence has "1 members": numbers of things are written by `heartwheel.base.phrases.count`, or with both forms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

CODE = Path(__file__).parents[2] / "streaming" / "heartwheel"
SHOWN = "readers/(?:live|notify|top|dashboard)|front|sources|engine/operations_job|engine/runtime/driver/progress"
"""What people read; the words of verdicts are Kafka's, which writes `with 1 members`."""

NOUNS = re.compile(
    r" (?:state |more |other )?(?:members|groups|records|heartbeats|triggers|partitions|shards|lines|rows|files"
    r"|rebalances|operations|expirations|workers|batches|sessions|histories)\b"
)


def _counted(tree: ast.AST) -> Iterator[str]:
    """Find numbers with a plural behind them, where no other branch has the singular."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.IfExp):
            continue  # `"1 member" if number == 1 else f"{number} members"`
        if isinstance(node, ast.JoinedStr):
            for value, behind in zip(node.values, node.values[1:], strict=False):
                if isinstance(value, ast.FormattedValue) and isinstance(behind, ast.Constant):
                    found = NOUNS.match(str(behind.value))
                    if found and not isinstance(value.value, ast.Constant) and _is_number(value):
                        yield f"line {node.lineno}: {{{ast.unparse(value.value)}}}{found.group()}"
        todo += ast.iter_child_nodes(node)


def _is_number(value: ast.FormattedValue) -> bool:
    """Return whether a number may stand there that may be 1: no limit, and no words of `count` and the like."""
    text = ast.unparse(value.value)
    if text.casefold().endswith(("_max", "kind")):
        return False
    return not isinstance(value.value, ast.Call) or text.startswith(("len(", "max(", "min(", "sum("))


def test_rule_finds_what_it_is_for() -> None:
    """It sees a bare number before a plural, and no text that has both forms."""
    wrong = 'f"{n} members"; f"{n:,} more groups"; f"{len(x)} lines"; f"of {a} of {b} rows"'
    right = """f"{count(n, 'member')} of groups"; "1 row" if n == 1 else f"{n} rows"; f"{name} is in 3 groups" """
    assert len(list(_counted(ast.parse(wrong)))) == 4
    assert list(_counted(ast.parse(right))) == []


def test_numbers_agree_with_what_is_counted() -> None:
    """No text of the program puts a bare number before a plural."""
    found = [
        f"{path.relative_to(CODE)} {where}"
        for path in sorted(CODE.rglob("*.py"))
        if re.match(SHOWN, path.relative_to(CODE).as_posix())
        for where in _counted(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []
