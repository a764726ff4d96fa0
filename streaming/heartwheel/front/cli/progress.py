"""Progress of long tasks: a bar or a spinner for a person, one plain line for a log."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from heartwheel.front.cli.console import stderr


def fetch_shown(set_name: str) -> list[Path]:
    """Fetch a set of jars into the cache with a bar; print nothing if they are all there.

    Args:
        set_name: `broker` or `spark`.

    Raises:
        JarError: jars cannot be fetched; it names all of them.
    """
    from heartwheel.kafka.broker.jars import fetch_jars

    console = stderr()
    columns = (TextColumn("fetching the jars of {task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TransferSpeedColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(set_name, visible=False)
        shown = False

        def show(done_bytes: int, total_bytes: int) -> None:
            nonlocal shown
            if done_bytes < total_bytes and not shown:
                shown = True
                if not console.is_terminal:
                    missing = (total_bytes - done_bytes) / 1e6
                    console.print(f"fetching the jars of {set_name}, {missing:.1f} MB ...")
            progress.update(task, completed=done_bytes, total=total_bytes, visible=shown)

        return fetch_jars(set_name, progress=show)


@contextlib.contextmanager
def phase(words: str) -> Iterator[Callable[[str], None]]:
    """Show an activity for the length of a `with` block: a spinner for a person, a line for a log.

    Args:
        words: the activity, in words.

    Yields:
        A function that changes the words.
    """
    console = stderr()
    if not console.is_terminal:

        def say(words: str) -> None:
            console.print(f"{words} ...")

        say(words)
        yield say
        return
    with console.status(words) as status:
        yield status.update
