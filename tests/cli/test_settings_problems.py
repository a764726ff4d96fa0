"""Wrong configurations: everything that is wrong is reported at once, with path, value, layer and hint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heartwheel.front.cli.app import run
from heartwheel.settings import MASK, Layer, SettingProblem, SettingsError, load_settings
from heartwheel.settings.units import unit_hint


def problems_of(
    *overrides: str, file: Path | None = None, env: dict[str, str] | None = None
) -> dict[str, SettingProblem]:
    """Load a wrong configuration and give its problems by path."""
    with pytest.raises(SettingsError) as caught:
        load_settings(file, env, overrides)
    return {problem.path: problem for problem in caught.value.problems}


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    """Typos, types, bounds and impossible combinations of three layers are reported in one go, each with its layer."""
    file = tmp_path / "bad.toml"
    file.write_text('[engine]\nshard = 4\ntick_interval = "-1s"\n[wheel]\nsize = "20"\n')
    env = {"HEARTWHEEL_ENGINE__TRIGGER_INTERVAL": "0"}
    found = problems_of("coordinator.group_min_session_timeout=1h", file=file, env=env)
    assert {path: problem.origin.layer for path, problem in found.items()} == {
        "engine.shard": Layer.FILE,
        "engine.tick_interval": Layer.FILE,
        "wheel.size": Layer.FILE,
        "engine.trigger_interval": Layer.ENVIRONMENT,
        "coordinator.group_min_session_timeout": Layer.FLAG,
    }


SHARED = ["spark.shuffle_partitions=2", "checkpoint.shared=true"]
UNGUARDED = ["spark.conf.spark.authenticate=false"]
LOGIN = [
    "kafka.client.security.protocol=SASL_SSL",
    "kafka.client.sasl.mechanism=PLAIN",
    "kafka.client.sasl.username=u",
    "kafka.client.sasl.password=file:SECRET",
]
CERTIFICATE = [
    "kafka.client.security.protocol=SSL",
    "kafka.client.ssl.key.location=SECRET",
    "kafka.client.ssl.certificate.location=SECRET",
]


@pytest.fixture
def secret_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `SECRET` be a file with something in it."""
    (tmp_path / "SECRET").write_text("hunter2\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("override", "meant"),
    [
        ("engine.shard=1", "`shards`"),
        ("engine.trigger_interval_ms=1", "`trigger_interval`"),
        ("kafak.partitions=1", "`kafka.partitions`"),
        ("kafka.topics.heartbeat=x", "`heartbeats`"),
        ("shards=1", "`engine.shards`"),
        ("kafka.client.sasl.pasword=x", "`sasl.password`"),
    ],
)
def test_typos_get_a_suggestion(override: str, meant: str) -> None:
    """A key that does not exist is refused with the key that was probably meant."""
    (problem,) = problems_of(override).values()
    assert meant in problem.hint


