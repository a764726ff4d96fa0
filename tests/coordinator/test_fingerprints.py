"""When a heartbeat may be repeated without looking at a rule, and when that promise is taken back."""

import pytest

from coordinator.group_script import STABLE_A, STABLE_AB, STATIC_AB, play

ROWS = {
    # what it is: (script, whose heartbeat, whether the promise stands)
    "accepted in Stable": (STABLE_A + "A beat", "A", True),
    "accepted in PreparingRebalance": (STABLE_A + "B first\nA beat", "A", True),
    "accepted in CompletingRebalance": (STABLE_AB + "A join\nB join\nA beat", "A", True),
    "refused later on": (STABLE_A + "A beat\nA beat g=0 -> ILLEGAL_GENERATION", "A", True),
    "session timer moved by a commit": (STABLE_A + "A beat\n+100\nA commit", "A", True),
    "generation moved": (STABLE_A + "A beat\nA join\n= CompletingRebalance 2 A", "A", False),
    "generation moved, heartbeat unchecked": (STABLE_A + "A beat g=-1\nA join\n= CompletingRebalance 2 A", "A", True),
    "join phase began": (STABLE_A + "A beat\nB first", "A", False),
    "join phase began, heartbeat unchecked": (STABLE_A + "A beat g=-1\nB first", "A", True),
    "session timeout changed by a join": (STABLE_A + "A beat g=-1\nA join s=8000", "A", False),
    "same session timeout joined again": (STABLE_A + "A beat g=-1\nA join s=5000", "A", True),
    "static id replaced": (STATIC_AB + "B beat\nC static i=y p=range/roundrobin", "C", False),
    "unloaded": (STABLE_A + "A beat\n- unload", "A", False),
    "loaded": (STABLE_A + "A beat\n- unload\n- load", "A", False),
    "loaded group moved on": ("A beat g=7\nB beat g=7\nB beat g=8", "A", False),
    "loaded group moved on, heartbeat unchecked": ("B beat g=7\nA beat g=-1\nB beat g=8", "A", True),
    "presence group changed": ("A beat g=-1\nB beat g=-1", "A", True),
    "presence group spoke of a generation that it never had": ("A beat g=-1\nA beat g=0\nB beat g=9", "A", False),
    "group became classic": ("A beat g=7\nB new", "A", False),
    "strange instance id": ("A beat g=7 i=x\nA beat g=7 i=y", "A", False),
}


@pytest.mark.parametrize("name", ROWS)
def test_fingerprint(name: str) -> None:
    """A member holds the fingerprint of a heartbeat exactly while repeating it would do nothing else."""
    script, member_id, stands = ROWS[name]
    assert bool(play(script).group.members[member_id].fingerprint) is stands


def test_presence_heartbeat_that_names_a_timeout_is_another_one() -> None:
    """Heartbeats that ask for different session timeouts do not stand for each other."""
    stage = play("A beat g=-1 s=10000")
    first = stage.group.members["A"].fingerprint
    stage.run("A beat g=-1 s=20000")
    assert stage.group.members["A"].fingerprint not in (0, first)
