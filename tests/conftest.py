"""What more than one room needs: a real broker and a browser a test run, and topics that no other test has seen."""

from __future__ import annotations

import itertools
import logging
import os
import threading
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest
from hypothesis import Phase, settings
from playwright.sync_api import Browser

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.browser import chromium
from support.memory import excess, peak_mib
from support.threads import left_threads, started_for_the_run

# A client that outlives a broker by a second writes dozens of lines; tests look at results, not at its log.
logging.getLogger("kafka").setLevel(logging.CRITICAL)

# A busy machine makes single examples slow; speed is what benchmarks show. A failing example is printed, to be run
# again.
settings.register_profile("heartwheel", deadline=None, print_blob=True)
# With this one a test finds the same in every run, and does not look for the smallest example: mutation/sandbox.py.
settings.register_profile(
    "mutants", deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("heartwheel")

# Every JVM of Spark that a test starts, in any way, uses its first compiler alone: it ends before the second one has
# paid for itself. And nobody opens the page that Spark would serve. A small JVM before each puts its command together.
os.environ["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=1 -Dspark.ui.enabled=false"
os.environ["SPARK_LAUNCHER_OPTS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_numbers = itertools.count(1)

_browsers: Final[list[tuple[ExitStack, Browser]]] = []
"""The Chromium of the tests, and what ends it, while it runs."""


def pytest_configure(config: pytest.Config) -> None:
    """Let sockets be collected: kafka-python drops one at every failed connect, and any later test may find it."""
    for kind in ("socket.socket", "ssl.SSLSocket"):
        config.addinivalue_line("filterwarnings", f"ignore:unclosed <{kind}:ResourceWarning")  # within tests
        warnings.filterwarnings("ignore", f"unclosed <{kind}", ResourceWarning)  # between and after them


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    """Let what a fixture of the whole run starts go on from file to file."""
    if fixturedef.scope != "session":
        return (yield)
    with started_for_the_run():
        return (yield)


@pytest.fixture(scope="module", autouse=True)
def no_thread_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a file of which a thread goes on: it would do to the tests of other files what nobody could explain.

    Files with a Spark, a broker or a browser are left out: what they start has threads of its own.
    """
    before = threading.enumerate()
    yield
    tests = [each for each in request.session.items if each.path == request.node.path]
    if any(each.get_closest_marker(mark) for each in tests for mark in ("spark", "kafka", "ui")):
        return
    if left := left_threads(before):
        pytest.fail(f"threads of {request.node.name} go on after its last test: {', '.join(left)}")


@pytest.fixture(scope="module", autouse=True)
def memory_is_bounded(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the file during which the process of the tests grows beyond its bound: something keeps what it used."""
    before_mib = peak_mib()
    yield
    if words := excess(before_mib, peak_mib()):
        pytest.fail(f"{request.node.name}: {words}")


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[EmbeddedKafka]:
    """Run one broker for the whole test run; a test that kills or pauses a broker starts its own."""
    with EmbeddedKafka() as broker:
        yield broker


@pytest.fixture(scope="module")
def browser() -> Browser:
    """Return the Chromium that files of one lane share; each test has tabs of its own."""
    if not _browsers:
        running = ExitStack()
        _browsers.append((running, running.enter_context(chromium())))
    return _browsers[0][1]


# As long as Playwright runs, asyncio.run() fails in its thread.
@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End Chromium before a file that has no tests of the page."""
    stays = nextitem is not None and (nextitem.path == item.path or nextitem.get_closest_marker("ui") is not None)
    if _browsers and not stays:
        _browsers.pop()[0].close()


@pytest.fixture
def topics(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Give a function that makes a topic name of this test alone: `topics("heartbeats")`; it creates nothing."""
    test = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:80]
    number = next(_numbers)
    return lambda name: f"{name}-{test}-{number}"
