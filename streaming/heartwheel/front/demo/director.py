"""Direct real consumers: start them, and kill, freeze, hang or close one after another."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import IO, Final

import msgspec

from heartwheel.front.demo.consumer import ConsumerPlan
from heartwheel.kafka.broker.node_process import die_with_parent

FROZEN_MS: Final = 12_000
"""How long a frozen consumer is frozen, ms: longer than any session here."""

_ACTS: Final = ("kill", "kill", "freeze", "hang", "close", "grow")
_GROWN_MAX: Final = 5


class Cast(msgspec.Struct, frozen=True):
    """The groups of a demo.

    Args:
        groups: protocol by group id.
        members: consumers of each group at the start.
        session_timeout_ms: of classic consumers.
        every_ms: from one act to the next, ms.
        seed: one seed, one choice of acts.
        broker_session_ms: session timeout of groups whose broker sets it.
    """

    bootstrap: str
    topic: str
    groups: dict[str, str]
    members: int = 3
    session_timeout_ms: int = 6_000
    every_ms: int = 3_000
    seed: int = 1
    broker_session_ms: int = 6_000

    @property
    def longest_session_ms(self) -> int:
        """The longest session of anybody, ms."""
        return max(self.session_timeout_ms, self.broker_session_ms)


class Director:
    """Run a cast in processes of their own, from a thread of its own.

    Args:
        cast: whom to run.
        errors: gets what the consumers say on stderr.

    Attributes:
        acts: how often what was done.
    """

    def __init__(self, cast: Cast, errors: IO[bytes]) -> None:
        self._cast, self._errors = cast, errors
        self._dice = random.Random(cast.seed)  # noqa: S311 - a schedule, no secret
        self._running: dict[str, list[subprocess.Popen[bytes]]] = {group: [] for group in cast.groups}
        self._frozen: list[tuple[float, subprocess.Popen[bytes]]] = []
        self._numbers = Counter[str]()
        self.acts: Counter[str] = Counter()

    def run(self, duration_ms: int | None, stop: threading.Event) -> None:
        """Direct for this long, or until stopped; the members that are left then stay alive.

        Args:
            duration_ms: how long; `None` until stopped.
        """
        began = time.monotonic()
        for group, running in self._running.items():
            for _ in range(self._cast.members - len(running)):
                self._start(group)
        next_s = began + 3 * self._cast.every_ms / 1000  # they find each other first
        while not stop.wait(0.1):
            now = time.monotonic()
            self._thaw(now)
            if duration_ms is not None and now - began >= duration_ms / 1000:
                break
            if now >= next_s:
                next_s = now + self._cast.every_ms / 1000 * self._dice.uniform(0.6, 1.4)
                self._act(now)
        self._thaw(float("inf"))

    def end(self) -> None:
        """Kill the members that are left."""
        for process in self._everybody():
            process.kill()
        for process in self._everybody():
            process.wait()

    def _everybody(self) -> Sequence[subprocess.Popen[bytes]]:
        return [process for running in self._running.values() for process in running]

    def _start(self, group: str) -> None:
        self._numbers[group] += 1
        plan = ConsumerPlan(
            bootstrap=self._cast.bootstrap,
            topic=self._cast.topic,
            group_id=group,
            client_id=f"{group}-{self._numbers[group]}",
            protocol=self._cast.groups[group],
            session_timeout_ms=self._cast.session_timeout_ms,
        )
        command = [sys.executable, "-m", "heartwheel.front.demo.consumer", msgspec.json.encode(plan).decode()]
        self._running[group].append(
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                start_new_session=True,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 - the hook takes no lock, it only makes one system call
            )
        )

    def _act(self, now: float) -> None:
        group = self._dice.choice(sorted(self._running))
        running = self._running[group]
        frozen = [process for _, process in self._frozen]
        idle = [process for process in running if process not in frozen and process.poll() is None]
        act = self._dice.choice(_ACTS)
        if act == "grow" and len(running) >= _GROWN_MAX:
            act = "close"
        if act != "grow" and not idle:
            return
        self.acts[act] += 1
        if act == "grow":
            self._start(group)
            return
        chosen = self._dice.choice(idle)
        if act == "freeze":
            chosen.send_signal(signal.SIGSTOP)
            self._frozen.append((now + FROZEN_MS / 1000, chosen))
        elif act == "hang":
            chosen.send_signal(signal.SIGUSR1)
        else:
            chosen.send_signal(signal.SIGKILL if act == "kill" else signal.SIGTERM)
            running.remove(chosen)
            chosen.wait()
            self._start(group)

    def _thaw(self, now: float) -> None:
        for until, process in list(self._frozen):
            if until <= now:
                process.send_signal(signal.SIGCONT)
                self._frozen.remove((until, process))
