"""The schemas that ship are those of the types that run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heartwheel.wire.schemas import TOPICS, schema_of, text_of

FOLDER = Path(__file__).parents[2] / "conf" / "schemas"


@pytest.mark.parametrize("topic", TOPICS)
def test_schema_files_are_current(topic: str) -> None:
    """conf/schemas says what the engine reads and writes; `python -m heartwheel.wire.schemas` writes it anew."""
    assert (FOLDER / f"{topic}.schema.json").read_text(encoding="utf-8") == text_of(topic)


def test_no_schema_is_left_over() -> None:
    """Each file belongs to a topic."""
    assert {file.name for file in FOLDER.iterdir()} == {f"{topic}.schema.json" for topic in TOPICS}


def test_fields_are_explained() -> None:
    """The words of a type's docstring reach whoever reads the schema, over more than one line."""
    event = schema_of("consumer-heartbeats")["$defs"]["Event"]["properties"]
    assert event["group_id"]["description"] == "the group it was sent to, never empty."
    assert all("description" in field for field in event.values())
    json.dumps(event)
