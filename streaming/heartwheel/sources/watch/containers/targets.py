"""The containers that the settings name."""

from __future__ import annotations

import contextlib
from pathlib import Path

from heartwheel.settings.servers import WatchSettings
from heartwheel.sources.watch.containers.docker import DockerContainers
from heartwheel.sources.watch.containers.followed import Containers
from heartwheel.sources.watch.containers.kubernetes import Pods, api_of_cluster


def opened_containers(wanted: WatchSettings, stack: contextlib.ExitStack) -> list[Containers]:
    """Return the containers that the settings name, open until the stack is closed.

    Raises:
        HeartwheelError: they cannot be listed.
    """
    found: list[Containers] = []
    if wanted.kubernetes:
        api = api_of_cluster(wanted.kubernetes_api, Path(wanted.kubernetes_mount))
        found.append(stack.enter_context(Pods(wanted.kubernetes, api)))
    if wanted.docker:
        found.append(stack.enter_context(DockerContainers(wanted.docker, wanted.docker_socket)))
    return found
