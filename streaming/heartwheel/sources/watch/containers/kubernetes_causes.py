"""What happens to the pods of a namespace, from the API of Kubernetes: their containers' ends, events, and nodes."""

from __future__ import annotations

import contextlib
import logging
import queue
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Self

from heartwheel.base.plain import plain
from heartwheel.sources.explain.causes.happening import TEXT_CHARS_MAX, Happening
from heartwheel.sources.explain.causes.kubernetes_objects import UNREADABLE, happenings_of
from heartwheel.sources.explain.causes.read import KUBERNETES
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.watch.containers.http_api import ApiError, HttpApi
from heartwheel.sources.watch.containers.object_watch import DELETED, ObjectWatch

_KINDS: Final = {"pods": "Pod", "events": "Event", "nodes": "Node"}
_FORBIDDEN: Final = 403

_log = logging.getLogger(__name__)


class KubernetesCauses:
    """The happenings of a namespace, and of nodes if they may be listed; a context manager.

    Args:
        namespace: its name.
        api: a client.

    Raises:
        HeartwheelError: its pods or events cannot be listed.
    """

    def __init__(self, namespace: str, api: HttpApi) -> None:
        self._label, self._api = f"{KUBERNETES}{namespace}", api
        self._new: queue.SimpleQueue[Happening] = queue.SimpleQueue()
        self._doubt = ""
        self._watches = [
            self._watch(plural, f"/api/v1/namespaces/{namespace}/{plural}") for plural in ("pods", "events")
        ]
        self._nodes = self._watch("nodes", "/api/v1/nodes")

    def _watch(self, plural: str, path: str) -> ObjectWatch:
        takers = partial(self._take_all, plural), partial(self._take, plural)
        return ObjectWatch(self._api, path, *takers, label=f"{self._label}/{plural}")

    def __enter__(self) -> Self:
        try:
            for watch in self._watches:
                watch.__enter__()
            self._follow_nodes()
        except ApiError:
            self.__exit__()
            raise
        return self

    def _follow_nodes(self) -> None:
        """Follow the nodes of the cluster, too; many service accounts may not, and events tell most of it."""
        try:
            self._nodes.__enter__()
        except ApiError as error:
            if error.status != _FORBIDDEN:
                raise
            _log.info("%s: nodes are not looked at, as they may not be listed", self._label)
        else:
            self._watches.append(self._nodes)

    def __exit__(self, *_: object) -> None:
        for watch in self._watches:
            watch.end()
        self._api.close()
        for watch in self._watches:
            watch.join()
        self._api.free()

    def read(self) -> list[Happening]:
        """Return what happened since the last look."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self._new.get_nowait())
        return found

    def doubts(self) -> list[str]:
        """Return a sentence if an object could not be read."""
        return [f"an object of {self._label} could not be read: {self._doubt}"] if self._doubt else []

    def _take_all(self, plural: str, values: list[Mapping[str, Any]]) -> None:
        for value in values:
            self._take(plural, "", value)

    def _take(self, plural: str, kind: str, value: Mapping[str, Any]) -> None:
        if kind == DELETED and plural == "events":
            return  # it is too old
        try:
            label = "kubernetes" if plural == "nodes" else self._label  # nodes are of no namespace
            name = f"{label}/{plural}/{value['metadata'].get('name', '')}"
            # Items of a list have no kind.
            for each in happenings_of({**value, "kind": _KINDS[plural]}, name, 0, LocalZone()):
                self._new.put(each)
        except UNREADABLE as error:
            self._doubt = self._doubt or plain(str(error))[:TEXT_CHARS_MAX]
