"""The layers, held transitively: what a room loads by way of others counts as much as what it names itself."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {"timing_wheel": ROOT / "wheel", "heartwheel": ROOT / "streaming"}

PACKAGE = SOURCES["heartwheel"] / "heartwheel"

MAY_IMPORT = {
    "base": set(),
    "wire": set(),
    "kafka": {"base"},
    "settings": {"base", "wire", "kafka"},
    "engine": {"base", "wire", "kafka", "settings"},
    "readers": {"base", "wire", "kafka", "settings", "engine"},
    "sources": {"base", "wire", "kafka", "settings", "engine", "readers"},
    "proof": {"base", "wire", "kafka", "engine"},
    "front": {"base", "wire", "kafka", "settings", "engine", "readers", "sources", "proof"},
}
"""The nine rooms from the floor up, and the rooms below that each imports. A new arrow is a decision: argue it in the
commit that draws it."""

ARRAYS = {"numpy", "pyarrow", "pandas", "pyspark", "timing_wheel"}
STATE = {f"heartwheel.engine.{part}" for part in ("shard", "runtime", "heartbeats", "operations", "operations_job")}
PROOFS = {f"heartwheel.proof.{part}" for part in ("simulation", "testing", "members")}
PROOFS |= {"heartwheel.kafka.broker", "heartwheel.front.demo"}
RULES = {f"heartwheel.engine.rules.{module}" for module in ("machine", "timers", "roster", "context", "loading")}
READERS = {f"heartwheel.readers.{part}" for part in ("dashboard", "top", "notify")}
FRONT = READERS | {"heartwheel.front", "heartwheel.sources.explain", "heartwheel.sources.gateway"}
ENGINE = ARRAYS | STATE | PROOFS | {"heartwheel.engine.rules"}

NEVER_REACHED = {
    "heartwheel.wire": ENGINE | FRONT | {"kafka", "pydantic", "heartwheel.kafka", "heartwheel.settings"},
    "heartwheel.kafka": ENGINE - {"heartwheel.kafka.broker"} | FRONT | {"heartwheel.settings", "heartwheel.wire"},
    "heartwheel.engine.rules": FRONT | PROOFS | ARRAYS | STATE | {"kafka", "pydantic"},
    "heartwheel.engine.shard": FRONT | PROOFS | {"pyspark", "pandas", "kafka", "pydantic", "heartwheel.engine.runtime"},
    "heartwheel.engine.operations": FRONT | PROOFS | {"pyspark", "pandas", "kafka", "pydantic"},
    # `pip install heartwheel` has it, without NumPy.
    "heartwheel.engine.replay": FRONT | PROOFS | ARRAYS | STATE | {"kafka", "pydantic", "heartwheel.proof.audit"},
    "heartwheel.readers.live": ENGINE | FRONT | {"heartwheel.readers.canary", "heartwheel.readers.metrics"},
    "heartwheel.readers.notify": ENGINE | FRONT - {"heartwheel.readers.notify"} | {"heartwheel.readers.metrics"},
    "heartwheel.readers.top": ENGINE | FRONT - {"heartwheel.readers.top"} | {"heartwheel.readers.metrics"},
    # The metrics name Kafka's errors and states, and the canary asks which shard has a group.
    "heartwheel.readers.dashboard": ARRAYS | STATE | PROOFS | RULES | FRONT - {"heartwheel.readers.dashboard"},
    "heartwheel.readers.metrics": ARRAYS | STATE | PROOFS | RULES | FRONT,
    "heartwheel.readers.http_server": ENGINE
    | FRONT
    | {"kafka", "pydantic", "heartwheel.kafka", "heartwheel.readers.live", "heartwheel.wire", "heartwheel.settings"},
    "heartwheel.sources.gateway": ENGINE
    | FRONT - {"heartwheel.sources.gateway"}
    | {f"heartwheel.readers.{part}" for part in ("live", "metrics", "canary")},
    # It shows its events on the dashboard's page.
    "heartwheel.sources.explain": ARRAYS
    | STATE
    | PROOFS
    | RULES
    | FRONT - {"heartwheel.readers.dashboard", "heartwheel.sources.explain"},
    "heartwheel.sources.watch": ARRAYS
    | STATE
    | PROOFS
    | RULES
    | FRONT - {"heartwheel.readers.dashboard", "heartwheel.readers.notify", "heartwheel.sources.explain"},
    # Its advice is that of the watcher's room, and of a dashboard it has the API's documents alone.
    "heartwheel.sources.mcp_server": ARRAYS
    | STATE
    | PROOFS
    | RULES
    | FRONT - {"heartwheel.readers.dashboard", "heartwheel.sources.explain"},
    "heartwheel.proof.audit": ENGINE
    | FRONT
    | {"pydantic", "heartwheel.settings", "heartwheel.readers", "heartwheel.engine"},
    # A classic member needs a coordinator that answers it: the rules, by what the broker has stamped.
    "heartwheel.proof.members": ENGINE - {"heartwheel.proof.members", "heartwheel.engine.rules"}
    | FRONT
    | {"heartwheel.settings"},
}
"""What each room must not reach, by whatever way."""

LIGHT = ("heartwheel.wire", "heartwheel.readers.live", "heartwheel.readers.notify", "heartwheel.readers.top")
"""Rooms that are loaded as they are, to see what really comes with them."""


@functools.cache
def file_of(module: str) -> Path | None:
    """Find the file of one of our modules; `None` for other people's, and for names inside a module."""
    package, _, rest = module.partition(".")
    if package not in SOURCES:
        return None
    path = SOURCES[package].joinpath(package, *filter(None, rest.split(".")))
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


