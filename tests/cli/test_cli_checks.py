"""What `doctor` finds: every state of the machine it can meet is rated rightly, with a hint where something is bad."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest

from heartwheel.engine.runtime.driver.session import archive_file
from heartwheel.front.cli.assumption_checks import (
    check_short_outages,
    name_unmeasured,
    rate_acks,
    rate_skew,
    shortest_session_ms,
)
from heartwheel.front.cli.broker_checks import rate_clock, rate_durability
from heartwheel.front.cli.checks import (
    DoctorCheck,
    Status,
    check_checkpoint,
    check_class_archive,
    check_jars,
    check_java,
    check_memory,
    check_packages,
    check_private_files,
)
from heartwheel.front.cli.tap_checks import rate_request_logs
from heartwheel.front.cli.version_check import rate_kafka_version
from heartwheel.kafka.broker.jars import default_cache_dir, locked_jars
from heartwheel.kafka.topics import TopicState
from heartwheel.settings import Settings, load_settings
from heartwheel.sources.tap.cost import cost_in_words


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Give the default configuration with a checkpoint below the test's folder."""
    return load_settings(overrides=[f"checkpoint.location={tmp_path / 'checkpoint'}"]).settings


def owned_by(settings: Settings, text: str) -> DoctorCheck:
    """Check a checkpoint whose owner's file has this text."""
    root = Path(settings.checkpoint.location)
    root.mkdir()
    (root / "heartwheel.json").write_text(text)
    return check_checkpoint(settings)


def owner(**changes: object) -> str:
    """Write the owner's file of the default configuration, with changes."""
    return json.dumps({"format": 4, "shards": 4, "topic": "consumer-heartbeats", "shuffle_partitions": 2} | changes)


def test_new_checkpoint_is_fine(settings: Settings) -> None:
    """A folder that is not there yet, under one that can be written, is a good checkpoint; nothing is created."""
    assert check_checkpoint(settings).status is Status.OK
    assert not Path(settings.checkpoint.location).exists()


def test_own_checkpoint_is_fine(settings: Settings) -> None:
    """A checkpoint of this format, number of shards and topic is accepted."""
    found = owned_by(settings, owner())
    assert found.status is Status.OK
    assert found.detail.endswith("has format 4 and 4 shards")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (owner(shards=8), "the checkpoint has 8"),
        (owner(topic="other"), "the checkpoint has other"),
        (owner(format=99), "format 99"),
        ("{}", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"format": 1,', "cannot be read"),
    ],
)
def test_foreign_checkpoint_is_bad(settings: Settings, text: str, words: str) -> None:
    """F6: a checkpoint of another configuration, a newer format or a broken file is refused by name."""
    check = owned_by(settings, text)
    assert check.status is Status.BAD
    assert words in check.detail
    assert check.hint


def test_checkpoint_of_another_job_is_bad(settings: Settings) -> None:
    """A Spark checkpoint without our file belongs to somebody else."""
    (Path(settings.checkpoint.location) / "offsets").mkdir(parents=True)
    assert check_checkpoint(settings).status is Status.BAD


def test_checkpoint_below_a_file_is_bad(settings: Settings) -> None:
    """A location that cannot become a folder is bad."""
    Path(settings.checkpoint.location).write_text("a file")
    assert check_checkpoint(settings).status is Status.BAD


def test_remote_checkpoint_is_left_to_spark() -> None:
    """An address that only Spark can reach is skipped, not guessed at."""
    remote = load_settings(overrides=["checkpoint.location=hdfs://name/heartwheel"]).settings
    assert check_checkpoint(remote).status is Status.SKIPPED


@pytest.mark.parametrize("scheme", ["s3a", "s3", "gs", "wasbs", "unheard-of"])
def test_a_store_that_cannot_rename_in_one_step_is_warned_of(scheme: str) -> None:
    """There nothing keeps two jobs on one checkpoint apart."""
    check = check_checkpoint(load_settings(overrides=[f"checkpoint.location={scheme}://bucket/heartwheel"]).settings)
    assert (check.status, check.detail.partition(" ")[0]) == (Status.WARN, f"{scheme}://")
    assert "second job" in check.hint


@pytest.mark.parametrize(
    ("skew_ms", "session_ms", "status"),
    [
        (None, 6_000, "skipped"),
        (0, 6_000, "ok"),
        (999, 6_000, "ok"),
        (1_000, 6_000, "warn"),
        (399, 600, "ok"),
        (400, 600, "warn"),
    ],
)
def test_clocks_of_brokers_that_are_apart_are_a_warning(skew_ms: int | None, session_ms: int, status: str) -> None:
    """A new leader lets time jump or stand: from a second on, or from what a living member has left of its session."""
    assert rate_skew(skew_ms, session_ms).status == status


def test_the_bound_of_the_clocks_is_named() -> None:
    """The bound is the shortest session less the time between two heartbeats, which is a third of it."""
    assert "from 4000 ms on a living member may be expired (the shortest session is 6s" in rate_skew(7, 6_000).detail


