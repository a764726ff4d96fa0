"""The answer to `heartwheel replay --what-if`, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import to_builtins

from heartwheel.engine.replay.revocations import Revocations, what_if_revocations
from heartwheel.engine.replay.signs import SignsOfLife
from heartwheel.engine.replay.what_if import what_if, what_if_intervals
from heartwheel.front.cli.console import print_json
from heartwheel.front.cli.replay_question import INTERVAL, OF_KIND, REBALANCE, Question
from heartwheel.front.cli.replay_table import show_intervals, show_revocations, show_what_if
from heartwheel.wire.verdicts import Verdict


def answer_question(
    question: Question,
    signs: SignsOfLife,
    revocations: Revocations,
    verdicts: Sequence[Verdict],
    end_ms: int,
    *,
    json: bool,
) -> None:
    """Print the outcomes of the values in question.

    Args:
        signs: every line of the log.
        revocations: the members that were asked to give partitions back.
        verdicts: what the coordinator decided on the log, in the order of time.
        end_ms: the clock at the end of the log, epoch ms.
    """
    if question.name == REBALANCE:
        of_revocations = what_if_revocations(revocations, verdicts, question.values_ms, end_ms)
        print_json(to_builtins(of_revocations)) if json else show_revocations(of_revocations)
    elif question.name == INTERVAL:
        of_intervals = what_if_intervals(signs, verdicts, question.values_ms, end_ms)
        print_json(to_builtins(of_intervals)) if json else show_intervals(of_intervals)
    else:
        of_sessions = what_if(signs, verdicts, question.values_ms, end_ms, OF_KIND.get(question.name, ""))
        print_json(to_builtins(of_sessions)) if json else show_what_if(of_sessions)
