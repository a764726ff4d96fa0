"""The command: what it refuses, and in which words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heartwheel.front.cli.app import run
from heartwheel.kafka.broker.embedded import EmbeddedKafka


def test_everything_that_is_missing_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No address and a weak secret: both with their paths and what to do, exit code 2, and the secret unseen."""
    monkeypatch.setenv("HEARTWHEEL_NOTIFY__SECRET", "weak-one")
    assert run(["notify"]) == 2
    printed = capsys.readouterr().err
    for words in ("notify.url: is empty", "HEARTWHEEL_NOTIFY__URL", "notify.secret: has a key of 8 bytes", "whsec_"):
        assert words in printed
    assert "weak-one" not in printed


def test_addresses_are_secrets(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An address that cannot be used is refused without being shown, and no secret may stand on a command line."""
    monkeypatch.setenv("HEARTWHEEL_NOTIFY__URL", "ftp://top-secret")
    assert run(["notify", "--set", "notify.secret=whsec_top-secret"]) == 2
    printed = capsys.readouterr().err
    assert "must be an address that begins with https:// or http://" in printed
    assert "is a secret, and a command line can be read" in printed
    assert "top-secret" not in printed


@pytest.mark.parametrize("address", ["https://top-secret:99999999/hook", "https://[top-secret/", "http:///top-secret"])
def test_an_address_that_is_none_is_refused_at_the_start(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such an address would end the notifier at its first message; it is refused with its path, unseen, exit code 2."""
    monkeypatch.setenv("HEARTWHEEL_NOTIFY__URL", address)
    monkeypatch.setenv("HEARTWHEEL_NOTIFY__SECRET", "weak-one")
    assert run(["notify"]) == 2
    printed = capsys.readouterr().err
    assert "notify.url: is no address" in printed
    assert "top-secret" not in printed


@pytest.mark.kafka
def test_missing_topics_are_named(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that is wrong would be silence for ever: it is refused at the start."""
    name = topics("expirations")
    flags = ["--bootstrap-servers", kafka_broker.bootstrap, "--set", f"kafka.topics.expirations={name}"]
    assert run(["notify", "--dry-run", *flags]) == 1
    printed = capsys.readouterr().err
    assert name in printed
    assert "heartwheel topics --create" in printed
