"""What happened to a pod, a machine or a process, as a file beside the brokers' logs shows it."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

import msgspec

TEXT_CHARS_MAX: Final = 300
"""Most characters of a file's own words that are kept."""


HAPPENINGS_MAX: Final = 100_000
"""Most happenings that are kept, of one file and in a history."""


class HappeningKind(enum.StrEnum):
    """The kinds of happenings, the most telling first."""

    OOM_KILLED = "oom_killed"
    EVICTED = "evicted"
    TERMINATED = "terminated"
    NODE_DOWN = "node_down"
    STOPPED = "stopped"
    UNHEALTHY = "unhealthy"
    PAUSED = "paused"
    DEPLOYED = "deployed"
    POD = "pod"
    """No happening: where a pod runs, and under which addresses."""


ENDS_PROCESS: Final = frozenset(
    {HappeningKind.OOM_KILLED, HappeningKind.EVICTED, HappeningKind.TERMINATED, HappeningKind.STOPPED}
)
"""Kinds after which the process is gone: a member that was alive afterwards was not in it."""


class PodKey(NamedTuple):
    """A pod: its namespace, empty if it is not known, and its name."""

    namespace: str
    name: str


class Happening(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened.

    Args:
        kind: what happened.
        time_ms: when, for a pause its end; epoch ms.
        began_ms: for a pause when it began, epoch ms.
        pod: the name of the pod, or another name that ids of clients contain; empty if it is not known.
        namespace: of the pod; empty if it is not known.
        addresses: under which others know the pod.
        node: the machine; empty if it is not known.
        text: in words, as the end of "Its ...": the container and what became of it, or the words of the file.
        file: the name of the file that shows it.
        line: the number of the line, or of the item in a list of JSON, from 1; 0 for what an API answered.
    """

    kind: HappeningKind
    time_ms: int
    began_ms: int | None = None
    pod: str = ""
    addresses: tuple[str, ...] = ()
    node: str = ""
    text: str = ""
    file: str
    line: int
    namespace: str = ""

    @property
    def key(self) -> PodKey:
        """What tells its pod from others of the same name."""
        return PodKey(self.namespace, self.pod)
