"""The checks of `heartwheel doctor` for assumptions whose violation may expire a living member on this cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from heartwheel.front.cli.checks import DoctorCheck, Status
from heartwheel.settings import Settings, format_duration

if TYPE_CHECKING:
    from heartwheel.kafka.topics import TopicState

_ASSUMED: Final = "docs/guarantees.md#what-is-assumed"

_BEATS_A_SESSION: Final = 3
"""Kafka's clients beat this often in a session, as their documentation asks."""


def shortest_session_ms(settings: Settings) -> int:
    """Return the shortest session timeout that the configuration allows a member, ms."""
    rules = settings.coordinator
    own = (ms for key, ms in rules.group_overrides.items() if ".session.timeout" in key.rpartition("/")[2])
    return min(
        rules.group_min_session_timeout_ms,
        rules.default_session_timeout_ms,
        rules.group_consumer_session_timeout_ms,
        rules.group_share_session_timeout_ms,
        rules.group_streams_session_timeout_ms,
        *own,
    )


def slack_ms(session_ms: int) -> int:
    """Return how much time may jump or stand still before a living member with three beats a session expires, ms."""
    return session_ms - session_ms // _BEATS_A_SESSION


def rate_skew(skew_ms: int | None, session_ms: int) -> DoctorCheck:
    """Rate how far the brokers' clocks are apart: after a change of leader, time jumps or stands still by that much.

    Args:
        skew_ms: by the ticks, ms; `None` if it is not known.
        session_ms: the shortest session timeout, ms.
    """
    from heartwheel.readers.live.log_clock import SKEW_MS_MIN

    name, most_ms = "broker clocks", slack_ms(session_ms)
    if skew_ms is None:
        return DoctorCheck(name, Status.SKIPPED, "with ticks in fewer than two partitions there is nothing to compare")
    hint = "synchronise the brokers by NTP; docs/troubleshooting.md#broker-clocks-apart"
    bound = f"from {most_ms} ms on a living member may be expired ({_of_session(session_ms)})"
    if skew_ms >= min(SKEW_MS_MIN, most_ms):
        return DoctorCheck(name, Status.WARN, f"the leaders' clocks are {skew_ms} ms apart; {bound}", hint)
    return DoctorCheck(name, Status.OK, f"the leaders' clocks are within {skew_ms} ms of each other; {bound}")


def check_short_outages(settings: Settings) -> DoctorCheck:
    """Compare the shortest session with the outages that are too short to renew it."""
    session_ms, least_ms = shortest_session_ms(settings), settings.engine.outage_min_ms
    name, least = "short outages", f"engine.outage_min of {format_duration(least_ms)}"
    if least_ms < slack_ms(session_ms):
        return DoctorCheck(name, Status.OK, f"living members survive every outage that is no longer than {least}")
    detail = f"an outage that is no longer than {least} may expire living members ({_of_session(session_ms)})"
    hint = f"set engine.outage_min below {slack_ms(session_ms)} ms, or coordinator.group_min_session_timeout higher"
    return DoctorCheck(name, Status.WARN, detail, hint)


def rate_acks(state: TopicState) -> DoctorCheck:
    """Return which acknowledgements members must request: with fewer they can write where ticks cannot.

    Args:
        state: the cluster's description of the heartbeat topic.
    """
    least = state.settings.get("min.insync.replicas", "1")
    if not least.isdecimal() or not 1 < int(least) <= state.replication_factor:
        return DoctorCheck(
            "acks", Status.OK, "ticks are written wherever heartbeats are, whatever acks members ask for"
        )
    detail = (
        f"cannot be measured from here: while fewer than {least} replicas are in sync, members with acks=1 can write "
        "and ticks cannot, so living members with acks=all may be expired"
    )
    return DoctorCheck("acks", Status.SKIPPED, detail, f"set acks=all in every producer of heartbeats: 7 of {_ASSUMED}")


def name_unmeasured(settings: Settings) -> DoctorCheck:
    """List the assumptions that no check can measure, and whose violation may expire a living member."""
    feeds = settings.engine.feeds
    assumed = [
        "all producers choose partitions as Kafka's own do (2)",
        "no producer uses a new partition before the job knows it, seconds after it was added (2)",
        "no outage begins while a group moves to a new partition (2)",
        "the job runs when an outage begins and when it ends (4)",
        "no member alone is cut off from Kafka for a whole session (4)",
    ]
    if feeds:
        assumed += [
            f"feeds ({feeds}) know of a new partition within ten minutes (2), and their times are right (8)",
            "taps among them read their brokers' own logs, too: heartwheel tap --broker-log (8)",
        ]
    return DoctorCheck("assumptions", Status.SKIPPED, f"cannot be measured from here: {'; '.join(assumed)}", _ASSUMED)


def _of_session(session_ms: int) -> str:
    return f"the shortest session is {format_duration(session_ms)}, with a heartbeat every third of it"
