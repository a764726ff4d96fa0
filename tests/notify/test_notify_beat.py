"""The file that probes look at: as long as the notifier goes on it is young, whatever does not answer."""

from __future__ import annotations

from pathlib import Path

from heartwheel.readers.notify.delivery import DeliveryResult, DeliveryStatus
from heartwheel.readers.notify.notifier import Notifier
from heartwheel.readers.notify.store import Store
from heartwheel.settings import NotifySettings, Settings
from support.output_rows import T0, expired, topic_rows

BEAT_MS = 5_000


def test_it_says_that_it_goes_on(tmp_path: Path) -> None:
    """Each turn touches the file if the last time is long ago, or the clock went back; so does each slow answer."""
    alive = tmp_path / "alive"
    now_ms = T0
    posted = 0

    def post(_: object) -> DeliveryResult:
        nonlocal now_ms, posted
        assert alive.exists()
        alive.unlink()
        now_ms += BEAT_MS
        posted += 1
        return DeliveryResult(DeliveryStatus.DELIVERED)

    settings = Settings(notify=NotifySettings(gather_ms=0))
    notifier = Notifier(settings, post, store=Store(tmp_path), since_ms=T0, clock=lambda: now_ms)
    for step_ms, touched in ((0, True), (BEAT_MS - 1, False), (1, True), (-60_000, True)):
        now_ms += step_ms
        notifier._turn()
        assert alive.exists() is touched
        alive.unlink(missing_ok=True)
    now_ms += 60_000 + BEAT_MS
    notifier._dispatcher.take(topic_rows(expired("a", "m"), expired("b", "m")), now_ms=now_ms)
    notifier._turn()
    assert posted == 2
    assert alive.exists()
