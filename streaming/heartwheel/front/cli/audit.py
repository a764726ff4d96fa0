"""`heartwheel audit`: compare the job's output with what its log implies."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from heartwheel.front.cli.audit_broker_log import audit_broker_log, parsed_zone
from heartwheel.front.cli.audit_report import show_report
from heartwheel.front.cli.console import (
    AsJson,
    BootstrapFlag,
    ConfigFile,
    SetFlags,
    load,
)
from heartwheel.front.cli.files import read_file, write_file
from heartwheel.front.cli.options import parsed_duration
from heartwheel.settings.objective import lateness_objective_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heartwheel.proof.audit import Audit, AuditConfig
    from heartwheel.proof.audit.feed import AuditedTopic
    from heartwheel.proof.audit.run import AuditResult
    from heartwheel.settings import Settings

_LAST_MS: Final = 253_402_300_799_999
_BATCH_MS: Final = 10_000
_OFF_MS: Final = -1

_FileOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Read this file instead of the topic.")]


def _bound(text: str) -> int:
    return _OFF_MS if text == "off" else parsed_duration(text)


def audit(
    *,
    until: Annotated[
        int | None,
        typer.Option(
            metavar="MS", min=0, max=_LAST_MS, help="Judge up to this time, epoch ms; by default the job's clock."
        ),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Continue from this file if it exists, and replace it.")
    ] = None,
    late: Annotated[
        int | None,
        typer.Option(
            parser=_bound,
            metavar="DURATION",
            help="Bound of P2 while the job runs, or off; by default from the configuration.",
        ),
    ] = None,
    allow_late: Annotated[
        list[str] | None,
        typer.Option(metavar="FROM..TO", help="The job was down then, epoch ms; can be repeated."),
    ] = None,
    run_of: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="RUN", help="A run of this job, if other jobs tick, too; can be repeated."),
    ] = None,
    judge_strays: Annotated[bool, typer.Option("--judge-strays", help="Judge stray groups like the others.")] = False,
    examples: Annotated[int, typer.Option(metavar="N", min=0, help="How many findings of a kind are shown.")] = 10,
    heartbeats: _FileOption = None,
    expirations: _FileOption = None,
    triggers: _FileOption = None,
    rejects: _FileOption = None,
    status: _FileOption = None,
    broker_log: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Compare it with this log of a broker instead; can be repeated, - is stdin."),
    ] = None,
    utc_offset: Annotated[
        str, typer.Option(metavar="ZONE", help="With --broker-log: the zone of its times that name none.")
    ] = "+00:00",
    tolerance: Annotated[
        int | None,
        typer.Option(
            parser=parsed_duration,
            metavar="DURATION",
            help="With --broker-log: how far apart times that agree may be.",
        ),
    ] = None,
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
    json: AsJson = False,
) -> None:
    """Derive every verdict again from the heartbeats, by other code, and compare it with what was written.

    It finds verdicts that are false, missed, wrong, written twice differently, late, out of order or forged, and
    rejects that are missing or forged. Exit code 1 if there is any. Audit with the configuration of the job.

    It judges up to the clock that the job's own status rows prove. With --state each run continues where the last one
    stopped, so that heartbeats may be deleted in between.

    With --broker-log the expirations are compared with what Kafka's own coordinator has logged, for engines that are
    fed with the heartbeats of real groups: which agree, which are too early or too late, only here, or only there.

    For example:

        heartwheel audit --bootstrap-servers kafka:9092

        heartwheel audit --state /var/lib/heartwheel/audit.state --json

        heartwheel audit --heartbeats beats.jsonl --expirations gone.jsonl --triggers rebalances.jsonl --until 17000000

        heartwheel audit --broker-log kafka-0.log --broker-log kafka-1.log --bootstrap-servers kafka:9092
    """
    from heartwheel.proof.audit import Audit

    settings = load(config, set_, kafka__bootstrap_servers=bootstrap_servers).settings
    if broker_log:
        agrees = audit_broker_log(
            broker_log,
            settings,
            expirations=expirations,
            triggers=triggers,
            zone=parsed_zone(utc_offset),
            tolerance_ms=tolerance,
            examples=examples,
            as_json=json,
        )
        if not agrees:
            raise typer.Exit(1)
        return
    files = _files(heartbeats, expirations, triggers, rejects, status)
    has_status = not files or status is not None
    audited = audit_config(
        settings,
        late_ms_max=_late_ms(late, settings, has_status=has_status),
        runs=tuple(run_of or ()),
        judge_strays=judge_strays,
        judge_rejects=not files or rejects is not None,
        examples_max=examples,
    )
    # Millions of small objects and hardly a cycle: Python's default frequency of cycle searches costs a tenth of the
    # time.
    gc.set_threshold(200_000, 20, 100)
    run = Audit(audited, snapshot=read_file(state) if state is not None and state.exists() else None)
    for pause in allow_late or ():
        run.paused(*_interval(pause))
    outcome = _run_files(run, files, settings, until) if files else _run_topics(run, settings, until)
    if state is not None:
        write_file(state, outcome.snapshot)
    show_report(outcome.report, as_json=json)
    if not outcome.report.ok:
        raise typer.Exit(1)


def _run_topics(run: Audit, settings: Settings, until: int | None) -> AuditResult:
    from heartwheel.kafka.bounded import OversizedBatch, warn_of_oversized
    from heartwheel.kafka.client import WATCHED_TIMEOUT_MS, reader
    from heartwheel.proof.audit import run as auditing
    from heartwheel.proof.audit.topics import TopicLog

    kafka, shards = settings.kafka, settings.engine.shards

    def note(batch: OversizedBatch) -> None:
        warn_of_oversized(batch)
        if batch.topic == kafka.topics.heartbeats:
            run.unread(batch.partition, batch.first_offset, batch.last_offset)

    with reader(
        kafka.bootstrap_servers,
        kafka.client,
        doing="audit the topics",
        connect_timeout_ms=WATCHED_TIMEOUT_MS,
        on_oversized=note,
    ) as consumer:
        log = TopicLog(consumer, kafka.topics.model_dump(), run, shards)
        return auditing.run(run, log, shards=shards, until_ms=until)


def _run_files(run: Audit, files: Mapping[AuditedTopic, Path], settings: Settings, until: int | None) -> AuditResult:
    from heartwheel.proof.audit import run as auditing
    from heartwheel.proof.audit.files import FileLog

    return auditing.run(run, FileLog(files, run), shards=settings.engine.shards, until_ms=until)


def _files(*paths: Path | None) -> dict[AuditedTopic, Path]:
    from heartwheel.proof.audit.feed import AuditedTopic

    files = {source: path for source, path in zip(_ORDER, paths, strict=True) if path is not None}
    missing = [f"--{name}" for name in _ORDER[:3] if name not in files]
    if files and missing:
        raise typer.BadParameter(
            "is missing: the files of heartbeats, expirations and triggers are read together",
            param_hint=" ".join(missing),
        )
    return {AuditedTopic(name): path for name, path in files.items()}


_ORDER: Final = ("heartbeats", "expirations", "triggers", "rejects", "status")


def audit_config(settings: Settings, **given: object) -> AuditConfig:
    """Return an audit's configuration for a job with these settings; `given` overrides it."""
    from msgspec import convert

    from heartwheel.proof.audit import AuditConfig
    from heartwheel.wire.group_settings import split_override

    engine, rules = settings.engine, settings.coordinator
    own = {"/".join(split_override(key)): value for key, value in rules.group_overrides.items()}
    return convert(
        {
            **rules.model_dump(by_alias=False),
            "group_overrides": own,
            "members_per_group_max": engine.members_per_group_max,
            "value_bytes_max": engine.value_bytes_max,
            "tick_ms": settings.wheel.tick_ms,
            "outage_min_ms": engine.outage_min_ms,
            "feeds": tuple(engine.feeds.split(",")) if engine.feeds else (),
            **given,
        },
        AuditConfig,
    )


def _late_ms(late: int | None, settings: Settings, *, has_status: bool) -> int | None:
    """Return the bound of P2, ms; without status rows nothing shows that the job ran, so it must be given."""
    if late == _OFF_MS or (late is None and not has_status):
        return None
    return late if late is not None else lateness_objective_ms(settings, batch_ms=_BATCH_MS)


def _interval(text: str) -> tuple[int, int]:
    start, _, end = text.partition("..")
    if not (start.isdecimal() and end.isdecimal() and int(start) <= int(end)):
        raise typer.BadParameter(f"{text}: write FROM..TO, both in epoch ms", param_hint="--allow-late")
    return int(start), int(end)
