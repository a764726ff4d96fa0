"""`heartwheel explain --page`: the pages of the dashboard, for a broker's log."""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING, Final

import typer
from rich.text import Text

from heartwheel.front.cli.console import stderr, stdout
from heartwheel.front.cli.explain_output import check_found, say_what_was_read, say_zone
from heartwheel.front.cli.extras import require

if TYPE_CHECKING:
    from heartwheel.settings import Settings
    from heartwheel.sources.explain.wanted import Wanted
    from heartwheel.sources.watch.log_source import LogSource

_EVENTS_AT_ONCE: Final = 1_000


def show_page(source: LogSource, wanted: Wanted, settings: Settings, *, follow: bool, open_browser: bool) -> None:
    """Serve the page while the logs are read, and after that until Ctrl-C."""
    require("page", "heartwheel explain --page")
    from heartwheel.front.cli.dashboard import log_access, warn
    from heartwheel.front.cli.signals import serve_until, stopped_by_signals
    from heartwheel.sources.explain.page import LogPage
    from heartwheel.sources.explain.scan import Scanned

    log_access(settings.dashboard)
    over, scanned = threading.Event(), Scanned()
    with (
        stopped_by_signals(over.set),
        LogPage(settings, source.names, whole=not wanted.members, follows=follow) as shown,
    ):
        stdout().print(Text(shown.url, style="bold cyan"))
        stderr().print("reading; Ctrl-C ends it")
        warn(settings.dashboard)
        if open_browser:
            typer.launch(shown.url)
        joined = wanted.noting(shown.returned) if wanted.narrows else shown.joined
        if follow:
            for events in source.follow(scanned, lambda: not over.is_set(), joined):
                shown.take([event for event in events if wanted.takes(event)], scanned)
            if not over.is_set():
                shown.ended(scanned)
        else:
            found = source.explain(scanned, joined=joined)
            while some := list(islice((event for event in found if wanted.takes(event)), _EVENTS_AT_ONCE)):
                shown.take(some, scanned)
                if over.is_set():
                    return
            shown.take([], scanned)
        say_what_was_read(scanned, unknown=False)
        say_zone(source.files, source.zone)
        if not follow:
            check_found(wanted, scanned)
        serve_until(over, shown, "the page")
