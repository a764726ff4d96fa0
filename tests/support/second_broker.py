"""More brokers beside an embedded one: for partitions whose leader may go away, and clusters with several logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.node_process import HOST, free_port

NODE_ID = 2


@contextmanager
def second_broker(
    first: EmbeddedKafka,
    folder: Path,
    *,
    config: Mapping[str, str] | None = None,
    request_log: bool = False,
    node_id: int = NODE_ID,
) -> Iterator[EmbeddedKafka]:
    """Run a broker that joins the cluster of another one, whose controller it asks.

    Args:
        first: one that runs.
        folder: for its data.
        config: broker properties beside those that make it the second one.
        request_log: whether it writes down every request, for a tap.
        node_id: its id, which no other broker has.
    """
    port = free_port()
    listener = f"PLAINTEXT://{HOST}:{port}"
    voters = _properties(first.dir / "server.properties")["controller.quorum.voters"]
    cluster = _properties(first.dir / "data" / "meta.properties")["cluster.id"]
    data = folder / "data"
    data.mkdir(parents=True)
    (data / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id={node_id}\n")
    own = {
        "process.roles": "broker",
        "node.id": str(node_id),
        "controller.quorum.voters": voters,
        "listeners": listener,
        "advertised.listeners": listener,
    }
    settings = {**(config or {}), **own}
    with EmbeddedKafka(folder, port=port, config=settings, heap="256m", request_log=request_log) as broker:
        yield broker


def _properties(file: Path) -> dict[str, str]:
    lines = (line.partition("=") for line in file.read_text().splitlines() if not line.startswith("#"))
    return {name: value for name, _, value in lines}
