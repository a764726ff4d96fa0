"""Real consumers of a real broker, each a process that can be killed, paused, stalled and closed, and what it says."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.job import wait_for

_SCRIPT: Final = Path(__file__).with_name("group_member.py")


class GroupMember:
    """Run one consumer.

    Args:
        kafka: the broker.
        settings: more of them, as `group_member.py` has them.
    """

    def __init__(self, kafka: EmbeddedKafka, topic: str, group: str, client: str, **settings: Any) -> None:
        self.group, self.client = group, client
        self.done_ms = 0
        """When it was last done something to, epoch ms."""
        wanted = {
            "bootstrap": kafka.bootstrap,
            "topic": topic,
            "group": group,
            "client": client,
            "library": "kafka-python",
            "protocol": "classic",
            "session_ms": 2_000,
            "poll_ms": 60_000,
            **settings,
        }
        self._said: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [sys.executable, str(_SCRIPT), json.dumps(wanted)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # a JVM that it starts is killed and paused with it
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def wait_joined(self) -> str:
        """Wait until it has partitions, and give its member id."""
        wait_for(lambda: self.member_ids, f"{self.client} to join")
        return self.member_ids[-1]

    @property
    def member_ids(self) -> list[str]:
        """List the ids that it has had partitions under, in their order."""
        return [each["joined"] for each in list(self._said) if "joined" in each]

    def do(self, command: str) -> None:
        """Let it do something."""
        assert self._process.stdin is not None
        self.done_ms = _now_ms()
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """Kill it, as a crash would."""
        self.done_ms = _now_ms()
        self._signal(signal.SIGKILL)
        self._process.wait()

    def kill_by_memory(self, limit_bytes: int = 512 << 20) -> bool:
        """Have the kernel kill it for its memory, in a control group; where there is none, kill it from outside.

        Returns:
            Whether the kernel did it.
        """
        self.done_ms = _now_ms()
        limit = memory_limit(self._process.pid, limit_bytes)
        if limit is None:
            self.kill()
            return False
        self.do("eat")
        assert self._process.wait() == -signal.SIGKILL
        limit.rmdir()
        return True

    def pause(self) -> None:
        """Stop its process for as long as nobody resumes it."""
        self.done_ms = _now_ms()
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let its process go on."""
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Kill it if it still runs, and let go of its pipes."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to its process, and to a JVM that it has started."""
        with contextlib.suppress(ProcessLookupError):  # they have ended
            os.killpg(self._process.pid, number)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.append(json.loads(line))


def memory_limit(pid: int, limit_bytes: int) -> Path | None:
    """Move a process into a control group with a limit of memory; `None` where this machine lets nobody make one."""
    for root, file in (
        (Path("/sys/fs/cgroup"), "memory.max"),
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    ):
        group = root / f"heartwheel-{pid}"
        with contextlib.suppress(OSError):
            group.mkdir()
            if (group / file).exists():
                (group / file).write_text(str(limit_bytes))
                (group / "cgroup.procs").write_text(str(pid))
                return group
            group.rmdir()
    return None


def _now_ms() -> int:
    return round(time.time() * 1000)