def test_the_shortest_session_is_that_of_any_kind_of_group() -> None:
    """Each kind of group has a setting of its own, and single groups may have theirs."""
    assert shortest_session_ms(load_settings().settings) == 6_000
    share = ["coordinator.group_share_session_timeout=3s"]
    assert shortest_session_ms(load_settings(overrides=share).settings) == 3_000
    own = [f"coordinator.group_overrides.g/consumer.{it}" for it in ("session.timeout=2s", "assignment.interval=1s")]
    own += share
    assert shortest_session_ms(load_settings(overrides=own).settings) == 2_000


@pytest.mark.parametrize(("least", "status"), [("3s", "ok"), ("3999ms", "ok"), ("4s", "warn")])
def test_outages_that_expire_the_living_are_warned_of(least: str, status: str) -> None:
    """A member that beats every 2 s in a session of 6 s outlasts an outage of less than 4 s."""
    check = check_short_outages(load_settings(overrides=[f"engine.outage_min={least}"]).settings)
    assert (check.status, bool(check.hint)) == (status, status == "warn")


@pytest.mark.parametrize(
    ("replicas", "least", "status"), [(3, "1", "ok"), (1, "2", "ok"), (3, "2", "skipped"), (2, "2", "skipped")]
)
def test_acks_of_members_are_named_where_they_matter(replicas: int, least: str, status: str) -> None:
    """Ticks need `min.insync.replicas`; heartbeats that do not are written where ticks are not."""
    check = rate_acks(TopicState("beats", 4, replicas, {"min.insync.replicas": least}))
    assert (check.status, "acks=all in every producer" in check.hint) == (status, status == "skipped")


def test_what_cannot_be_measured_is_named_with_its_number() -> None:
    """Feeds are named only where there are some; the numbers are those of docs/guarantees.md."""
    assert "feeds" not in name_unmeasured(load_settings().settings).detail
    detail = name_unmeasured(load_settings(overrides=["engine.feeds=tap-1,tap-2"]).settings).detail
    assert "feeds (tap-1,tap-2) know of a new partition within ten minutes (2)" in detail
    assert "read their brokers' own logs, too: heartwheel tap --broker-log (8)" in detail


def test_every_way_to_expire_a_living_member_is_checked_or_named() -> None:
    """A new partition that is used too soon, and a member that alone is cut off, stand in docs/guarantees.md, too."""
    detail = name_unmeasured(load_settings().settings).detail
    assert "no producer uses a new partition before the job knows it, seconds after it was added (2)" in detail
    assert "no member alone is cut off from Kafka for a whole session (4)" in detail


@pytest.mark.parametrize(
    ("replicas", "settings", "words"),
    [
        (3, {}, ""),
        (1, {}, "replication factor 1"),
        (3, {"min.insync.replicas": "1"}, "min.insync.replicas is 1 of 3: a heartbeat is lost with one broker"),
        (3, {"min.insync.replicas": "3"}, "cannot be written while one broker is away"),
        (3, {"unclean.leader.election.enable": "true"}, "unclean.leader.election.enable is true"),
        (3, {"cleanup.policy": "compact"}, "cleanup.policy is compact, should be delete"),
        (3, {"retention.ms": "60000"}, "retention.ms is 60000"),
    ],
)
def test_a_cluster_that_may_lose_heartbeats_is_warned_of(replicas: int, settings: dict[str, str], words: str) -> None:
    """Acknowledged heartbeats that a cluster loses are silence: each way is named."""
    right = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false", "cleanup.policy": "delete"}
    check = rate_durability(TopicState("beats", 4, replicas, right | settings))
    assert check.status is (Status.WARN if words else Status.OK)
    assert words in check.detail


@pytest.mark.parametrize(
    ("offset_ms", "status"),
    [(0, Status.OK), (2_001, Status.OK), (-2_001, Status.OK), (2_002, Status.WARN), (-3_600_000, Status.WARN)],
)
def test_clocks_that_differ_are_a_warning(offset_ms: float, status: Status) -> None:
    """No verdict depends on the driver's clock; a difference of more than two seconds is seen in the figures."""
    assert rate_clock(offset_ms, 1.5).status is status


@pytest.mark.parametrize(("free_kib", "status"), [(2**21, Status.OK), (2**21 - 1, Status.WARN)])
def test_memory_is_compared(settings: Settings, tmp_path: Path, free_kib: int, status: Status) -> None:
    """Less free memory than the driver may take is a warning, just enough is not."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal: 9 kB\nMemAvailable:   {free_kib} kB\n")
    assert check_memory(settings, meminfo).status is status


def test_memory_may_be_unknown(settings: Settings, tmp_path: Path) -> None:
    """A system that does not tell its free memory is skipped."""
    assert check_memory(settings, tmp_path / "missing").status is Status.SKIPPED


def test_java_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Java the check is bad and says what to install."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    check = check_java()
    assert check.status is Status.BAD
    assert "install Java" in check.hint


def test_packages_are_those_required(monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed packages satisfy the project; a wrong and an absent one are named."""
    assert check_packages().status is Status.OK
    monkeypatch.setattr(metadata, "requires", lambda _: ["numpy>=99", "no-such-package", "pytest; extra == 'test'"])
    check = check_packages()
    assert check.status is Status.BAD
    assert "needs >=99" in check.detail
    assert "no-such-package is not installed" in check.detail
    assert "pytest" not in check.detail


