"""TypeScript's types of what the API answers, made from its OpenAPI document; the page's JavaScript is checked by them.

`python -m heartwheel.dashboard.typescript` writes them; tests/dashboard/test_page_types.py holds the file to the
document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from heartwheel.dashboard.api import ENDPOINTS, STREAM
from heartwheel.dashboard.openapi import openapi

FILE: Final = Path(__file__).parent / "page" / "js" / "answers.d.ts"
"""The types, beside the modules that use them. No browser asks for it."""

_HEAD: Final = "// What the API answers. Made by python -m heartwheel.dashboard.typescript from its OpenAPI document."
_PLAIN: Final = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}


def declarations() -> str:
    """Write a type for each schema of the document, for each path's answer, and for each event of the stream."""
    document = openapi()
    schemas = document["components"]["schemas"]
    parts = [_HEAD, *(_declared(name, schema) for name, schema in schemas.items())]
    events = document["paths"][STREAM]["get"]["x-events"]
    fields = "\n".join(f"  {name}: {type_of(schema)};" for name, schema in events.items())
    words = f"/** The data of each event of {STREAM}, by the event's name. */"
    parts.append(f"{words}\n{_interface('StreamEvents', fields)}")
    parts.append("/** What a path answers with as JSON. */\n" + "\n".join(_answers(document["paths"])))
    return "\n\n".join(parts) + "\n"


def type_of(schema: Mapping[str, Any]) -> str:
    """Write the type of a schema, as those of msgspec are.

    Raises:
        ValueError: it has something that is not known here.
    """
    match schema:
        case {"$ref": str(ref)}:
            return ref.rpartition("/")[2]
        case {"enum": list(values)}:
            return " | ".join(json.dumps(value) for value in values)
        case {"anyOf": list(choices)}:
            return " | ".join(map(type_of, choices))
        case {"type": "array", "items": items}:
            inner = type_of(items)
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        case {"type": "object", "additionalProperties": values}:
            return f"Record<string, {type_of(values)}>"
        case {"type": str(plain)} if plain in _PLAIN:
            return _PLAIN[plain]
    raise ValueError(f"no type is known for the schema {schema}")


def _declared(name: str, schema: Mapping[str, Any]) -> str:
    words = re.sub(r"\s+", " ", schema.get("description", name).partition("\n\n")[0])
    return f"/** {words} */\n{_body(name, schema)}"


def _body(name: str, schema: Mapping[str, Any]) -> str:
    if "properties" not in schema:
        return f"export type {name} = {type_of(schema)};"
    needed = set(schema.get("required", ()))
    fields = (
        f"  {field}{'' if field in needed else '?'}: {type_of(inner)};" for field, inner in schema["properties"].items()
    )
    return _interface(name, "\n".join(fields))


def _interface(name: str, fields: str) -> str:
    return f"export interface {name} {{\n{fields}\n}}"


def _answers(paths: Mapping[str, Any]) -> Iterator[str]:
    """Write a type that picks the answer by the path; what follows the first id of a path may be anything."""
    yield "export type Answer<Path extends string> ="
    for path, endpoint in ENDPOINTS.items():
        if endpoint.media == "application/json":
            schema = paths[path]["get"]["responses"]["200"]["content"][endpoint.media]["schema"]
            pattern = re.sub(r"\{.*", "${string}", path)
            yield f"  Path extends `{pattern}` ? {type_of(schema)} :"
    yield "  never;"


if __name__ == "__main__":
    FILE.write_text(declarations(), encoding="utf-8")
