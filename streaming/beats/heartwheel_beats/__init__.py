"""One line lets a worker beat for heartwheel: `with beats("orders"):`."""

from __future__ import annotations

from .beating import Beats
from .member import Member, parse_duration_ms
from .senders import BeatsError, HttpSender, KafkaSender, LostError, Sender

beats = Beats
"""Beats for one member; see `Beats`."""

__all__ = [
    "Beats",
    "BeatsError",
    "HttpSender",
    "KafkaSender",
    "LostError",
    "Member",
    "Sender",
    "beats",
    "parse_duration_ms",
]
