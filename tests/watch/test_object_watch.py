"""The watch of objects of Kubernetes asks a server that cannot keep up ever more rarely."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from heartwheel.sources.watch.containers.http_api import ApiError, HttpApi
from heartwheel.sources.watch.containers.object_watch import ObjectWatch
from support.job import wait_for
from support.kubernetes_api import PODS, KubernetesApi


class _TooOld:
    """A server that answers each list, and ends each watch as too old at once."""

    def __init__(self) -> None:
        self.lists = 0

    def json(self, _path: str, **_query: str) -> dict[str, Any]:
        self.lists += 1
        return {"metadata": {"resourceVersion": "7"}, "items": []}

    @contextmanager
    def stream(self, _path: str, **_query: str) -> Iterator[None]:
        raise ApiError("too old resource version", status=410)
        yield


class _Watch(ObjectWatch):
    """A watch that notes its pauses in place of making them, and ends after eight."""

    def wait(self, seconds: float) -> bool:
        self.pauses = [*getattr(self, "pauses", []), seconds]
        if len(self.pauses) == 8:
            self.end()
        return self.stopping


def test_a_long_list_is_asked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """All objects are handed on at once, and the watch begins at the version of the list."""
    monkeypatch.setattr("heartwheel.sources.watch.containers.object_watch.LIST_MAX", 3)
    lists: list[list[str]] = []

    def replace(values: list[Mapping[str, Any]]) -> None:
        lists.append([value["metadata"]["name"] for value in values])

    with KubernetesApi() as server:
        for number in range(7):
            server.put(PODS, {"metadata": {"name": f"pod-{number}"}})
        api = HttpApi(server.url)
        with ObjectWatch(api, PODS, replace, lambda *_: None, label="pods"):
            wait_for(lambda: len(server.requests) > 3, "a watch")
            api.close()
        api.free()
    assert lists == [[f"pod-{number}" for number in range(7)]]
    asked = [query for _, query, _ in server.requests]
    assert [each.get("continue") for each in asked[:3]] == [None, "107:3", "107:6"]
    assert (asked[3]["watch"], asked[3]["resourceVersion"]) == ("true", "107")


def test_a_server_whose_versions_are_always_too_old_is_listed_ever_more_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One watch that is too old is no news; one after the other is said, and the pauses grow to half a minute."""
    server = _TooOld()
    watch = _Watch(server, "/api/v1/pods", lambda _: None, lambda *_: None, label="pods")  # type: ignore[arg-type]  # all that is asked of it
    with caplog.at_level(logging.WARNING):
        watch._work()
    assert server.lists == 8
    assert watch.pauses == [2, 4, 8, 16, 30, 30, 30, 30]
    assert "too old resource version" in caplog.text
