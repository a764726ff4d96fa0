"""heartwheel: a session-timeout engine on Spark Structured Streaming.

What is public is in `__all__`: `sessions` (which keys of a DataFrame fall silent), `tick` (a time for quiet topics),
the rows of the job's topics (`Verdict` with its `Kind` and `ExpiryReason`), and `heartwheel.testing`. Whatever else
there is may change with any release (`docs/sessions.md`).

Nine rooms, each built on those before it (`docs/architecture.md` has the drawing, and where time comes from):

- `base`: errors, plain text, addresses, clocks;
- `wire`: the rows of every public topic;
- `kafka`: clients, and in `kafka.broker` a real Kafka from locked jars;
- `settings`: the configuration;
- `engine`: what append times prove (`time`), the rules of one group (`rules`), many groups as columns (`shard`), the
  runtime of jobs on Spark (`runtime`) with what plugs into it (`heartbeats`, `operations`, `sessions`), and the rules
  on a log of requests (`replay`);
- `readers`: who reads the job's topics: `live` keeps a bounded picture, `dashboard`, `top`, `notify` and `metrics` show
  it, `canary` watches the job;
- `sources`: who else knows of members: `explain` (a broker's own log), `watch` (the same as a service), `tap` (its
  request log), `gateway` (HTTP); `mcp_server` answers language models about them;
- `proof`: `audit` derives every verdict again, `simulation` runs whole histories, `members` beat and die on purpose;
- `front`: `cli`, `demo`, and `beats`, which is what workers beat with, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heartwheel import testing
    from heartwheel.engine import tick
    from heartwheel.engine.sessions.api import sessions
    from heartwheel.wire.verdicts import ExpiryReason, Kind, Verdict

__all__ = ["ExpiryReason", "Kind", "Verdict", "sessions", "testing", "tick"]

_PUBLIC = {
    "ExpiryReason": ("heartwheel.wire.verdicts", "ExpiryReason"),
    "Kind": ("heartwheel.wire.verdicts", "Kind"),
    "Verdict": ("heartwheel.wire.verdicts", "Verdict"),
    "sessions": ("heartwheel.engine.sessions.api", "sessions"),
    "testing": ("heartwheel.testing", ""),
    "tick": ("heartwheel.engine.tick", ""),
}


if not TYPE_CHECKING:  # else a type checker would take any name as exported

    def __getattr__(name: str) -> Any:
        """Load what is asked for, and no more: `heartwheel explain` starts without NumPy."""
        if name not in _PUBLIC:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib  # noqa: PLC0415 - only for who asks

        module, attribute = _PUBLIC[name]
        found = importlib.import_module(module)
        return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    """List what is public."""
    return sorted(__all__)
