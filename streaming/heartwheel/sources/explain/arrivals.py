"""Members that join, and members that come back."""

from __future__ import annotations

from heartwheel.sources.explain.facts import Fact, FactKind
from heartwheel.sources.explain.groups import WatchedGroup
from heartwheel.sources.explain.watch import FollowedLog
from heartwheel.wire.explained import Happened


class LoggedArrivals:
    """Turns facts about arriving members into returns and events."""

    def __init__(self, watch: FollowedLog) -> None:
        self._watch = watch

    def joined(self, fact: Fact) -> None:
        """Note that a member joins; in a streams group once its epoch or assignment confirms it."""
        group = self._watch.group(fact)
        if fact.protocol == "streams":
            group.group_type, group.unconfirmed = "streams", fact
        else:
            self._joined(fact, group)

    def replaced(self, fact: Fact) -> None:
        """Note that a static member is back; in a streams group once its epoch or assignment confirms it."""
        group = self._watch.group(fact)
        if fact.protocol == "streams":
            group.group_type, group.unconfirmed = "streams", fact
        else:
            self._replaced(fact, group)

    def confirm(self, fact: Fact) -> None:
        """Note a join or return of a streams member that was not refused, by a later line of the same request.

        The coordinator writes that a streams member joins before it checks its topology. A member that it then refuses
        has neither an epoch nor an assignment, and the next request's lines are about another one.
        """
        group = self._watch.group(fact)
        before, group.unconfirmed = group.unconfirmed, None
        if before is not None and fact.member_id == (before.new_member_id or before.member_id):
            if before.kind is FactKind.REPLACED:
                self._replaced(before, group)
            else:
                self._joined(before, group)

    def _joined(self, fact: Fact, group: WatchedGroup) -> None:
        if fact.protocol and fact.protocol != "classic":
            group.group_type = fact.protocol
            group.add_cause(fact.time_ms, "member_joined", fact.member_id)
        member = group.member(fact.member_id)
        member.group_instance_id = fact.group_instance_id or member.group_instance_id
        self.note_join(fact, group, fact.member_id)

    def note_join(self, fact: Fact, group: WatchedGroup, member_id: str) -> None:
        """Note that a member is in its group; one that was out is back."""
        self._watch.groups.remember(member_id, group)
        self._watch.name_unnamed(member_id, group)
        group.roster.came(member_id)
        member = group.member(member_id)
        out = member.out
        if out is not None and out.returned_ms is None:
            out.returned_ms, out.returned_as = fact.time_ms, member_id
            self._watch.joined(fact.time_ms, group, member, out)
            if out.kind is Happened.LEFT and group.group_type != "classic" and not out.reason_text:
                self._watch.make_poll_timeout(out, group.count_out(member.name))
            member.out = None
            group.forget_departure(member)
            return
        back = group.return_of(member, fact.time_ms)
        if back is not None:
            back.returned_ms, back.returned_as = fact.time_ms, member_id
        self._watch.joined(fact.time_ms, group, member, back)

    def _replaced(self, fact: Fact, group: WatchedGroup) -> None:
        old = group.member(fact.member_id)
        old.group_instance_id = fact.group_instance_id or old.group_instance_id
        before, old.out = old.out, None
        group.forget_departure(old)
        if before is not None and before.kind is Happened.TEMPORARILY_LEFT:
            before.returned_ms, before.returned_as = fact.time_ms, fact.new_member_id or None
        if fact.new_member_id == fact.member_id:
            if before is not None and before.kind is Happened.TEMPORARILY_LEFT:
                self._watch.make_poll_timeout(before, group.count_out(old.name))
            return
        event = self._watch.out(fact, group, Happened.REPLACED, "static_replaced", causes=False)
        event.new_member_id = fact.new_member_id or None
        group.roster.replaced(fact.member_id, fact.new_member_id)
        event.returned_ms, event.returned_as = fact.time_ms, fact.new_member_id or None
        if fact.new_member_id:
            new = group.member(fact.new_member_id)
            new.group_instance_id, new.client_id, new.is_in = fact.group_instance_id, old.client_id, True
            self._watch.groups.remember(fact.new_member_id, group)
        if not group.group_id:
            self._watch.note_unnamed(event)
