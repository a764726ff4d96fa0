"""The containers and namespaces that the settings name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from heartwheel.settings.servers import WatchSettings
from heartwheel.sources.watch.containers.docker import DockerContainers
from heartwheel.sources.watch.containers.followed import Containers
from heartwheel.sources.watch.containers.http_api import HttpApi
from heartwheel.sources.watch.containers.kubernetes import Pods, api_of_cluster
from heartwheel.sources.watch.containers.kubernetes_causes import KubernetesCauses


def opened_containers(wanted: WatchSettings, stack: contextlib.ExitStack) -> list[Containers]:
    """Return the containers that the settings name, open until the stack is closed.

    Raises:
        HeartwheelError: they cannot be listed.
    """
    found: list[Containers] = []
    if wanted.kubernetes:
        found.append(stack.enter_context(Pods(wanted.kubernetes, _api(wanted))))
    if wanted.docker:
        found.append(stack.enter_context(DockerContainers(wanted.docker, wanted.docker_socket)))
    return found


def opened_namespaces(
    names: Iterable[str], wanted: WatchSettings, stack: contextlib.ExitStack
) -> list[KubernetesCauses]:
    """Return the happenings of namespaces, open until the stack is closed.

    Args:
        names: of the namespaces.
        wanted: says where the API is.

    Raises:
        HeartwheelError: they cannot be listed.
    """
    return [stack.enter_context(KubernetesCauses(name, _api(wanted))) for name in names]


def _api(wanted: WatchSettings) -> HttpApi:
    return api_of_cluster(wanted.kubernetes_api, Path(wanted.kubernetes_mount))
