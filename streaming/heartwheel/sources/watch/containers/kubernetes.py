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

from heartwheel.base.errors import HeartwheelError
from heartwheel.sources.watch.containers.followed import PresentContainer
from heartwheel.sources.watch.containers.http_api import ApiError, HttpApi, lines_of
from heartwheel.sources.watch.containers.object_watch import DELETED, ObjectWatch

MOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod has the token and the authority of its service account."""

_NOT_FOUND: Final = 404
_RIGHTS: Final = "its service account needs get, list and watch of pods, and get of pods/log, or of events for causes"
_HINTS: Final = {
    0: "is that the address of the API? kubectl proxy serves http://127.0.0.1:8001; watch.kubernetes_api names it",
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
        self._namespace, _, selector = target.partition("/")
        self._api, self.label = api, f"kubernetes:{target}"
        self._path = f"/api/v1/namespaces/{self._namespace}/pods"
        self._lock = threading.Lock()
        self._pods: dict[str, Mapping[str, Any]] = {}
        self._watch = ObjectWatch(api, self._path, self._replace, self._change, label=self.label, selector=selector)

    def __enter__(self) -> Self:
        try:
            self._watch.__enter__()
        except ApiError:
            self._api.free()
            raise
        if not self._pods:
            _log.warning("%s selects no pod yet", self.label)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._watch.join()
        self._api.free()

    def close(self) -> None:
        """End all answers that are being read, and refuse others."""
        self._watch.end()
        self._api.close()

    def _replace(self, pods: list[Mapping[str, Any]]) -> None:
        with self._lock:
            self._pods = {each["metadata"]["name"]: each for each in pods}

    def _change(self, kind: str, pod: Mapping[str, Any]) -> None:
        with self._lock:
            if kind == DELETED:
                self._pods.pop(pod["metadata"]["name"], None)
            else:
                self._pods[pod["metadata"]["name"]] = pod

    def names(self) -> list[str]:
        """Return the names of the pods' logs."""
        with self._lock:
            return [f"kubernetes:{self._namespace}/{name}" for name in self._pods]

    def present(self, name: str) -> PresentContainer | None:
        """Return the container of a pod; `None` if there is no such pod."""
        with self._lock:
            pod = self._pods.get(name.rpartition("/")[2])
        return None if pod is None else _present(pod)

    @contextlib.contextmanager
    def entries(
        self, name: str, container: str, since_s: int, *, previous: bool, follow: bool
    ) -> Iterator[Iterator[list[bytes]]]:
        """Read the log of a pod: see `Containers`.

        A log is asked for by the name of its pod, which may stand for another container than the one that was seen
        last. So the pod is asked for once the answer has begun: an id that is still the wanted one was it before.
        """
        pod_name = name.rpartition("/")[2]
        with self._lock:
            pod = self._pods.get(pod_name, {})
        params = {"container": _container_of(pod), "timestamps": "true"}
        if since_s:
            params["sinceTime"] = f"{datetime.fromtimestamp(since_s, UTC):%Y-%m-%dT%H:%M:%SZ}"
        params |= {word: "true" for word, is_wanted in (("previous", previous), ("follow", follow)) if is_wanted}
        with self._api.stream(f"{self._path}/{pod_name}/log", **params) as response:
            now = _present(self._api.json(f"{self._path}/{pod_name}"))
            if container != (now.previous_id if previous else now.id):
                raise ApiError(f"{name} has another container by now", status=_NOT_FOUND, is_idle=True)
            yield lines_of(response)


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


def _present(pod: Mapping[str, Any]) -> PresentContainer:
    """Return what a pod says of its container."""
    container = _container_of(pod)
    statuses = _list_of(pod, "status", "containerStatuses")
    status: Mapping[str, Any] = next((each for each in statuses if each["name"] == container), {})
    last = status.get("lastState", {}).get("terminated") or {}
    now = status.get("containerID", "")
    running = "running" in status.get("state", {})
    return PresentContainer(now, last.get("containerID", "") if last.get("containerID") != now else "", running)


def _container_of(pod: Mapping[str, Any]) -> str:
    """Return the name of the container that is followed."""
    names = [each["name"] for each in _list_of(pod, "spec", "containers")]
    wanted = (pod.get("metadata", {}).get("annotations") or {}).get(_CONTAINER, _BROKERS)
    return wanted if wanted in names else names[0] if names else ""


def _list_of(pod: Mapping[str, Any], part: str, name: str) -> list[Any]:
    return pod.get(part, {}).get(name) or []