@functools.cache
def imported_by(module: str) -> frozenset[str]:
    """List the modules that one of ours imports, wherever in it, and the packages that come with them."""
    file = file_of(module)
    if file is None or module == "heartwheel":  # it loads what it exports when that is asked for
        return frozenset()
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    found = {".".join(name.split(".")[:depth]) for name in names for depth in range(1, name.count(".") + 2)}
    return frozenset(name for name in found if name.partition(".")[0] not in SOURCES or file_of(name))


def modules_of(room: str) -> list[str]:
    """List the modules of a package."""
    package = file_of(room)
    assert package is not None, f"there is no {room}"
    files = package.parent.rglob("*.py")
    root = SOURCES[room.partition(".")[0]]
    return [".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for file in files]


def reached_from(room: str) -> dict[str, str | None]:
    """List all that a room's modules load, each with the module that asked for it."""
    came_from: dict[str, str | None] = dict.fromkeys(modules_of(room))
    waiting = list(came_from)
    while waiting:
        module = waiting.pop()
        fresh = [name for name in imported_by(module) if name not in came_from]
        came_from.update(dict.fromkeys(fresh, module))
        waiting += fresh
    return came_from


def way_to(module: str, came_from: dict[str, str | None]) -> str:
    """Write how a module is reached: `a -> b -> c`."""
    way = [module]
    while before := came_from[way[-1]]:
        way.append(before)
    return " -> ".join(reversed(way))


def test_rooms_import_what_lies_below_them() -> None:
    """The nine rooms stand in an order, and each imports the rooms that the table names: no more and no fewer."""
    floors = list(MAY_IMPORT)
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()} == set(floors)
    drawn = {
        room: {
            module.split(".")[1]
            for name in modules_of(f"heartwheel.{room}")
            for module in imported_by(name)
            if module.startswith("heartwheel.")
        }
        - {room}
        for room in floors
    }
    assert drawn == MAY_IMPORT
    assert all(floors.index(below) < floors.index(room) for room in floors for below in MAY_IMPORT[room])


@pytest.mark.parametrize("room", NEVER_REACHED)
def test_layers_hold_by_whatever_way(room: str) -> None:
    """No room reaches what is above it or beside it, be it through ten others."""
    came_from = reached_from(room)
    wrong = [
        way_to(module, came_from)
        for module in sorted(came_from)
        if any(module == forbidden or module.startswith(f"{forbidden}.") for forbidden in NEVER_REACHED[room])
    ]
    assert wrong == []


@pytest.mark.parametrize("room", LIGHT)
def test_readers_of_topics_load_no_engine(room: str) -> None:
    """Who reads topics needs no engine, NumPy or Arrow: every module is loaded, and what came with it listed."""
    loaded = loaded_with(modules_of(room))
    assert {name for name in loaded if any(name == each or name.startswith(f"{each}.") for each in ENGINE)} == set()


def test_help_loads_no_engine() -> None:
    """`heartwheel --help` answers at once, for the command line loads the engine inside the commands alone."""
    loaded = loaded_with(["heartwheel.front.cli"])
    heavy = ARRAYS - {"timing_wheel"} | STATE | {"kafka", "starlette", "textual"}
    assert {name for name in loaded if name in heavy} == set()


def test_what_reads_logs_loads_no_client_of_kafka() -> None:
    """A watcher of brokers' logs asks no broker, and the client would be a seventh of its first memory."""
    loaded = loaded_with(["heartwheel.sources.watch.service"])
    assert "heartwheel.readers.dashboard.app" in loaded
    assert {name for name in loaded if name == "kafka" or name.startswith("heartwheel.kafka.client")} == set()


def test_the_wire_needs_msgspec_alone() -> None:
    """Rows can be decoded by anybody: the standard library and msgspec are enough."""
    allowed = {*sys.stdlib_module_names, "msgspec", "heartwheel"}
    assert {name.partition(".")[0] for name in reached_from("heartwheel.wire")} - allowed == set()


def loaded_with(modules: list[str]) -> list[str]:
    """Load modules in a process of their own, and list what it has loaded then."""
    script = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split()
