"""The configuration: what can be set, in which layer, and everything that is wrong with it at once."""

from heartwheel.settings.keys import FIELDS, env_name
from heartwheel.settings.load import CONFIG_VARIABLE, DEFAULT_CONFIG, LoadedSettings, load_settings
from heartwheel.settings.models import (
    CheckpointSettings,
    CoordinatorSettings,
    DemoSettings,
    EngineSettings,
    FeedSettings,
    KafkaSettings,
    Settings,
    SparkSettings,
    TopicSettings,
    WheelSettings,
)
from heartwheel.settings.problems import Layer, Origin, SettingProblem, SettingsError
from heartwheel.settings.secret import MASK, holds_secret, is_secret, masked, shown
from heartwheel.settings.servers import DashboardSettings, GatewaySettings, NotifySettings
from heartwheel.settings.units import format_duration, format_size, parse_duration_ms, parse_size_bytes

__all__ = [
    "CONFIG_VARIABLE",
    "DEFAULT_CONFIG",
    "FIELDS",
    "MASK",
    "CheckpointSettings",
    "CoordinatorSettings",
    "DashboardSettings",
    "DemoSettings",
    "EngineSettings",
    "FeedSettings",
    "GatewaySettings",
    "KafkaSettings",
    "Layer",
    "LoadedSettings",
    "NotifySettings",
    "Origin",
    "SettingProblem",
    "Settings",
    "SettingsError",
    "SparkSettings",
    "TopicSettings",
    "WheelSettings",
    "env_name",
    "format_duration",
    "format_size",
    "holds_secret",
    "is_secret",
    "load_settings",
    "masked",
    "parse_duration_ms",
    "parse_size_bytes",
    "shown",
]
