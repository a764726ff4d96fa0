"""Durations and sizes: what people write is what the engine counts, and both ways round."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartwheel.settings import format_duration, format_size, parse_duration_ms, parse_size_bytes
from heartwheel.settings.models import CoordinatorSettings


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("500ms", 500), ("45s", 45_000), ("1.5m", 90_000), ("2 h", 7_200_000), ("1d", 86_400_000), ("0.1s", 100), (7, 7)],
)
def test_durations_are_read(text: str | int, duration_ms: int) -> None:
    """A duration is a number and a unit; a bare integer counts milliseconds."""
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize("text", ["", "45", "s", "-1s", "1 week", "1s 5ms", "0.5ms", "1e3s", "1M", 1.5, True, None])
def test_no_duration_is_guessed(text: object) -> None:
    """What is no duration, has no unit, or is no whole number of ms is refused, never rounded or guessed."""
    with pytest.raises(ValueError, match="must be a duration"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("64MB", 64_000_000), ("1MiB", 1 << 20), ("1mib", 1 << 20), ("2 KB", 2_000), (5, 5)]
)
def test_sizes_are_read(text: str | int, size_bytes: int) -> None:
    """Decimal and binary units differ, upper and lower case do not."""
    assert parse_size_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "64", "MB", "1.5B", "-1MB", "1TBB", True, None])
def test_no_size_is_guessed(text: object) -> None:
    """What is no size is refused."""
    with pytest.raises(ValueError, match="must be a size"):
        parse_size_bytes(text)


@given(st.integers(0, 10**12))
def test_durations_survive_being_written(duration_ms: int) -> None:
    """A duration that is written for people reads back as the same number of ms."""
    assert parse_duration_ms(format_duration(duration_ms)) == duration_ms


@given(st.integers(0, 10**15))
def test_sizes_survive_being_written(size_bytes: int) -> None:
    """A size that is written for people reads back as the same number of bytes."""
    assert parse_size_bytes(format_size(size_bytes)) == size_bytes


@pytest.mark.parametrize("written", ["4.3", 4.3])
def test_a_version_is_read_with_and_without_quotation_marks(written: str | float) -> None:
    """TOML, and so `--set coordinator.kafka_version=4.3`, reads a bare version as a number."""
    assert CoordinatorSettings.model_validate({"kafka_version": written}).kafka_version == "4.3"
