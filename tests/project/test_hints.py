"""Hints: each names options, commands, settings and variables that exist, as a person will type them."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer.main

from heartwheel.front.cli.app import app
from heartwheel.settings.keys import FIELDS, SECTIONS, TABLES, env_name, table_of

SOURCE = Path(__file__).parents[2] / "streaming" / "heartwheel"
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
_COMMAND = re.compile(r"(?<![\w./-])heartwheel (?P<command>[a-z]+)")
_KEY = re.compile(rf"(?<![\w./-])(?:{'|'.join(sorted(SECTIONS))})(?:\.[a-z][a-z_]*)+")
_VARIABLE = re.compile(r"HEARTWHEEL_[A-Z]+__[A-Z_]+")
_FOREIGN_KEYS = {"kafka.coordinator.group", "kafka.request.logger", "spark.authenticate.secret"}
"""Names of Kafka's loggers and of Spark's properties."""
_FOREIGN_COMMAND = re.compile(r"kafka-[a-z]+\.sh .*")
"""A command of Kafka's own, to the end of its hint."""


class Hint(NamedTuple):
    """A hint as the code has it; `{}` stands for what is put in at run time."""

    place: str
    text: str


@functools.cache
def _files() -> dict[Path, ast.Module]:
    """Parse the source, once a test asks: every lane of a run imports this file, and one runs its tests."""
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(SOURCE.rglob("*.py"))}


@functools.cache
def _files_with_hints() -> dict[Path, ast.Module]:
    return {file: tree for file, tree in _files().items() if "hint" in file.read_text(encoding="utf-8")}


@functools.cache
def _constants() -> dict[str, list[ast.expr]]:
    """Return the values of names in capitals; modules may use one name for several."""
    found = defaultdict[str, list[ast.expr]](list)
    for node in (each for tree in _files().values() for each in tree.body):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None and name.isupper():
                found[name].append(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.isupper():
                found[name].append(value)
    return found


@functools.cache
def _parameters() -> dict[str, int]:
    """Return the place of the parameter `hint` of each function and class that takes it by its place."""
    found = {}
    for node in (each for tree in _files_with_hints().values() for each in ast.walk(tree)):
        match node:
            case ast.ClassDef(name=name, body=body):
                names = [
                    each.target.id for each in body if isinstance(each, ast.AnnAssign) and hasattr(each.target, "id")
                ]
                for each in body:
                    if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                        names = [argument.arg for argument in each.args.args[1:]]
            case ast.FunctionDef(name=name, args=arguments):
                names = [argument.arg for argument in arguments.args if argument.arg != "self"]
            case _:
                continue
        if "hint" in names:
            found[name] = names.index("hint")
    return found


def _text(node: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression may become, f-strings with `{}` for their fields."""
    match node:
        case ast.Name(id=name) if name in _constants():
            for value in _constants()[name]:
                yield from _text(value)
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
        case ast.IfExp(body=one, orelse=other):
            yield from _text(one)
            yield from _text(other)
        case ast.BoolOp(values=choices):
            for choice in choices:
                yield from _text(choice)


def _rows_of(table: ast.expr) -> Iterator[list[ast.expr]]:
    """Yield the rows of a table that stands in the code: tuples, or the items of a mapping."""
    match table:
        case ast.Name(id=name) if name in _constants():
            for value in _constants()[name]:
                yield from _rows_of(value)
        case ast.Call(func=ast.Attribute(value=value, attr="items")):
            yield from _rows_of(value)
        case ast.Dict(keys=keys, values=values):
            yield from ([key, value] for key, value in zip(keys, values, strict=True) if key is not None)
        case ast.Tuple(elts=rows):
            yield from (row.elts for row in rows if isinstance(row, ast.Tuple))


def _hints_of(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg="hint", value=value):
                yield value
            case ast.Assign(targets=[ast.Name(id="hint")], value=value) if value is not None:
                yield value
            case ast.FunctionDef(name=name) if name.endswith("hint"):
                yield from (each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value)
            case ast.AugAssign(target=ast.Name(id="hint"), value=value):
                yield value
            case ast.Call(func=ast.Name(id=name), args=arguments) if _parameters().get(name, 99) < len(arguments):
                yield arguments[_parameters()[name]]
            case (
                ast.For(target=ast.Tuple(elts=names), iter=table)
                | ast.comprehension(target=ast.Tuple(elts=names), iter=table)
            ):
                place = [isinstance(each, ast.Name) and each.id == "hint" for each in names]
                yield from (row[place.index(True)] for row in _rows_of(table) if True in place)


@functools.cache
def _hints() -> tuple[Hint, ...]:
    return tuple(
        Hint(f"{file.relative_to(SOURCE).as_posix()}:{node.lineno}", text)
        for file, tree in _files_with_hints().items()
        for node in _hints_of(tree)
        for text in _text(node)
    )


@functools.cache
def _commands() -> dict[str, set[str]]:
    """Return the options of each command, by its name."""
    program: Any = typer.main.get_command(app)
    return {
        name: {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        for name, command in program.commands.items()
    }


def _options_for(hint: Hint) -> set[str]:
    """Return the options that a hint may name: those of the commands that it names, or of its own, or of any."""
    named = {each["command"] for each in _COMMAND.finditer(hint.text)} & _commands().keys()
    own = re.match(r"front/cli/([a-z]+)(?:_[a-z_]+)?\.py", hint.place)
    if own and own[1] in _commands():
        named |= {own[1]}
    return set().union(*(_commands()[name] for name in named or _commands()))


def _is_key(path: str) -> bool:
    return path in FIELDS or path in TABLES or path in SECTIONS or table_of(path) is not None


def test_there_are_hints_to_check() -> None:
    """The search finds hints of each sort; else the tests below would hold nothing."""
    for pattern in (_OPTION, _COMMAND, _KEY):
        assert sum(bool(pattern.search(hint.text)) for hint in _hints()) >= 1, pattern.pattern
    assert len(_hints()) > 250
    places = {hint.place.partition(":")[0] for hint in _hints()}
    assert {
        "front/cli/checks.py",
        "engine/runtime/state/faults.py",
        "settings/load.py",
        "readers/live/health.py",
    } <= places


def _unknown_names(hint: Hint) -> set[str]:
    text = _FOREIGN_COMMAND.sub("", hint.text)
    options = {each for each in _OPTION.findall(text) if each not in _options_for(hint)}
    commands = {each["command"] for each in _COMMAND.finditer(text)} - _commands().keys()
    variables = set(_VARIABLE.findall(text)) - {env_name(path) for path in FIELDS}
    keys = {each for each in _KEY.findall(text) if not _is_key(each)} - _FOREIGN_KEYS
    return options | commands | variables | keys


def test_hints_name_what_exists() -> None:
    """An option, a command, a key or a variable that a hint names is there for the command that shows it."""
    unknown = {hint.place: names for hint in _hints() if (names := _unknown_names(hint))}
    assert unknown == {}
