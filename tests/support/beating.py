"""Members that beat on in the background, whatever happens to the job and to the broker."""

from __future__ import annotations

from heartwheel.kafka.sender import Sender
from heartwheel.wire.event_codec import encode_event
from support.background import Background
from support.job import Topics, beats_of


class Beating(Background):
    """Let a group of ten beat once a second for the length of a block.

    What a broker that is away does not take is not in the log, so nobody counts on it.

    Args:
        topics: of the job.
        session_ms: the members' session timeout, far longer than any stall of the test, ms.
    """

    def __init__(self, topics: Topics, *, session_ms: int, group: str = "steady") -> None:
        super().__init__()
        self._topics = topics
        self._events = beats_of(group, 10, session_ms=session_ms)

    def _run(self) -> None:
        sender = Sender(self._topics.bootstrap, self._topics.names["heartbeats"], properties=self._topics.properties)
        while not self._over.wait(1):
            for event in self._events:
                sender.send(event.group_id.encode(), encode_event(event))
            sender.poll()
        sender.close()
