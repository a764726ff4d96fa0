"""What has no counterpart yet is found by name, the oldest first, as if all of it had been looked at."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from heartwheel.live.pairing import Unpaired

KEPT_MAX = 4


class Thing(NamedTuple):
    """Something with names, and a level that a search may ask for."""

    names: tuple[str, ...]
    level: int


def is_level(least: int, thing: Thing) -> bool:
    """Return whether a thing fits."""
    return thing.level >= least


names = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(tuple)
steps = st.lists(
    st.tuples(st.just("add"), st.builds(Thing, names, st.integers(0, 2)))
    | st.tuples(st.just("take"), st.builds(Thing, names, st.integers(0, 2)))
    | st.tuples(st.just("let go"), st.integers(0, 3)),
    max_size=40,
)


@given(steps)
def test_a_search_finds_what_a_look_at_all_would_find(history: list[tuple[str, object]]) -> None:
    """Adding, taking and letting go do what a list does that is searched from its oldest on."""
    unpaired, plain = Unpaired[Thing](KEPT_MAX), list[Thing]()
    for step, what in history:
        if isinstance(what, Thing) and step == "add":
            unpaired.add(what, what.names)
            plain = [*plain, what][-KEPT_MAX:]
        elif isinstance(what, Thing):
            same = [each for each in plain if set(each.names) & set(what.names)]
            expected = next((each for each in same if each.level >= what.level), None)
            assert unpaired.take(what.names, partial(is_level, what.level)) is expected
            plain = [each for each in plain if each is not expected]
        elif isinstance(what, int) and what < len(plain):
            thing = plain[what]
            unpaired.let_go(thing)
            plain = plain[1:] if thing is plain[0] else plain
        assert len(unpaired) == len(plain)
