"""What objects of Kubernetes show: pods, events and nodes, as `kubectl get ... -o json` writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from heartwheel.sources.explain.causes.happening import TEXT_CHARS_MAX, Happening, HappeningKind
from heartwheel.sources.explain.causes.moments import moment_ms
from heartwheel.sources.explain.local_zone import LocalZone

UNREADABLE: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What reading an object raises that is not what the API documents."""

_OF_PODS: Final[Mapping[str, tuple[HappeningKind, str]]] = {
    "Killing": (HappeningKind.STOPPED, "pod was told to stop"),
    "Evicted": (HappeningKind.EVICTED, "pod was evicted"),
    "Preempted": (HappeningKind.EVICTED, "pod was preempted"),
    "TaintManagerEviction": (HappeningKind.EVICTED, "pod was evicted from its node"),
    "Unhealthy": (HappeningKind.UNHEALTHY, "pod failed a probe"),
    "NodeNotReady": (HappeningKind.NODE_DOWN, "node became not ready"),
    "OOMKilling": (HappeningKind.OOM_KILLED, "container was OOM-killed"),
}
_OF_NODES: Final[Mapping[str, tuple[HappeningKind, str]]] = {
    "NodeNotReady": (HappeningKind.NODE_DOWN, "node became not ready"),
    "Rebooted": (HappeningKind.NODE_DOWN, "node was rebooted"),
    "Shutdown": (HappeningKind.NODE_DOWN, "node was shut down"),
}
_DELETED: Final = re.compile(r"[Dd]eleted? [Pp]od:? ([a-z0-9][a-z0-9.-]*)")
_SCALED: Final = "ScalingReplicaSet"

Put = tuple[HappeningKind, int, dict[str, Any]]


def happenings_of(value: Mapping[str, Any], file: str, line: int, zone: LocalZone) -> Iterator[Happening]:
    """Return what an object shows; nothing of one that tells nothing.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it is not what the API documents.
    """
    read = _READERS.get(value["kind"])
    for kind, time_ms, fields in read(value, zone) if read else ():
        fields["text"] = fields.get("text", "")[:TEXT_CHARS_MAX]
        yield Happening(kind=kind, time_ms=time_ms, file=file, line=line, **fields)


def _pod(pod: Mapping[str, Any], zone: LocalZone) -> Iterator[Put]:
    name, status, spec = pod["metadata"]["name"], pod.get("status") or {}, pod.get("spec") or {}
    found = [each["ip"] for each in status.get("podIPs") or []] or [status.get("podIP", "")]
    own = () if spec.get("hostNetwork") else tuple(filter(None, found))
    where = {
        "pod": name,
        "namespace": pod["metadata"].get("namespace", ""),
        "addresses": own,
        "node": spec.get("nodeName", ""),
    }
    if started := status.get("startTime"):
        yield HappeningKind.POD, moment_ms(started, zone), dict(where)
    limits = {each["name"]: _limit(each) for each in spec.get("containers") or []}
    for container in status.get("containerStatuses") or []:
        for state in (container.get("lastState") or {}, container.get("state") or {}):
            if ended := state.get("terminated"):
                kind, text = _end(ended, container["name"], limits.get(container["name"], ""))
                yield kind, moment_ms(ended["finishedAt"], zone), where | {"text": text}
    if status.get("reason") == "Evicted":
        at = [each["lastTransitionTime"] for each in status.get("conditions") or []]
        yield HappeningKind.EVICTED, moment_ms(max(at), zone), where | {"text": _said("pod was evicted", status)}


def _limit(container: Mapping[str, Any]) -> str:
    return str(((container.get("resources") or {}).get("limits") or {}).get("memory", ""))


def _end(ended: Mapping[str, Any], name: str, limit: str) -> tuple[HappeningKind, str]:
    code = ended.get("exitCode")
    if ended.get("reason") == "OOMKilled":
        return HappeningKind.OOM_KILLED, f"container {name} was OOM-killed" + (f"; limit {limit}" if limit else "")
    how = f"was killed by signal {code - 128}" if isinstance(code, int) and code > 128 else "ended"
    return HappeningKind.TERMINATED, f"container {name} {how} (exit code {code})"


def _event(event: Mapping[str, Any], zone: LocalZone) -> Iterator[Put]:
    about = event.get("involvedObject") or event.get("regarding") or {}
    reason, message = event.get("reason", ""), str(event.get("message") or event.get("note") or "")
    series = event.get("series") or {}
    at = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    time = at or event.get("firstTimestamp") or event["metadata"]["creationTimestamp"]
    deleted = _DELETED.search(message) if reason == "SuccessfulDelete" else None
    if about.get("kind") == "Pod" and reason in _OF_PODS:
        kind, text = _OF_PODS[reason]
        node = (event.get("source") or {}).get("host", "")
        pod = {"pod": about["name"], "namespace": about.get("namespace", "")}
        yield kind, moment_ms(time, zone), pod | {"node": node, "text": _said(text, event)}
    elif about.get("kind") == "Node" and reason in _OF_NODES:
        kind, text = _OF_NODES[reason]
        yield kind, moment_ms(time, zone), {"node": about["name"], "text": text}
    elif deleted is not None:
        text = f"pod was deleted by {about.get('kind', 'its owner')} {about.get('name', '')}"
        pod = {"pod": deleted[1].rstrip("."), "namespace": about.get("namespace", "")}
        yield HappeningKind.STOPPED, moment_ms(time, zone), pod | {"text": text}
    elif reason == _SCALED:
        text = f"{about.get('kind', '')} {about.get('name', '')}: {message}"
        yield HappeningKind.DEPLOYED, moment_ms(time, zone), {"text": text}


def _node(node: Mapping[str, Any], zone: LocalZone) -> Iterator[Put]:
    for each in (node.get("status") or {}).get("conditions") or []:
        if each["type"] == "Ready" and each["status"] != "True":
            text = f"node became not ready ({each.get('reason', 'no reason')})"
            at_ms = moment_ms(each["lastTransitionTime"], zone)
            yield HappeningKind.NODE_DOWN, at_ms, {"node": node["metadata"]["name"], "text": text}


def _said(text: str, value: Mapping[str, Any]) -> str:
    message = str(value.get("message") or value.get("note") or "").strip()
    return f"{text}: {message}" if message else text


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any], LocalZone], Iterator[Put]]]] = {
    "Pod": _pod,
    "Event": _event,
    "Node": _node,
}
