"""The API of Kubernetes, as far as logs of pods are followed by it, and what goes wrong with it.

As documented: a list has a version, a watch sends what changed since one, and ends with 410 if that is too old. A log
is sent in chunks, each line with its time; `sinceTime` is cut to the second on its way to the kubelet, which has the
newest file of a log alone.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import ssl
import threading
from datetime import datetime
from http.server import HTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from support.container_logs import SECOND_NS, KeptLog, stamped
from support.runtime_api import POLL_S, RuntimeApi, RuntimeHandler

PODS: Final = "/api/v1/namespaces/kafka/pods"
"""Where the pods are whose logs it has."""


class KubernetesApi(RuntimeApi, HTTPServer):
    """A server with the logs of pods in the namespace `kafka`, and any objects; a context manager.

    Args:
        rng: decides where answers are cut, if they are.
        tokens: that are valid; with `None` none is asked for.
        tls: of the server.
    """

    def __init__(
        self, rng: random.Random | None = None, tokens: set[str] | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.rng, self.tokens = rng, tokens
        self.lock = threading.RLock()
        self.pods: dict[str, dict[str, Any]] = {}
        self.logs: dict[str, list[KeptLog]] = {}
        self.objects: dict[str, dict[str, dict[str, Any]]] = {PODS: self.pods}
        self.changes: list[tuple[int, str, str, dict[str, Any]]] = []
        self.version = self.oldest = 100
        self.requests: list[tuple[str, dict[str, str], int]] = []
        self.nonsense: Any = None
        """What it answers in place of a list."""
        self._open: set[socket.socket] = set()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def start(self, name: str, log: KeptLog, **more: Any) -> None:
        """Start a pod, or the container of one again, or replace one by another of the same name."""
        with self.lock:
            kept = [] if more.pop("replaces", False) else self.logs.get(name, [])[-1:]
            self.logs[name] = [*kept, log]
            self.note(name, **more)

    def note(self, name: str, **more: Any) -> None:
        """Tell watchers the present state of a pod."""
        with self.lock:
            known = name in self.pods
            self.version += 1
            self.pods[name] = _pod(name, self.version, self.logs[name], **more)
            self.changes.append((self.version, PODS, "MODIFIED" if known else "ADDED", self.pods[name]))

    def put(self, path: str, value: dict[str, Any]) -> None:
        """Add an object of any kind, or change it."""
        with self.lock:
            self.version += 1
            value["metadata"] = {**value["metadata"], "resourceVersion": str(self.version)}
            known = self.objects.setdefault(path, {})
            self.changes.append(
                (self.version, path, "MODIFIED" if value["metadata"]["name"] in known else "ADDED", value)
            )
            known[value["metadata"]["name"]] = value

    def delete(self, name: str) -> None:
        """Delete a pod."""
        with self.lock:
            self.version += 1
            pod = self.pods.pop(name)
            pod["metadata"]["resourceVersion"] = str(self.version)
            self.changes.append((self.version, PODS, "DELETED", pod))
            self.logs.pop(name)

    def compact(self) -> None:
        """Forget changes: a watch from an older version is gone."""
        with self.lock:
            self.version += 1
            self.changes.clear()
            self.oldest = self.version

    def cut(self) -> None:
        """Cut all connections."""
        with self.lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Take a connection, and remember it."""
        connection, address = super().get_request()
        with self.lock:
            self._open.add(connection)
        return connection, address


