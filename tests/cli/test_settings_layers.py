"""Layers: which one wins, and what each value says of its layer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from heartwheel.settings import Layer, Origin, SettingsError, env_name, load_settings

File = Callable[[str], Path]


@pytest.fixture
def file(tmp_path: Path) -> File:
    """Give a function that writes a configuration file."""

    def write(text: str) -> Path:
        path = tmp_path / "heartwheel.toml"
        path.write_text(text)
        return path

    return write


def test_later_layers_win(file: File) -> None:
    """A flag wins over the environment, that over the file, that over the default."""
    path = file("[engine]\nshards = 1\nat_risk_count = 1\n[wheel]\nsize = 4\n")
    env = {"HEARTWHEEL_ENGINE__SHARDS": "2", "HEARTWHEEL_ENGINE__AT_RISK_COUNT": "2"}
    loaded = load_settings(path, env, ["engine.shards=3"])
    engine = loaded.settings.engine
    assert (engine.shards, engine.at_risk_count, loaded.settings.wheel.size, loaded.settings.kafka.partitions) == (
        3,
        2,
        4,
        8,
    )
    assert loaded.origin["engine.shards"] == Origin(Layer.FLAG, "--set engine.shards")
    assert loaded.origin["engine.at_risk_count"] == Origin(Layer.ENVIRONMENT, "HEARTWHEEL_ENGINE__AT_RISK_COUNT")
    assert loaded.origin["wheel.size"] == Origin(Layer.FILE, str(path))
    assert loaded.origin["kafka.partitions"].layer == Layer.DEFAULT


def test_every_value_knows_its_layer() -> None:
    """Each leaf of the configuration has an origin and a value under the same path."""
    loaded = load_settings(overrides=["spark.conf.spark.ui.enabled=false"])
    assert loaded.values().keys() == loaded.origin.keys()
    assert loaded.values()["spark.conf.spark.ui.enabled"] == "false"


def test_file_is_found(file: File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is the one named, else that of the environment, else conf/heartwheel.toml where it is there."""
    monkeypatch.chdir(tmp_path)
    assert load_settings().settings.engine.shards == 4
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "heartwheel.toml").write_text("engine.shards = 5")
    assert load_settings().settings.engine.shards == 5
    assert load_settings(None, {"HEARTWHEEL_CONFIG": str(file("engine.shards = 6"))}).settings.engine.shards == 6
    assert load_settings(file("engine.shards = 7")).settings.engine.shards == 7


def test_named_file_must_be_there(tmp_path: Path) -> None:
    """A file that was asked for and is not there is a problem, not an empty configuration."""
    with pytest.raises(SettingsError, match=r"cannot read the file: No such file"):
        load_settings(tmp_path / "missing.toml")


def test_texts_stay_texts() -> None:
    """A value that wants text keeps it, also where it looks like a number; one that wants a number gets one."""
    env = {env_name("checkpoint.location"): "1", env_name("feed.jitter"): "0.5"}
    settings = load_settings(None, env, ["kafka.client.request.timeout.ms=5", "kafka.fail_on_data_loss=false"]).settings
    assert settings.checkpoint.location == "1"
    assert settings.feed.jitter == 0.5
    assert settings.kafka.client == {"request.timeout.ms": "5"}
    assert not settings.kafka.fail_on_data_loss


@pytest.mark.parametrize(
    "name_and_value",
    [
        ("HEARTWHEEL_KAFKA__CLIENT__SECURITY_PROTOCOL", "SSL"),
        ("HEARTWHEEL_KAFKA__CLIENT", '{"security.protocol": "SSL"}'),
    ],
)
def test_client_properties_from_the_environment(name_and_value: tuple[str, str]) -> None:
    """Dotted client properties can be set one by one with underscores for dots, or all at once as JSON."""
    assert load_settings(None, dict([name_and_value])).settings.kafka.client == {"security.protocol": "SSL"}


def test_dotted_keys_of_tables_need_no_quotes(file: File) -> None:
    """To TOML an unquoted dotted key is a nested table; it means the property all the same."""
    text = '[kafka.client]\nsecurity.protocol = "SSL"\n"sasl.username" = "me"\n'
    client = load_settings(file(text)).settings.kafka.client
    assert client == {"security.protocol": "SSL", "sasl.username": "me"}


def test_other_variables_are_left_alone() -> None:
    """Variables that a container platform or another tool sets do not stop heartwheel."""
    env = {"HEARTWHEEL_PORT": "tcp://10.0.0.1:80", "HEARTWHEEL_KAFKA_SERVICE_HOST": "10.0.0.1", "HEARTWHEEL_CACHE": "x"}
    assert load_settings(None, env).settings == load_settings().settings


def test_units_are_for_people_only(file: File) -> None:
    """A duration is written with a unit and held as an integer of ms; the key names no unit, the attribute does."""
    loaded = load_settings(file('engine.trigger_interval = "2s"\nengine.value_bytes_max = "2kB"\n'))
    assert loaded.settings.engine.model_dump()["trigger_interval_ms"] == 2_000
    assert loaded.settings.engine.value_bytes_max == 2_000
    assert loaded.values()["engine.trigger_interval"] == "2s"


def test_automatic_is_no_number() -> None:
    """Partitions are `auto` to people and absent in code until someone sets them."""
    assert load_settings().settings.spark.shuffle_partitions is None
    assert load_settings(overrides=["spark.shuffle_partitions=auto"]).settings.spark.shuffle_partitions is None
    assert load_settings(overrides=["spark.shuffle_partitions=3"]).settings.spark.shuffle_partitions == 3
