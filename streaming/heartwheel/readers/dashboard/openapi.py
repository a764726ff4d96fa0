"""The description of the API (OpenAPI 3.1), made from the table of endpoints and the types of their answers.

`python -m heartwheel.readers.dashboard.openapi` prints it; `make check` generates the types of the page's JavaScript
from it.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from heartwheel.readers.dashboard.api import ENDPOINTS, STREAM, STREAM_EVENTS, Endpoint
from heartwheel.readers.dashboard.login.sessions import COOKIE
from heartwheel.readers.dashboard.params import params_of
from heartwheel.readers.dashboard.queries import Query, StreamQuery
from heartwheel.readers.http_server.problems import Problem
from heartwheel.readers.live.now import VERSION

_ABOUT: Final = (
    "Who was expired from which consumer group, when and why, and how the engine stands. All of it only reads. Times "
    "are epoch milliseconds. The canary's own groups are left out unless `canary=true`. What is wrong with a request "
    "is answered as `{error, hint}`."
)
_STREAM_WORDS: Final = (
    f"Server-sent events: {', '.join(STREAM_EVENTS)}; schema `StreamEvents` has the data of each. At most four "
    "flushes a second. `Last-Event-ID` goes on where a listener was; `gap` and a `hello` with another epoch mean: load "
    "anew."
)
_PLAIN: Final[Mapping[str, tuple[str, str]]] = {
    "/healthz": ("Tell that the server is alive.", "application/json"),
    "/readyz": ("Tell whether what is shown can be relied on; 503 with the reason if not.", "application/json"),
    "/metrics": ("Figures for Prometheus.", "text/plain"),
    "/openapi.json": ("This description.", "application/json"),
}
_WAYS: Final = {
    "token": {"type": "http", "scheme": "bearer", "description": "`dashboard.token`."},
    "password": {"type": "http", "scheme": "basic", "description": "A user of `dashboard.users_file`."},
    "session": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "What logging in at /login gives."},
}


@cache
def openapi(base: str = "") -> dict[str, Any]:
    """Return the document."""
    types = [endpoint.body for endpoint in ENDPOINTS.values() if endpoint.body is not str]
    types += [*STREAM_EVENTS.values(), Problem]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    answers = dict(zip(map(str, types), schemas, strict=True))
    paths = {path: _path(path, endpoint, answers) for path, endpoint in ENDPOINTS.items()}
    paths[STREAM] = _operation("stream", _STREAM_WORDS, "text/event-stream", {"type": "string"}, StreamQuery)
    components["StreamEvents"] = {
        "type": "object",
        "description": f"The data of each event of {STREAM}, by the event's name.",
        "properties": {name: answers[str(body)] for name, body in STREAM_EVENTS.items()},
        "required": [*STREAM_EVENTS],
    }
    for path, (words, media) in _PLAIN.items():
        schema = {} if media == "application/json" else {"type": "string"}
        paths[path] = _operation(path.strip("/").replace(".", "_"), words, media, schema, Query)
    # Health needs no login.
    paths["/healthz"]["get"] |= {"security": [{}]}
    for status in ("401", "429"):
        del paths["/healthz"]["get"]["responses"][status]
    paths["/readyz"]["get"]["responses"]["503"] = {
        "description": "It cannot; the reason is given as with 200.",
        "content": {"application/json": {"schema": {}}},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "heartwheel dashboard", "version": VERSION, "description": _ABOUT},
        "servers": [{"url": base or "/"}],
        # Without a configured login no credentials are needed.
        "security": [{}, {"token": []}, {"password": []}, {"session": []}],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": _WAYS},
    }


def _path(path: str, endpoint: Endpoint, answers: Mapping[str, Any]) -> dict[str, Any]:
    words = inspect.getdoc(endpoint.answer) or ""
    schema = answers.get(str(endpoint.body), {"type": "string"})
    found = _operation(endpoint.answer.__name__, words, endpoint.media, schema, endpoint.query)
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", path)
    ]
    found["get"]["parameters"] = in_path + found["get"]["parameters"]
    if in_path:
        found["get"]["responses"]["404"] = _problem("Nothing of that name is known.")
    return found


def _operation(name: str, words: str, media: str, schema: Mapping[str, Any], query: type[Query]) -> dict[str, Any]:
    return {
        "get": {
            "operationId": name,
            "summary": words.partition("\n")[0],
            "parameters": [
                {"name": each.name, "in": "query", "description": each.words, "schema": each.schema()}
                for each in params_of(query).values()
            ],
            "responses": {
                "200": {"description": "The answer.", "content": {media: {"schema": schema}}},
                "400": _problem("A parameter is unknown or wrong."),
                "401": _problem("A login is asked for, and it is not known who asks."),
                "429": _problem("Too many wrong passwords; Retry-After says when to try again, in seconds."),
                "503": _problem("Too much is asked for at once; Retry-After says when to ask again, in seconds."),
            },
        }
    }


def _problem(words: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": words, "content": {"application/json": {"schema": schema}}}


if __name__ == "__main__":
    json.dump(openapi(), sys.stdout)