class _Handler(RuntimeHandler):
    server: KubernetesApi

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        at = urlsplit(self.path)
        query = dict(parse_qsl(at.query))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.server.tokens is not None and token not in self.server.tokens:
            self._status(401, "Unauthorized", at.path, query)
        elif at.path in self.server.objects and query.get("watch") == "true":
            self._watch(at.path, query)
        elif at.path in self.server.objects:
            self._list(at.path, query)
        elif at.path.removeprefix(f"{PODS}/") in self.server.pods:
            self.json(200, self.server.pods[at.path.removeprefix(f"{PODS}/")])
        elif at.path.startswith(f"{PODS}/") and at.path.endswith("/log"):
            self._log_of(at.path.split("/")[-2], at.path, query)
        else:
            self._status(403, f'pods is forbidden: User cannot list resource at "{at.path}"', at.path, query)

    def _list(self, path: str, query: dict[str, str]) -> None:
        self._note(path, query, 200)
        if self.server.nonsense is not None:
            self.json(200, self.server.nonsense)
            return
        with self.server.lock:
            version, _, begin = query.get("continue", f"{self.server.version}:0").partition(":")
            end = int(begin) + int(query["limit"])
            found = list(self.server.objects[path].values())
            more = {"continue": f"{version}:{end}"} if end < len(found) else {}
            found = found[int(begin) : end]
            answer = {
                "kind": "PodList",
                "metadata": {"resourceVersion": version, **more},
                "items": [{key: value for key, value in each.items() if key != "kind"} for each in found],
            }
        self.json(200, answer)

    def _watch(self, path: str, query: dict[str, str]) -> None:
        version = int(query["resourceVersion"])
        self._note(path, query, 200)
        self.begin(**{"Content-Type": "application/json"})
        while not self.server.is_over:
            with self.server.lock:
                is_gone = version < self.server.oldest
                new = [each for each in self.server.changes if each[0] > version and each[1] == path]
            if is_gone:
                status = {"kind": "Status", "status": "Failure", "code": 410, "message": "too old resource version"}
                self._line({"type": "ERROR", "object": status})
                break
            for number, _, kind, value in new:
                version = number
                self._line({"type": kind, "object": value})
            with self.server.lock:
                bookmark = {"kind": "Pod", "metadata": {"resourceVersion": str(version)}}
            if new:
                self._line({"type": "BOOKMARK", "object": bookmark})
            threading.Event().wait(POLL_S)
        self.chunk(b"")

    def _log_of(self, name: str, path: str, query: dict[str, str]) -> None:
        with self.server.lock:
            logs = self.server.logs.get(name, [])
            wanted = logs[-2:-1] if query.get("previous") == "true" else logs[-1:]
        if not wanted:
            words = f'previous terminated container "kafka" in pod "{name}" not found' if logs else "not found"
            self._status(400 if logs else 404, words, path, query)
            return
        self._note(path, query, 200)
        self.begin(**{"Content-Type": "application/json"})
        log = wanted[0]
        since_ns = _seconds(query.get("sinceTime", "")) * SECOND_NS
        at, rng = log.kept_from, self.server.rng
        while not self.server.is_over:
            with log.change:
                some, at = log.entries[at:], len(log.entries)
                is_over = not log.is_running or query.get("follow") != "true"
            text = b"".join(stamped(at_ns, line) for at_ns, line in some if at_ns >= since_ns)
            if rng is not None and text and rng.random() < 0.3:
                self.chunk(text[: rng.randrange(len(text))])
                self._fault(rng, follows=query.get("follow") == "true")
                return
            for begin in range(0, len(text), 1000):
                self.chunk(text[begin : begin + 1000])
            if is_over:
                break
            with log.change:
                log.change.wait_for(lambda: len(log.entries) > at or not log.is_running, POLL_S)  # noqa: B023
        self.chunk(b"")

    def _fault(self, rng: random.Random, *, follows: bool) -> None:
        """End an answer before its time: without a word, or as a server that is stopped ends one that would last."""
        if follows and rng.random() < 0.5:
            self.chunk(b"")
        self.break_off()

    def _line(self, value: Any) -> None:
        self.chunk(json.dumps(value).encode() + b"\n")

    def _status(self, code: int, words: str, path: str, query: dict[str, str]) -> None:
        self._note(path, query, code)
        self.json(code, {"kind": "Status", "status": "Failure", "message": words, "code": code})

    def _note(self, path: str, query: dict[str, str], code: int) -> None:
        with self.server.lock:
            self.server.requests.append((path, query, code))


def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) if text else 0


def _pod(name: str, version: int, logs: list[KeptLog], **more: Any) -> dict[str, Any]:
    now = logs[-1]
    state = {"running": {}} if now.is_running else {"terminated": {"containerID": now.id, "exitCode": 0}}
    last = {"terminated": {"containerID": logs[-2].id, "exitCode": 137}} if len(logs) > 1 else {}
    status = {"name": "kafka", "containerID": now.id, "state": state, "lastState": last, "restartCount": len(logs) - 1}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kafka", "resourceVersion": str(version)},
        "spec": {"containers": [{"name": "istio-proxy"}, {"name": "kafka"}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    } | more
