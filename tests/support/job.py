"""The job as its user runs it: `heartwheel run` as a process, and the topics around it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from heartwheel.kafka.client import KafkaUnreachableError
from heartwheel.kafka.readback import LogRecord, read_topic
from heartwheel.kafka.sender import Sender
from heartwheel.kafka.topic_specs import TopicNames, engine_topics
from heartwheel.kafka.topics import ensure_topics
from heartwheel.settings import Settings
from heartwheel.wire.events import Event
from heartwheel.wire.group_heartbeats import GroupHeartbeat
from heartwheel.wire.requests import Request, encode_request

PATIENCE_S = float(os.environ.get("HEARTWHEEL_PATIENCE_S", "120"))
"""How long a condition may take on a busy machine before a test gives up."""


def wait_for(condition: Callable[[], Any], what: str | Callable[[], str]) -> Any:
    """Wait until a condition holds, and return what it returned; a broker that is away for a moment may come back.

    It looks again after 10 ms at first, and after up to 200 ms later: many conditions hold almost at once, and reading
    a topic for others is work that the job should have the cores for.

    Args:
        condition: holds once it returns something true.
        what: what is waited for, or what tells at the end what is still missing.
    """
    pause_s = 0.01
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with contextlib.suppress(KafkaUnreachableError):
            if found := condition():
                return found
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.2)
    raise AssertionError(f"gave up after {PATIENCE_S:g} s waiting for {what if isinstance(what, str) else what()}")


FIRST_COMPILER = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"
"""Has Spark's JVM use its first compiler alone: a test's job is over before the second one has paid for itself."""

SESSION_MS = 1_500
"""Session timeout of members of which nothing else is said, ms."""


def beats_of(group: str, members: int, *, session_ms: int = SESSION_MS) -> list[Event]:
    """Make one heartbeat of each member of a presence group."""
    return [
        Event(group_id=group, member_id=f"{group}-m{i}", session_timeout_ms=session_ms, client_id="c", client_host="/h")
        for i in range(members)
    ]


def settings_of(bootstrap: str, topics: Mapping[str, str]) -> Settings:
    """Return settings that name a broker and topics."""
    settings = Settings()
    names = settings.kafka.topics.model_copy(update=topics)
    kafka = settings.kafka.model_copy(update={"bootstrap_servers": bootstrap, "topics": names})
    return settings.model_copy(update={"kafka": kafka})


class Topics:
    """The engine's topics under names that no other test has.

    Args:
        bootstrap: the broker.
        name: makes a topic's name.
        partitions: of the heartbeat topic.
        properties: Kafka client properties, if the broker asks for some.
    """

    def __init__(
        self,
        bootstrap: str,
        name: Callable[[str], str],
        *,
        partitions: int = 2,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.bootstrap = bootstrap
        self.properties = properties
        logical = ("heartbeats", "expirations", "triggers", "status", "rejects", "job")
        self.names = {part: name(part) for part in logical}
        specs = engine_topics(TopicNames(**self.names), heartbeat_partitions=partitions, output_partitions=partitions)
        ensure_topics(bootstrap, specs, create=True, properties=properties)

    def send(self, events: Iterable[Request | bytes | None], *, key: bytes = b"key") -> None:
        """Append events, or any bytes, and wait until they are in the log."""
        sender = Sender(self.bootstrap, self.names["heartbeats"], linger_ms=0, properties=self.properties)
        for event in events:
            if isinstance(event, Event | GroupHeartbeat):
                sender.send(event.group_id.encode(), encode_request(event))
            else:
                sender.send(key, event)
        sender.close()
        assert (sender.unknown, sum(sender.errors.values())) == (0, 0)

    def read(self, topic: str) -> list[LogRecord]:
        """Read a topic from its start."""
        return list(read_topic(self.bootstrap, self.names[topic], properties=self.properties))

    def rows(self, topic: str) -> list[dict[str, Any]]:
        """Read the values of a topic."""
        return [msgspec.json.decode(record.value or b"null") for record in self.read(topic)]

    def settings(self) -> Settings:
        """Return settings that name these topics."""
        return settings_of(self.bootstrap, self.names)

    def expired(self) -> list[str]:
        """Name the expired members, sorted."""
        return sorted(row["member_id"] for row in self.rows("expirations"))

    def clock_ms(self) -> int:
        """Tell up to where every shard has fired its timers, epoch ms."""
        newest: dict[int, int] = {}
        for row in self.rows("status"):
            newest[row["shard"]] = max(row["clock_ms"], newest.get(row["shard"], -1))
        return min(newest.values(), default=-1)


class Job:
    """One `heartwheel run`.

    Args:
        topics: where it reads and writes.
        settings: `--set` texts on top of quick ones for tests.
        store: what stands before the checkpoint's path in its location, such as `s3://bucket`.
    """

    def __init__(self, topics: Topics, checkpoint: Path, *settings: str, store: str = "") -> None:
        self.topics = topics
        flags = [
            *(f"kafka.topics.{name}={real}" for name, real in topics.names.items()),
            "engine.shards=2",
            "engine.trigger_interval=500ms",
            "coordinator.group_min_session_timeout=100ms",
            "spark.master=local[2]",
            "spark.driver_memory=1GiB",
            f"spark.conf.{FIRST_COMPILER}",
            *settings,
        ]
        self.flags = [f"kafka.bootstrap_servers={topics.bootstrap}", *flags]
        self.command = [
            *(sys.executable, "-m", "heartwheel", "run"),
            *("--bootstrap-servers", topics.bootstrap, "--checkpoint", f"{store}{checkpoint}"),
            *(word for flag in flags for word in ("--set", flag)),
        ]
        self._log = checkpoint.with_name(f"{checkpoint.name}.log")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the driver's Python."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What it has printed so far."""
        return self._log.read_text() if self._log.exists() else ""

    def keep_at(self, location: str) -> Self:
        """Let it keep its checkpoint elsewhere than in the folder beside which its log lies."""
        self.command[self.command.index("--checkpoint") + 1] = location
        return self

    def start(self) -> Self:
        """Start it, in a process group of its own."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self.command, stdout=log, stderr=log, start_new_session=True)
        return self

    def wait_for(self, condition: Callable[[], Any], what: str | Callable[[], str]) -> Any:
        """Wait for a condition while the job runs."""

        def checked() -> Any:
            assert self._process is not None
            if self._process.poll() is not None:
                raise AssertionError(f"the job ended with {self._process.returncode}:\n{self.log[-3000:]}")
            return condition()

        try:
            return wait_for(checked, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log[-3000:]}") from None

    def until_expired(self, members: Iterable[str]) -> list[dict[str, Any]]:
        """Wait until members are expired, and return their rows."""
        wanted = set(members)

        def found() -> list[dict[str, Any]]:
            rows = [row for row in self.topics.rows("expirations") if row["member_id"] in wanted]
            return rows if wanted <= {row["member_id"] for row in rows} else []

        return list(self.wait_for(found, f"{len(wanted)} members to be expired"))

    def until_live(self) -> None:
        """Wait until it has caught up."""
        self.wait_for(lambda: " live" in self.log, "the job to go live")

    def until_clock(self, clock_ms: int) -> None:
        """Wait until every shard has fired its timers up to some time."""
        self.wait_for(lambda: self.topics.clock_ms() >= clock_ms, f"the clock to reach {clock_ms}")

    def end(self) -> int:
        """Wait until it has ended by itself."""
        assert self._process is not None
        return self._process.wait(PATIENCE_S)

    def stop(self) -> int:
        """Stop it as a supervisor does, by a SIGTERM to its process group."""
        return self._signal(signal.SIGTERM)

    def interrupt(self) -> int:
        """Stop it as Ctrl-C in a terminal does, by a SIGINT to its process group."""
        return self._signal(signal.SIGINT)

    def kill(self) -> int:
        """Kill the driver, the JVM and the workers at once, as a crash of the machine would."""
        return self._signal(signal.SIGKILL)

    def freeze(self) -> None:
        """Stop the clock of everything it consists of, so that a test can look where it is."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal_all(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._signal_all(number)
        return self._process.wait(PATIENCE_S)

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            os.killpg(self._process.pid, number)


@contextmanager
def running(topics: Topics, checkpoint: Path, *settings: str) -> Iterator[Job]:
    """Run the job for the length of a block; what is left of it afterwards is killed."""
    with ended(Job(topics, checkpoint, *settings).start()) as job:
        yield job


@contextmanager
def ended(job: Job) -> Iterator[Job]:
    """Kill what is left of a job that was started, after a block."""
    try:
        yield job
    finally:
        job.kill()
