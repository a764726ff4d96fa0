"""What has no counterpart yet is found by name, the oldest first, as if all of it had been looked at."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from heartwheel.readers.live.expiration import expiration_of
from heartwheel.readers.live.pairing import Unpaired
from heartwheel.readers.live.returns import Arrival, is_return, names_come, names_gone
from support.output_rows import T0, expired

KEPT_MAX = 4


class Thing(NamedTuple):
    """Something with names and a time."""

    names: tuple[str, ...]
    at_ms: int


names = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(tuple)
steps = st.lists(
    st.tuples(st.sampled_from(["add", "until", "from"]), names, st.integers(0, 3))
    | st.tuples(st.just("let go"), st.just(()), st.integers(0, 3)),
    max_size=40,
)


@given(steps)
def test_a_search_finds_what_a_look_at_all_would_find(history: list[tuple[str, tuple[str, ...], int]]) -> None:
    """Adding, taking and letting go do what a list does that is searched from its oldest on."""
    unpaired, plain, now_ms = Unpaired[Thing](KEPT_MAX), list[Thing](), 0
    for step, named, number in history:
        same = [each for each in plain if set(each.names) & set(named)]
        if step == "add":
            now_ms += number
            thing = Thing(named, now_ms)
            unpaired.add(thing, named, now_ms)
            plain = [*plain, thing][-KEPT_MAX:]
        elif step == "let go":
            if number < len(plain):
                unpaired.let_go(plain[number])
                plain = plain[1:] if number == 0 else plain
        else:
            until = step == "until"
            at_ms = now_ms - number
            expected = next((each for each in same if (each.at_ms <= at_ms if until else each.at_ms >= at_ms)), None)
            found = unpaired.take_until(named, at_ms) if until else unpaired.take_from(named, at_ms)
            assert found is expected
            plain = [each for each in plain if each is not expected]
        assert len(unpaired) == len(plain)


class Moment(int):
    """A time that counts how often times are compared with it."""

    compared = 0

    def __le__(self, other: int) -> bool:
        Moment.compared += 1
        return int(self) <= other

    def __gt__(self, other: int) -> bool:
        Moment.compared += 1
        return int(self) > other


def test_a_crowd_that_is_back_before_it_is_known_to_be_gone_is_not_searched_through() -> None:
    """Each of many expirations of one name takes the oldest arrival at once, and not by a look at all of them."""
    unpaired, many = Unpaired[int](1_000), 1_000
    for number in range(many):
        unpaired.add(number, ("a",), T0 + number)
    Moment.compared = 0
    assert [unpaired.take_from(("a",), Moment(T0)) for _ in range(many)] == list(range(many))
    assert many <= Moment.compared <= 2 * many


UUIDS = ("0b8e4a6e-93c0-4c1e-8d3f-57ab0e1f22d7", "4f1c9d60-6d55-4a0c-a5b8-9a0c52c0aa01")
ids = st.sampled_from(["a", *(f"{name}-{uuid}" for name in "ci" for uuid in UUIDS), *UUIDS, "i-", "c-", ""])


@given(ids, ids, st.sampled_from([None, "c", "i"]), st.sampled_from([None, "c", ""]), st.sampled_from("gh"))
def test_names_say_what_the_rule_of_returns_says(
    gone: str, come: str, instance: str | None, client: str | None, group: str
) -> None:
    """An arrival after the deadline shares a name with an expiration exactly if the rule calls it a return."""
    row = expired("g", gone, group_instance_id=instance, client_id=client)
    expiration = expiration_of(row, seq=1, append_ms=T0, partition=0, offset=0)
    arrival = Arrival(group_id=group, member_id=come, time_ms=T0 + 1)
    assert bool(set(names_gone(expiration)) & set(names_come(arrival))) == is_return(expiration, arrival)
