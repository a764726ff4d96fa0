"""Why a tick is not written, for people: by the names of Kafka's errors, which all clients share.

The job writes ticks, and so does `heartwheel tick`: the words are true for both.
"""

from __future__ import annotations

from typing import Final

_REASONS: Final = {
    "TopicAuthorizationFailedError": "ticks may not be written to the topic: their user needs the ACL Write on it",
    "ClusterAuthorizationFailedError": "the cluster refuses ticks: their user needs the ACL Write on the topic",
    "NotEnoughReplicasError": "fewer replicas are in sync than min.insync.replicas asks for",
    "NotEnoughReplicasAfterAppendError": "fewer replicas are in sync than min.insync.replicas asks for",
    "NotLeaderForPartitionError": "the partition changes its leader",
    "LeaderNotAvailableError": "the partition has no leader",
    "KafkaTimeoutError": "its leader does not answer",
    "KafkaConnectionError": "its leader cannot be reached",
    "UnknownTopicOrPartitionError": "the topic is missing",
}

NO_LEADER: Final = _REASONS["LeaderNotAvailableError"]
NO_ANSWER: Final = _REASONS["KafkaTimeoutError"]


def reason_of(error: BaseException) -> str:
    """Return why a tick was not written, for people; the name of an error that has no words here."""
    name = type(error).__name__
    return _REASONS.get(name, name)
