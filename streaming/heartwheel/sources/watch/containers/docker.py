"""Containers of a Docker engine: which there are, asked for again and again, and their logs, over its Unix socket."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, Self

import httpx

from heartwheel.base.rare_log import RareLog
from heartwheel.base.worker import Worker
from heartwheel.sources.watch.containers.followed import PresentContainer
from heartwheel.sources.watch.containers.http_api import ApiError, HttpApi, lines_of

_LOOK_EVERY_S: Final = 1.0
_WARN_EVERY_S: Final = 60.0
_CLOSE_S: Final = 5.0
_HEAD_BYTES: Final = 8
_FRAME_BYTES_MAX: Final = 64 << 20
_RUNS: Final = frozenset({"running", "paused"})

_log = logging.getLogger(__name__)


class _Container(NamedTuple):
    id: str
    is_running: bool


class DockerContainers:
    """Containers with some names or labels, and their logs; a context manager.

    A container that is started again has the same log. One that is made again under its name has another.

    Args:
        target: names and labels with commas: `kafka-1,kafka-2`, or `com.docker.compose.service=kafka`.
        socket: the path of the engine's socket.

    Raises:
        HeartwheelError: the containers cannot be listed.
    """

    def __init__(self, target: str, socket: str, *, look_every_s: float = _LOOK_EVERY_S) -> None:
        hint = f"may this user open {socket}? It is set by watch.docker_socket"
        self._api, self.label, self._hint = HttpApi("http://docker", unix_socket=socket), f"docker:{target}", hint
        self._socket = socket
        wanted = [each.strip() for each in target.split(",") if each.strip()]
        self._labels = [each.partition("=")[::2] for each in wanted if "=" in each]
        self._names = {each for each in wanted if "=" not in each}
        self._look_every_s = look_every_s
        self._lock = threading.Lock()
        self._found: dict[str, _Container] = {}
        self._has_terminal: dict[str, bool] = {}
        self._worker = Worker(self._work, "heartwheel-docker", close_s=_CLOSE_S)
        self._rare = RareLog(_log, _WARN_EVERY_S)

    def __enter__(self) -> Self:
        try:
            self._list()
        except ApiError as error:
            self._api.free()
            words = f"{self.label} cannot be listed by {self._socket}: {error}"
            raise ApiError(words, hint=self._hint) from None
        if not self._found:
            _log.warning("%s is no container yet", self.label)
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
        """Return the names of the containers' logs."""
        with self._lock:
            return list(self._found)

    def present(self, name: str) -> PresentContainer | None:
        """Return the container of a name; `None` if there is none."""
        with self._lock:
            found = self._found.get(name)
        return None if found is None else PresentContainer(found.id, "", found.is_running)

    @contextlib.contextmanager
    def entries(
        self, name: str, container: str, since_s: int, *, previous: bool, follow: bool
    ) -> Iterator[Iterator[list[bytes]]]:
        """Read the log of a container: see `Containers`. It goes by its id, and there is none of one before."""
        assert not previous  # noqa: S101 - `present` names none
        if self.present(name) is None:
            raise ApiError(f"{name} is gone", status=404, is_idle=True)
        if container not in self._has_terminal:
            config = self._api.json(f"/containers/{container}/json").get("Config") or {}
            self._has_terminal[container] = bool(config.get("Tty"))
        wanted = {"stdout": "1", "stderr": "1", "timestamps": "1", "follow": "1" if follow else "0"}
        if since_s:
            wanted["since"] = str(since_s)
        with self._api.stream(f"/containers/{container}/logs", **wanted) as response:
            yield lines_of(response) if self._has_terminal[container] else frames_of(response)

    def _work(self) -> None:
        while not self._worker.wait(self._look_every_s):
            try:
                self._list()
            except ApiError as error:
                self._rare.warning("%s: %s (%d times)", self.label, error)

    def _list(self) -> None:
        found = {}
        listed = self._api.json("/containers/json", all="1")
        try:
            for each in listed:
                for name in self._wanted(each):
                    found[f"docker:{name}"] = _Container(each["Id"], each.get("State") in _RUNS)
        except (KeyError, TypeError, AttributeError) as error:
            raise ApiError(f"/containers/json answered no list of containers: {error!r}") from None
        with self._lock:
            self._found = found

    def _wanted(self, container: Mapping[str, Any]) -> list[str]:
        """Return the name under which a container is wanted, if it is."""
        names = [name.removeprefix("/") for name in container.get("Names") or []]
        labels = container.get("Labels") or {}
        named = [name for name in names if name in self._names]
        is_labelled = any(labels.get(label) == value for label, value in self._labels)
        return named[:1] or (names[:1] if is_labelled else [])


def frames_of(response: httpx.Response) -> Iterator[list[bytes]]:
    """Return the payloads of an answer in frames as they come: each is an entry of stdout or stderr.

    A frame has eight bytes before it: the stream, three zeros, and the length, four bytes, the highest first.
    """
    rest = b""
    for part in response.iter_raw():
        rest += part
        frames, at = [], 0
        while len(rest) - at >= _HEAD_BYTES:
            size = int.from_bytes(rest[at + 4 : at + _HEAD_BYTES])
            if rest[at] > 2 or size > _FRAME_BYTES_MAX:
                raise ApiError(f"{response.url.path} answered no frames of a log")
            if len(rest) - at - _HEAD_BYTES < size:
                break
            frames.append(rest[at + _HEAD_BYTES : at + _HEAD_BYTES + size])
            at += _HEAD_BYTES + size
        rest = rest[at:]
        if frames:
            yield frames
