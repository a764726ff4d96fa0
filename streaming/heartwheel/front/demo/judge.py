"""Read the topics back, and judge all that the engine wrote: presence groups by one rule, all others by the audit's."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from heartwheel.front.demo.verdicts_judged import Derivation, OutputRow, VerdictsJudged, judge_verdicts
from heartwheel.kafka.readback import read_topic
from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.members.judge import Judgement, SentHeartbeats, decode_expiration, judge
from heartwheel.proof.members.truth import read_truth
from heartwheel.settings import Settings
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

_expiration = msgspec.json.Decoder(ExpirationRow).decode
_trigger = msgspec.json.Decoder(TriggerRow).decode


class DemoJudgement(NamedTuple):
    """What both judges say.

    Args:
        presence: of the expirations of presence groups, and of the truth about who was killed.
        verdicts: of everything else, and of the rebalances.
        lateness_ms: how long after its deadline each expiration was in Kafka, ms.
    """

    presence: Judgement
    verdicts: VerdictsJudged
    lateness_ms: list[int]

    @property
    def ok(self) -> bool:
        """Return whether everything was as promised; that the log was read whole is another question."""
        return self.verdicts.ok and not (self.presence.false or self.presence.missed or self.presence.conflicting)


def judge_topics(settings: Settings, truth_file: Path, audited: AuditConfig, *, until_ms: int) -> DemoJudgement:
    """Read the topics back and judge.

    Args:
        settings: where Kafka is, and what its topics are called; the canary's groups are left out.
        truth_file: what the feeder wrote.
        audited: what the job was set to.
        until_ms: verdicts that become true later may still be under way and are not missed, epoch ms.

    Raises:
        KafkaUnreachableError: if nobody answers.
        KafkaRefusedError: if a topic is missing or stalls.
    """
    bootstrap, topics, left_out = settings.kafka.bootstrap_servers, settings.kafka.topics, settings.canary.group_prefix
    expired = list(read_topic(bootstrap, topics.expirations))
    written = [OutputRow(_expiration(record.value or b""), record.append_ms) for record in expired]
    written += (
        OutputRow(_trigger(each.value or b""), each.append_ms) for each in read_topic(bootstrap, topics.triggers)
    )
    # Every record that a verdict is based on was there before it.
    heartbeats = list(read_topic(bootstrap, topics.heartbeats))
    beats = SentHeartbeats(settings.coordinator.default_session_timeout_ms, left_out=left_out)
    for record in heartbeats:
        beats.add(record)
    derivation = Derivation(audited, left_out=left_out)
    derivation.read(heartbeats)
    known = {
        each.row.id: each.append_ms - each.row.deadline_ms
        for each in reversed(written)
        if isinstance(each.row, ExpirationRow) and derivation.is_judged(each.row.group_id)
    }
    return DemoJudgement(
        judge(read_truth(truth_file), beats, map(decode_expiration, expired), until_ms=until_ms),
        judge_verdicts(derivation, written, until_ms=until_ms, is_presence=beats.judged),
        list(known.values()),
    )
