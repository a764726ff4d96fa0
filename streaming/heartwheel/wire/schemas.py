"""The JSON Schemas of the topics, generated from the types that the engine itself decodes and encodes.

`python -m heartwheel.wire.schemas conf/schemas` writes them; tests/project/test_schemas.py checks the files.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from heartwheel.wire.events import Event
from heartwheel.wire.explained import ExplainedEvent
from heartwheel.wire.group_heartbeats import GroupHeartbeat
from heartwheel.wire.job import JobRow
from heartwheel.wire.operations import OperationEvent
from heartwheel.wire.outcomes import OutcomeRow
from heartwheel.wire.rejects import Reject
from heartwheel.wire.status import StatusRow
from heartwheel.wire.tick import Tick
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

TOPICS: Final[dict[str, type[msgspec.Struct]]] = {
    "consumer-heartbeats": Event,
    "member-expirations": ExpirationRow,
    "rebalance-triggers": TriggerRow,
    "heartwheel-status": StatusRow,
    "heartbeat-rejects": Reject,
    "heartwheel-job": JobRow,
    "delayed-operations": OperationEvent,
    "operation-outcomes": OutcomeRow,
    "explained-events": ExplainedEvent,
}
"""The type of a record's value by the default name of its topic; `explained-events` is a line of `explain --json`."""

OTHERS: Final[dict[str, tuple[type[msgspec.Struct], ...]]] = {
    "consumer-heartbeats": (GroupHeartbeat, Tick),
    "delayed-operations": (Tick,),
}
"""Further types of record in a topic: heartbeats with a member epoch, and ticks, which every reader skips."""

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema_of(topic: str) -> dict[str, Any]:
    """Return the schema of a topic's values.

    Args:
        topic: a key of `TOPICS`.
    """
    structs = (TOPICS[topic], *OTHERS.get(topic, ()))
    (first, *more), components = msgspec.json.schema_components(structs, ref_template="#/$defs/{name}")
    for struct in structs:
        for each in _structs(struct, components):
            _describe(components[each.__name__], each)
    schema = {"anyOf": [first, *more]} if more else first
    return {"$schema": _DRAFT, "title": topic, **schema, "$defs": components}


def _structs(struct: type[msgspec.Struct], components: dict[str, Any]) -> list[type[msgspec.Struct]]:
    module = inspect.getmodule(struct)
    return [found for name in components if isinstance(found := getattr(module, name, None), type(msgspec.Struct))]


def _describe(component: dict[str, Any], struct: type[msgspec.Struct]) -> None:
    """Add a description to each field, from the `Args:` of its type's docstring."""
    text = inspect.getdoc(struct) or ""
    component["description"] = text.partition("\n")[0]
    arguments = re.sub(r"\n {8,}", " ", text.partition("Args:\n")[2])
    for name, words in re.findall(r"^ {4}(\w+): (.+)$", arguments, re.MULTILINE):
        field = component["properties"].get(name)
        if field is not None:
            component["properties"][name] = field | {"description": words}


def text_of(topic: str) -> str:
    """Return a topic's schema as the text of its file."""
    return json.dumps(schema_of(topic), indent=2) + "\n"


def main(folder: str = "conf/schemas") -> None:
    """Write the schema of every topic.

    Args:
        folder: the folder for the files; created if it does not exist.
    """
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    for topic in TOPICS:
        (root / f"{topic}.schema.json").write_text(text_of(topic), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