def test_missing_jars_are_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Jars that are not in the cache are fetched later, so they are a warning and nothing is fetched now."""
    monkeypatch.setenv("HEARTWHEEL_CACHE", str(tmp_path))
    monkeypatch.setenv("MAVEN_LOCAL_REPO", str(tmp_path / "none"))
    checks = list(check_jars())
    assert {check.status for check in checks} == {Status.WARN}
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_pyspark_that_the_job_does_not_run_on_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a job would refuse at its start is one line of the table, and the other checks go on."""
    monkeypatch.setattr("heartwheel.kafka.broker.jars.installed_spark", lambda: "3.5.6")
    (spark, broker) = check_jars()
    assert (spark.name, spark.status, broker.name) == ("jars of spark", Status.BAD, "jars of broker")
    assert "3.5.6" in spark.detail
    assert check_class_archive(Settings()).status is Status.SKIPPED


def test_files_with_secrets_are_looked_at(tmp_path: Path) -> None:
    """What others can read or change is a warning with the command, what is not there is bad; a group may read."""
    users, tokens = tmp_path / "users", tmp_path / "tokens"
    for file in (users, tokens):
        file.touch()
    named = {"dashboard": {"users_file": str(users)}, "gateway": {"access_file": str(tokens)}}
    settings = Settings.model_validate(named)
    users.chmod(0o640)
    for mode, status in ((0o600, Status.OK), (0o644, Status.WARN), (0o620, Status.WARN)):
        tokens.chmod(mode)
        found = {check.name: check for check in check_private_files(settings)}
        assert found["gateway.access_file"].status is status
        assert found["dashboard.users_file"].status is Status.OK
    assert found["gateway.access_file"].hint == f"chmod 600 {tokens}"
    tokens.unlink()
    assert [check.status for check in check_private_files(settings)] == [Status.BAD, Status.OK]
    assert list(check_private_files(Settings())) == []


def test_archive_of_classes_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the archive a start only takes longer, so that is no fault; a cluster's JVMs have no use for it."""
    monkeypatch.setenv("HEARTWHEEL_CACHE", str(tmp_path))
    missing = check_class_archive(Settings())
    assert (missing.status, "make classes" in missing.hint) == (Status.SKIPPED, True)
    file = archive_file([default_cache_dir() / jar.name for jar in locked_jars("spark")])
    file.parent.mkdir()
    file.touch()
    assert check_class_archive(Settings()).status is Status.OK
    file.chmod(0o666)
    shared = check_class_archive(Settings())
    assert (shared.status, "go-w" in shared.hint) == (Status.WARN, True)
    file.chmod(0o644)
    yarn = load_settings(overrides=["spark.master=yarn", "checkpoint.shared=true", "spark.shuffle_partitions=2"])
    assert check_class_archive(yarn.settings).status is Status.SKIPPED


@pytest.mark.parametrize(
    ("levels", "feeds", "status", "words"),
    [
        ({1: "INFO"}, "", Status.OK, "off at every broker"),
        ({1: "DEBUG", 2: "INFO"}, "tap", Status.OK, "on at 1, for taps"),
        ({1: "DEBUG", 2: "TRACE"}, "", Status.WARN, "on at 1, 2, though no feed is trusted"),
        ({1: "INFO"}, "tap", Status.WARN, "off at every broker"),
    ],
)
def test_request_log_says_its_price(levels: dict[int, str], feeds: str, status: Status, words: str) -> None:
    """A broker that writes down its requests pays for each of them, and `doctor` says how much."""
    check = rate_request_logs(levels, feeds=feeds)
    assert check.status is status
    assert words in check.detail
    assert (cost_in_words() in check.detail) == ("DEBUG" in levels.values())
    assert bool(check.hint) == (status is Status.WARN)


@pytest.mark.parametrize(
    ("versions", "configured", "detail", "hint"),
    [
        ({1: "4.4", 2: "4.4"}, "4.4", "Kafka 4.4 or newer at every broker", ""),
        ({2: "4.3", 1: "4.3"}, "4.4", "Kafka 4.3 or older at 1, 2, but", 'set coordinator.kafka_version = "4.3"'),
        ({1: "4.4"}, "4.3", "Kafka 4.4 or newer at 1, but", 'set coordinator.kafka_version = "4.4"'),
        ({1: "4.3", 2: "4.4"}, "4.3", "Kafka 4.4 or newer at 2, but", "when all brokers have the same version"),
    ],
)
def test_a_kafka_version_that_the_brokers_do_not_have_is_named(
    versions: dict[int, str], configured: str, detail: str, hint: str
) -> None:
    """Some rules about groups follow the setting, so it must be that of the brokers; `doctor` names which are not."""
    check = rate_kafka_version(versions, configured=configured)
    assert check.status is (Status.WARN if hint else Status.OK)
    assert check.detail.startswith(detail)
    assert check.hint.endswith(hint)