def test_single_underscores_are_noticed() -> None:
    """A variable that lacks only the second underscore would be ignored in silence; it is refused instead."""
    problem = problems_of(env={"HEARTWHEEL_ENGINE_SHARDS": "4"})["engine.shards"]
    assert "HEARTWHEEL_ENGINE__SHARDS" in problem.hint


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("engine.shards=eight", "must be a whole number"),
        ("engine.shards=true", "must be a whole number"),
        ("engine.shards=0", "must be at least 1"),
        ("engine.shards=1025", "must be at most 1024"),
        ("engine.trigger_interval=0s", "must be at least 100ms"),
        ("engine.trigger_interval=soon", "must be a duration"),
        ("engine.tick_interval=-5", "must be at least 50"),
        ("engine.value_bytes_max=1B", "must be at least 1KiB"),
        ("wheel.size=1", "must be at least 2"),
        ("feed.jitter=2", "must be at most 1"),
        ("feed.protocol=modern", "must be 'presence', 'classic' or 'mix'"),
        ("kafka.bootstrap_servers=kafka", "must be `host:port`"),
        ("kafka.bootstrap_servers=a:1, b:2", "must be `host:port`"),
        ("kafka.topics.status=a b", "must be a topic name"),
        ("kafka.fail_on_data_loss=maybe", "must be true or false"),
        ("spark.shuffle_partitions=0", "must be at least 1"),
        ("spark.shuffle_partitions=some", "must be a whole number"),
        ("spark.master=here", "must be a Spark master"),
        ("engine.shards", "needs a value"),
        ("kafka.client=x", "is a table"),
    ],
)
def test_wrong_values_are_put_into_words(override: str, words: str) -> None:
    """A wrong value says in plain words, and in the unit it was written in, what would be right."""
    (problem,) = problems_of(override).values()
    assert words in problem.message


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        (["coordinator.group_min_session_timeout=2h"], "coordinator.group_min_session_timeout"),
        (["coordinator.group_max_session_timeout=40s"], "coordinator.default_session_timeout"),
        (["feed.session_timeout=5s", "feed.heartbeat_interval=1s"], "feed.session_timeout"),
        (["feed.heartbeat_interval=5800ms"], "feed.heartbeat_interval"),
        (["wheel.tick=2s"], "wheel.tick"),
        (["spark.shuffle_partitions=9"], "spark.shuffle_partitions"),
        (["spark.master=yarn", "checkpoint.shared=true"], "spark.shuffle_partitions"),
        (["spark.master=spark://m:7077", "spark.shuffle_partitions=2", *UNGUARDED], "checkpoint.location"),
        (["spark.master=spark://m:7077", *SHARED], "spark.auth_secret"),
        (
            ["spark.master=spark://m:7077", *SHARED, "spark.conf.spark.network.crypto.enabled=false"],
            "spark.auth_secret",
        ),
        (["spark.master=yarn", *SHARED, *LOGIN, *UNGUARDED], "kafka.client"),
        (["spark.master=submitted", *SHARED, *LOGIN, "spark.conf.spark.network.crypto.enabled=false"], "kafka.client"),
        (["spark.master=k8s://h", *SHARED, "spark.auth_secret=file:SECRET", *CERTIFICATE, *UNGUARDED], "kafka.client"),
        (
            ["spark.master=submitted", "spark.shuffle_partitions=2", "checkpoint.location=file:///c"],
            "checkpoint.location",
        ),
        (["engine.members_per_shard_max=10"], "engine.members_per_group_max"),
        (["kafka.topics.rejects=heartwheel-status"], "kafka.topics.rejects"),
        (["kafka.client.bootstrap.servers=a:1"], "kafka.client.bootstrap.servers"),
        (["spark.conf.spark.sql.shuffle.partitions=2"], "spark.conf.spark.sql.shuffle.partitions"),
    ],
)
@pytest.mark.usefixtures("secret_file")
def test_impossible_combinations_are_refused(overrides: list[str], path: str) -> None:
    """Values that are fine alone and cannot work together are refused, and one key is blamed with a hint."""
    (problem,) = problems_of(*overrides).values()
    assert problem.path == path
    assert problem.hint


@pytest.mark.parametrize(
    "overrides",
    [
        [
            "coordinator.group_min_session_timeout=30m",
            "coordinator.default_session_timeout=30m",
            "feed.session_timeout=30m",
        ],
        ["feed.heartbeat_interval=5400ms"],
        ["wheel.tick=200ms"],
        ["engine.tick_interval=749ms"],
        ["spark.shuffle_partitions=4"],
        ["spark.master=yarn", "spark.shuffle_partitions=4", "checkpoint.shared=true"],
        ["spark.master=spark://m:7077", *SHARED, *UNGUARDED],
        ["spark.master=spark://m:7077", *SHARED, "spark.auth_secret=file:SECRET", *LOGIN],
        ["spark.master=yarn", *SHARED, *LOGIN],
        [*LOGIN, *UNGUARDED],
        ["spark.master=yarn", "spark.shuffle_partitions=4", "checkpoint.location=hdfs://name/heartwheel"],
        ["engine.members_per_shard_max=100000"],
    ],
)
@pytest.mark.usefixtures("secret_file")
def test_bounds_of_combinations_are_allowed(overrides: list[str]) -> None:
    """The last value that works is not refused."""
    load_settings(overrides=overrides)


def test_a_wrong_value_breaks_no_other_rule() -> None:
    """A key that is wrong by itself does not also show up in combinations computed from its default."""
    assert problems_of("wheel.tick=2s", "engine.trigger_interval=x").keys() == {"engine.trigger_interval"}


