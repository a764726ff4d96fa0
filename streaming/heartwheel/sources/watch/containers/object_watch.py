"""Objects of Kubernetes as they change: a list, and a watch from its version on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import msgspec

from heartwheel.base.rare_log import RareLog
from heartwheel.base.worker import Worker
from heartwheel.sources.watch.containers.http_api import ApiError, HttpApi, lines_of

DELETED: Final = "DELETED"
"""The kind of a change after which an object is gone."""

_CHANGES: Final = frozenset({"ADDED", "MODIFIED", DELETED})
LIST_MAX: Final = 500
"""Most objects in one answer: a list of many thousands takes the server's memory, and may end by its timeout."""

_NOT_OBJECTS: Final = (KeyError, TypeError, AttributeError)
_GONE: Final = 410
_WATCH_S: Final = 240
_PAUSE_S: Final = 1.0
_PAUSE_S_MAX: Final = 30.0
_WARN_EVERY_S: Final = 60.0
_CLOSE_S: Final = 5.0

_log = logging.getLogger(__name__)


class ObjectWatch(Worker):
    """A thread that follows the objects of one kind; a context manager, which lists them when it begins.

    Args:
        api: a client. It has to be closed before the thread can be waited for.
        path: of the objects.
        replace: called with all objects, at the begin and when changes were missed.
        change: called with the kind of a change, and the object after it.
        label: what warnings call them.
        selector: picks objects by their labels.

    Raises:
        ApiError: they cannot be listed.
    """

    def __init__(
        self,
        api: HttpApi,
        path: str,
        replace: Callable[[list[Mapping[str, Any]]], None],
        change: Callable[[str, Mapping[str, Any]], None],
        *,
        label: str,
        selector: str = "",
    ) -> None:
        super().__init__(self._work, f"heartwheel-{label}", close_s=_CLOSE_S)
        self._api, self._path, self._replace, self._change, self._label = api, path, replace, change, label
        self._selected = {"labelSelector": selector} if selector else {}
        self._version = ""
        self._rare = RareLog(_log, _WARN_EVERY_S)

    def __enter__(self) -> Self:
        self._list()
        return super().__enter__()

    def _work(self) -> None:
        pause_s, listed = _PAUSE_S, ""
        while not self.stopping:
            try:
                if not self._version:
                    self._list()
                listed = self._version
                self._follow()
                pause_s = _PAUSE_S
            except ApiError as error:
                is_gone, is_new = error.status == _GONE, self._version != listed
                if is_gone:
                    self._version = ""  # to list anew is all that it takes, unless the server ends each watch so
                if not (self.stopping or error.is_idle or (is_gone and is_new)):
                    if not is_gone or pause_s > _PAUSE_S:
                        self._rare.warning("%s: %s (%d times)", self._label, error)
                    pause_s = min(2 * pause_s, _PAUSE_S_MAX)
            self.wait(pause_s)

    def _list(self) -> None:
        found: list[Mapping[str, Any]] = []
        wanted = {**self._selected, "limit": str(LIST_MAX)}
        try:
            while True:
                answer = self._api.json(self._path, **wanted)
                found += answer.get("items") or []
                version = answer["metadata"]["resourceVersion"]  # the same in all parts of a list
                more = answer["metadata"].get("continue")
                if not more:
                    break
                wanted["continue"] = more
            self._replace(found)
        except _NOT_OBJECTS as error:
            raise ApiError(f"{self._path} answered no list of objects: {error!r}") from None
        self._version = version

    def _follow(self) -> None:
        """Follow the objects until the server ends it."""
        wanted = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": self._version}
        with self._api.stream(self._path, **self._selected, **wanted, timeoutSeconds=str(_WATCH_S)) as response:
            for lines in lines_of(response):
                for line in lines:
                    self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            change = msgspec.json.decode(line)
            kind, value = change["type"], change["object"]
            if kind == "ERROR":
                raise ApiError(f"the watch ended: {value.get('message', '')}", status=value.get("code", 0))
            version = value["metadata"]["resourceVersion"]
            if kind in _CHANGES:
                self._change(kind, value)
        except (*_NOT_OBJECTS, msgspec.DecodeError) as error:
            self._version = ""
            raise ApiError(f"{self._path} sent a change that cannot be read: {error!r}") from None
        self._version = version
