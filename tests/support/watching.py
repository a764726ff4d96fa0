"""A watcher of logs, in this process or in one of its own, and a receiver of its messages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from heartwheel.base.worker import Worker
from heartwheel.readers.notify.delivery import DeliveryResult, DeliveryStatus
from heartwheel.readers.notify.message import Message
from heartwheel.settings import Settings
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.watch.service import Watcher
from support.job import wait_for


@contextmanager
def watching(
    folder: Path, *names: Path, post: Callable[[Message], DeliveryResult] | None = None, **sections: Any
) -> Iterator[Watcher]:
    """Run a watcher in a thread, until it has caught up and then for the length of a `with` block."""
    watch = {"history_file": str(folder / "history.db")} | sections.pop("watch", {})
    settings = Settings.model_validate({"dashboard": {"port": 0}, "watch": watch} | sections)
    with Watcher(settings, [str(name) for name in names], LocalZone(), post=post) as watcher:
        worker = Worker(watcher.run, "watcher")
        with worker, ExitStack() as stack:
            stack.callback(watcher.stop)
            wait_for(lambda: httpx.get(f"{watcher.url}readyz").status_code == 200, "a watcher that has caught up")
            yield watcher
        assert worker.failure is None


@contextmanager
def running_watch(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command on a free port; yield its process and the address of its page."""
    command = [sys.executable, "-u", "-m", "heartwheel", "watch", "--port", "0", "--history", str(folder / "h.db")]
    with subprocess.Popen([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


class Receiver:
    """Takes every message."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def __call__(self, message: Message) -> DeliveryResult:
        """Take a message."""
        self.messages.append(msgspec.json.decode(message.body))
        return DeliveryResult(DeliveryStatus.DELIVERED)

    @property
    def told(self) -> dict[str, list[str]]:
        """The steps that were told of each group."""
        found: dict[str, list[str]] = {}
        for message in self.messages:
            for each in message["incidents"]:
                found.setdefault(each["group_id"], []).append(each["step"])
        return found
