"""Pods of a cluster: which there are, by a list and a watch, and their logs."""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.rare_log import RareLog
from heartwheel.base.worker import Worker
from heartwheel.sources.watch.containers.container_log import PresentContainer
from heartwheel.sources.watch.containers.http_api import ApiError, HttpApi, lines_of

MOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod has the token and the authority of its service account."""

_GONE: Final = 410
_WATCH_S: Final = 240
_PAUSE_S: Final = 1.0
_PAUSE_S_MAX: Final = 30.0
_WARN_EVERY_S: Final = 60.0
_RIGHTS: Final = "its service account needs get, list and watch of pods, and get of pods/log, in this namespace"
_HINTS: Final = {
    401: "its token is not valid, or expired: is the mounted one read?",
    403: _RIGHTS,
    404: "does the namespace exist?",
}
_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
_BROKERS: Final = "kafka"

_log = logging.getLogger(__name__)


class Pods:
    """Pods of a namespace that a selector picks, and their logs; a context manager.

    Of each pod one container is followed: the one that `kubectl logs` takes by the pod's annotation, else the one named
    kafka, else the first.

    Args:
        target: namespace/label-selector, such as `kafka/app=broker`.
        api: a client.

    Raises:
        HeartwheelError: the pods cannot be listed.
    """

    def __init__(self, target: str, api: HttpApi) -> None:
        self._namespace, _, self._selector = target.partition("/")
        self._api, self.label = api, f"kubernetes:{target}"
        self._lock = threading.Lock()
        self._pods: dict[str, Mapping[str, Any]] = {}
        self._worker = Worker(self._work, "heartwheel-pods", close_s=5.0)
        self._rare = RareLog(_log, _WARN_EVERY_S)
        self._version = ""

    def __enter__(self) -> Self:
        try:
            self._list()
        except ApiError:
            self._api.free()
            raise
        if not self._pods:
            _log.warning("%s selects no pod yet", self.label)
        self._worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._worker.join()
        self._api.free()

    def close(self) -> None:
        """End all answers that are being read, and refuse others."""
        self._worker.end()
        self._api.close()

    def names(self) -> list[str]:
        """Return the names of the pods' logs."""
        with self._lock:
            return [f"kubernetes:{self._namespace}/{name}" for name in self._pods]

    def present(self, name: str) -> PresentContainer | None:
        """Return the container of a pod; `None` if there is no such pod."""
        with self._lock:
            pod = self._pods.get(name.rpartition("/")[2])
        if pod is None:
            return None
        container = _container_of(pod)
        statuses = _list_of(pod, "status", "containerStatuses")
        status: Mapping[str, Any] = next((each for each in statuses if each["name"] == container), {})
        last = status.get("lastState", {}).get("terminated") or {}
        now = status.get("containerID", "")
        running = "running" in status.get("state", {})
        return PresentContainer(now, last.get("containerID", "") if last.get("containerID") != now else "", running)

    @contextlib.contextmanager
    def entries(self, name: str, since_s: int, *, previous: bool, follow: bool) -> Iterator[Iterator[list[bytes]]]:
        """Read the log of a pod: see `Containers`."""
        pod_name = name.rpartition("/")[2]
        with self._lock:
            pod = self._pods.get(pod_name, {})
        params = {"container": _container_of(pod), "timestamps": "true"}
        if since_s:
            params["sinceTime"] = f"{datetime.fromtimestamp(since_s, UTC):%Y-%m-%dT%H:%M:%SZ}"
        params |= {word: "true" for word, is_wanted in (("previous", previous), ("follow", follow)) if is_wanted}
        path = f"/api/v1/namespaces/{self._namespace}/pods/{pod_name}/log"
        with self._api.stream(path, **params) as response:
            yield lines_of(response)

    def _work(self) -> None:
        pause_s = _PAUSE_S
        while not self._worker.stopping:
            try:
                if not self._version:
                    self._list()
                self._watch()
                pause_s = _PAUSE_S
            except ApiError as error:
                if error.status == _GONE:
                    self._version = ""
                elif not self._worker.stopping and not error.is_idle:
                    self._rare.warning("%s: %s (%d times)", self.label, error)
                    pause_s = min(2 * pause_s, _PAUSE_S_MAX)
            self._worker.wait(pause_s)

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/pods"

    def _list(self) -> None:
        answer = self._api.json(self._path, labelSelector=self._selector)
        with self._lock:
            self._pods = {each["metadata"]["name"]: each for each in answer.get("items") or []}
        self._version = answer["metadata"]["resourceVersion"]

    def _watch(self) -> None:
        """Follow the pods until the server ends it."""
        wanted = {"labelSelector": self._selector, "watch": "true", "allowWatchBookmarks": "true"}
        wanted |= {"resourceVersion": self._version, "timeoutSeconds": str(_WATCH_S)}
        with self._api.stream(self._path, **wanted) as response:
            for lines in lines_of(response):
                for line in lines:
                    self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            change = msgspec.json.decode(line)
            kind, pod = change["type"], change["object"]
            if kind == "ERROR":
                raise ApiError(f"the watch ended: {pod.get('message', '')}", status=pod.get("code", 0))
            name, version = pod["metadata"].get("name", ""), pod["metadata"]["resourceVersion"]
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
            self._version = ""
            raise ApiError(f"a change of a pod cannot be read: {error}") from None
        with self._lock:
            if kind in {"ADDED", "MODIFIED"}:
                self._pods[name] = pod
            elif kind == "DELETED":
                self._pods.pop(name, None)
        self._version = version


def api_of_cluster(url: str, mount: Path = MOUNT, environ: Mapping[str, str] = os.environ) -> HttpApi:
    """Return a client for the API of a cluster.

    Args:
        url: of the API, such as that of `kubectl proxy`; empty for that of the cluster whose pod this process is in.
        mount: where token and authority are.
        environ: where a pod finds the address.

    Raises:
        HeartwheelError: this is no pod, and no address was given.
    """
    token, authority = mount / "token", mount / "ca.crt"
    if not url:
        host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host or not token.is_file():
            hint = "run it in a pod with a service account, or set it: kubectl proxy serves http://127.0.0.1:8001"
            raise HeartwheelError("this is no pod of a cluster, and watch.kubernetes_api is empty", hint=hint)
        url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    secure = url.startswith("https:")
    try:
        verify = ssl.create_default_context(cafile=authority if secure and authority.is_file() else None)
    except (OSError, ssl.SSLError) as error:
        raise HeartwheelError(f"{authority} cannot be used: {error}", hint="set watch.kubernetes_mount") from None
    return HttpApi(url, token_file=token if secure and token.is_file() else None, verify=verify, hints=_HINTS)


def _container_of(pod: Mapping[str, Any]) -> str:
    """Return the name of the container that is followed."""
    names = [each["name"] for each in _list_of(pod, "spec", "containers")]
    wanted = (pod.get("metadata", {}).get("annotations") or {}).get(_CONTAINER, _BROKERS)
    return wanted if wanted in names else names[0] if names else ""


def _list_of(pod: Mapping[str, Any], part: str, name: str) -> list[Any]:
    return pod.get(part, {}).get(name) or []