def test_secrets_are_in_no_error(tmp_path: Path) -> None:
    """A password that is wrong by its type, or stands under a wrong key, is masked in the error."""
    file = tmp_path / "bad.toml"
    file.write_text("[kafka.client]\n'sasl.password' = 4711\n[kafak.client]\n'sasl.password' = 'hunter2'\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(file)
    assert MASK in str(caught.value)
    assert "4711" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_secrets_are_in_no_repr() -> None:
    """Settings that end up in a log or a traceback do not give away passwords."""
    overrides = {"kafka.client.sasl.password": "hunter2", "spark.conf.spark.ssl.keyPassword": "hunter2"}
    assert "hunter2" not in repr(load_settings(overrides=overrides))


@pytest.mark.parametrize("text", ["[engine\n", "engine = 4\n", "engine.shards = 08\n", "kafka.client = 4\n"])
def test_broken_files_are_problems(tmp_path: Path, text: str) -> None:
    """A file that is no TOML, or has a value where a section belongs, is refused with its name."""
    file = tmp_path / "bad.toml"
    file.write_text(text)
    (problem,) = problems_of(file=file).values()
    assert problem.origin.name == str(file)
    assert problem.hint


def test_a_file_that_is_no_text_is_a_problem(tmp_path: Path) -> None:
    """Quotes would not mend it: the byte and the encoding are named."""
    file = tmp_path / "bad.toml"
    file.write_bytes(b"a\xff")
    (problem,) = problems_of(file=file).values()
    assert (problem.message, problem.hint) == ("is not text in UTF-8: byte 0xff at 1", "save it as UTF-8")


def test_a_bare_number_too_small_for_a_duration_is_told_in_its_unit() -> None:
    """Who writes 5 for five seconds is told how to write it."""
    problem = problems_of("engine.trigger_interval=5")["engine.trigger_interval"]
    assert problem.message == "must be at least 100ms"
    assert problem.hint == unit_hint("5")


@pytest.mark.parametrize(
    "command",
    [
        ["feed", "--duration", "5"],
        ["notify", "--since", "5"],
        ["audit", "--late", "5"],
        ["audit", "--tolerance", "5", "--broker-log", "server.log"],
        ["replay", "log.jsonl", "--what-if", "session_timeout=5"],
        ["beat", "--group", "g", "--session", "5", "--", "true"],
        ["demo", "--duration", "5"],
        ["config", "--set", "engine.trigger_interval=5"],
    ],
)
def test_a_duration_without_a_unit_has_one_hint(capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    """Wherever it is written; milliseconds are not offered where they were just refused."""
    assert run(command) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert re.search(r"hint: write (5|60)s for seconds", said)
    assert "a whole number of ms" not in said


def test_a_demo_of_milliseconds_is_refused() -> None:
    """`--duration 5` means five seconds to a person, and five milliseconds would show nothing."""
    assert "write" in problems_of("demo.duration=5")["demo.duration"].hint
    assert load_settings(overrides=["demo.duration=0"]).settings.demo.duration_ms == 0


def test_a_key_that_does_not_exist_is_no_secret() -> None:
    """A typo that sounds like a secret is refused as a typo, with its value masked."""
    problem = problems_of("nosuch.key=hunter2")["nosuch.key"]
    assert problem.message == "is not a setting"
    assert problem.value == MASK


@pytest.mark.parametrize("value", ["1", "1.5", "30s", "true"])
def test_a_number_is_no_key(value: str) -> None:
    """A typo whose last word is `key` is shown with a value that no key can have; a password may be a number."""
    assert problems_of(f"nosuch.key={value}")["nosuch.key"].value == f'"{value}"'
    assert problems_of(f"nosuch.password={value}")["nosuch.password"].value == MASK


def test_a_typo_in_the_section_is_told_with_the_whole_key() -> None:
    """The key that was meant is named if it is in another section; else the sections are listed."""
    assert problems_of("engin.shards=3")["engin.shards"].hint == "did you mean `engine.shards`?"
    assert problems_of("nosuch.key=1")["nosuch.key"].hint.startswith("known here: canary, checkpoint")
