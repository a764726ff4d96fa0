"""Beats of a worker: they go on while it should be thought alive, and stop when it should not."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from heartwheel.settings import parse_duration_ms as parse_setting_ms
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import JOB, JOB_RUN, EventType
from heartwheel_beats import BeatsError, KafkaSender, Member, beats, member, parse_duration_ms
from heartwheel_beats.senders import HttpSender, sender_for
from support.gateway_double import GatewayDouble, wait_until


class PanicError(BaseException):
    """A crash that is no `Exception`, as extensions in Rust have it."""


def start(gateway: GatewayDouble, script: str) -> subprocess.Popen[str]:
    """Start a worker that is a script, with the gateway in its environment."""
    environment = {**os.environ, "HEARTWHEEL_BEATS_TO": gateway.url, "HEARTWHEEL_BEATS_TOKEN": "a-token"}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_a_job_is_expected_again(gateway: GatewayDouble) -> None:
    """A run beats as any worker; at its end the job does not leave, but names by when its next success must come."""
    with beats("backup", session="400ms", every="24h", grace="30m", to=gateway.url):
        wait_until(lambda: gateway.heartbeats("job") >= 2, "the run beats")
    first, last = gateway.rows[0], gateway.rows[-1]
    assert (first["client_id"], first["session_timeout_ms"]) == (JOB_RUN, 400)
    assert (last["client_id"], last["session_timeout_ms"], last.get("type")) == (JOB, 24 * 3_600_000 + 1_800_000, None)
    assert (JOB, JOB_RUN) == (member.JOB, member.JOB_RUN)


def test_a_run_that_fails_is_no_success(gateway: GatewayDouble) -> None:
    """An error, Ctrl-C too, fails the job; nothing is expected then until its next success."""
    for error in (ValueError(), KeyboardInterrupt(), SystemExit(2)):
        with pytest.raises(type(error)), beats("backup", every="24h", to=gateway.url):
            raise error
    assert gateway.failures("job") == ["ended with ValueError", "ended with KeyboardInterrupt", "exit code 2"]
    assert {row["client_id"] for row in gateway.rows} == {JOB_RUN}


def test_a_run_over_its_limit_has_failed_once(gateway: GatewayDouble) -> None:
    """It is reported when its time is over, not again, and its success counts when it comes after all."""
    with beats("backup", session="200ms", every="24h", limit="300ms", to=gateway.url):
        wait_until(lambda: gateway.failures("job"), "it has failed")
        with beats("backup", member="witness", session="100ms", to=gateway.url):
            wait_until(lambda: gateway.heartbeats("witness") >= 5, "five intervals are over")
    assert gateway.failures("job") == ["not finished within 0.3 s"]
    assert gateway.rows[-1]["client_id"] == JOB


def test_records_are_those_of_the_topic() -> None:
    """What is sent is what the engine decodes, ids with quotes and umlauts included."""
    member = Member(group_id='or"ders', member_id="jürgen-1", session_timeout_ms=30_000)
    beat, leave = decode_event(member.heartbeat()), decode_event(member.leave("x" * 5_000))
    assert (beat.type, beat.group_id, beat.member_id, beat.session_timeout_ms) == (
        EventType.HEARTBEAT, 'or"ders', "jürgen-1", 30_000
    )  # fmt: skip
    assert (leave.type, leave.member_id, len(leave.reason or "")) == (EventType.LEAVE, "jürgen-1", 200)
    failed = decode_event(member.fail("x" * 5_000))
    assert (failed.type, len(failed.failure or ""), failed.session_timeout_ms) == (EventType.LEAVE, 200, 30_000)


def test_a_block_beats_and_leaves(gateway: GatewayDouble) -> None:
    """The member beats four times a session while the block runs, and leaves at its end."""
    with beats("orders", member="a", session="200ms", to=gateway.url) as beat:
        wait_until(lambda: gateway.heartbeats("a") >= 3, "three beats have come")
    assert gateway.leaves("a") == ["done"]
    assert gateway.rows[-1]["type"] == "leave"
    assert beat.lost == 0
    assert not beat.beating


def test_a_block_that_fails_says_so(gateway: GatewayDouble) -> None:
    """The class of the error is how it failed; its text, which may be anything, is not sent."""
    with pytest.raises(ValueError, match="secret"), beats("orders", member="a", to=gateway.url):
        raise ValueError("secret")
    assert (gateway.failures("a"), gateway.leaves("a")) == (["ended with ValueError"], [])


@pytest.mark.parametrize(
    ("error", "failures", "leaves"),
    [
        (KeyboardInterrupt(), [], ["ended with KeyboardInterrupt"]),
        (SystemExit(), [], ["ended with SystemExit"]),
        (SystemExit(0), [], ["ended with SystemExit"]),
        (SystemExit(3), ["exit code 3"], []),
        (SystemExit("no such order"), ["exit code 1"], []),
        (SystemExit(["a list"]), ["exit code 1"], []),
        (SystemExit(0.0), ["exit code 1"], []),
        (PanicError(), ["ended with PanicError"], []),
        (BaseExceptionGroup("", [KeyboardInterrupt(), ValueError()]), ["ended with BaseExceptionGroup"], []),
        (BaseExceptionGroup("", [KeyboardInterrupt(), SystemExit(0)]), [], ["ended with BaseExceptionGroup"]),
        (GeneratorExit(), [], ["ended with GeneratorExit"]),
    ],
)
def test_an_end_that_was_asked_for_is_no_failure(
    error: BaseException, failures: list[str], leaves: list[str], gateway: GatewayDouble
) -> None:
    """Ctrl-C and an exit with 0 leave; an exit with another code, and any other error, has failed."""
    with pytest.raises(type(error)), beats("orders", member="a", to=gateway.url):
        raise error
    assert (gateway.failures("a"), gateway.leaves("a")) == (failures, leaves)


def test_a_loop_that_fails_says_so(gateway: GatewayDouble) -> None:
    """The same holds for `async with`; a task that was cancelled has left."""

    async def work(error: BaseException, member: str) -> None:
        async with beats("orders", member=member, to=gateway.url):
            raise error

    with pytest.raises(ValueError, match="secret"):
        asyncio.run(work(ValueError("secret"), "a"))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work(asyncio.CancelledError(), "b"))
    assert gateway.failures() == ["ended with ValueError"]
    assert gateway.leaves() == ["ended with CancelledError"]


def test_a_process_that_crashes_says_so(gateway: GatewayDouble) -> None:
    """Beats that nobody closed report the error that ended the process."""
    script = "from heartwheel_beats import beats; beats('orders', member='a').start(); raise KeyError('secret')"
    environment = {**os.environ, "HEARTWHEEL_BEATS_TO": gateway.url}
    ended = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=False)
    assert ended.returncode == 1
    assert (gateway.failures("a"), gateway.leaves("a")) == (["ended with KeyError"], [])


def test_a_function_beats_while_it_runs(gateway: GatewayDouble) -> None:
    """Each call of a decorated function is beats of its own, and what it gives back is given back."""

    @beats("orders", member="a", to=gateway.url)
    def work(number: int) -> int:
        wait_until(lambda: gateway.heartbeats("a") > len(gateway.leaves("a")), "this call has beaten")
        return number + 1

    assert (work(1), work(2)) == (2, 3)
    assert gateway.leaves("a") == ["done", "done"]


def test_an_event_loop_beats(gateway: GatewayDouble) -> None:
    """`async with` and a decorated coroutine function beat while the loop runs, and leave."""

    @beats("orders", member="b", session="200ms", to=gateway.url)
    async def work() -> None:
        while gateway.heartbeats("b") < 2:
            await asyncio.sleep(0.01)

    async def run() -> None:
        async with beats("orders", member="a", session="200ms", to=gateway.url):
            await work()
            while gateway.heartbeats("a") < 3:
                await asyncio.sleep(0.01)

    asyncio.run(run())
    assert gateway.leaves("a") == ["done"]
    assert gateway.leaves("b") == ["done"]


def test_a_loop_that_hangs_does_not_beat(gateway: GatewayDouble) -> None:
    """While the loop of an `async with` is blocked at most the beat that was under way is sent."""

    async def run() -> int:
        async with beats("orders", member="a", session="80ms", to=gateway.url):
            while gateway.heartbeats() < 2:
                await asyncio.sleep(0.01)
            before = gateway.heartbeats()
            with beats("orders", member="witness", session="80ms", to=gateway.url):
                wait_until(lambda: gateway.heartbeats("witness") >= 5, "five intervals are over")
            return gateway.heartbeats("a") - min(before, gateway.heartbeats("a"))

    assert asyncio.run(run()) <= 1


def test_beats_need_progress(gateway: GatewayDouble) -> None:
    """With `work` the beats stop when nothing is finished for so long, and begin again with the next piece."""
    with beats("orders", member="a", session="100ms", work="200ms", to=gateway.url) as beat:
        wait_until(lambda: beat._stalled, "no progress was seen")
        before = gateway.heartbeats()
        with beats("orders", member="witness", session="100ms", to=gateway.url):
            wait_until(lambda: gateway.heartbeats("witness") >= 5, "five intervals are over")
        assert gateway.heartbeats("a") == before
        beat.progress()
        wait_until(lambda: gateway.heartbeats("a") > before, "it beats again")


def test_progress_without_a_limit_is_a_mistake(gateway: GatewayDouble) -> None:
    """Who calls `progress` believes that it matters; where it does not, the first call says so."""
    with beats("orders", to=gateway.url) as beat, pytest.raises(ValueError, match="work="):
        beat.progress()


def test_a_worker_goes_on_without_a_gateway(gateway: GatewayDouble, caplog: pytest.LogCaptureFixture) -> None:
    """Lost beats are counted, logged once an outage and tried again; the worker notices nothing."""
    gateway.status = 503
    with caplog.at_level(logging.INFO, "heartwheel_beats"), beats("o", member="a", session="80ms", to=gateway.url) as b:
        wait_until(lambda: b.lost >= 3, "three beats are lost")
        gateway.status = 202
        wait_until(lambda: b.acknowledged, "one has come")
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "a beat of member a of o was lost", "member a of o sends heartbeats again"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            b'{"error":"a session timeout of 2 ms","hint":"see x"}',
            "answered 400: a session timeout of 2 ms; hint: see x",
        ),
        (b"<html>", "answered 400: <html>"),
        (b'["error"]', 'answered 400: ["error"]'),
        (b"[" * 4_000, "answered 400: [[["),
    ],
)
def test_a_refusal_reads_as_a_sentence(
    answer: bytes, words: str, gateway: GatewayDouble, caplog: pytest.LogCaptureFixture
) -> None:
    """What a gateway has against a beat is said in its words and not as JSON; whatever else answers is shown."""
    gateway.status, gateway.answer = 400, answer
    with beats("o", member="a", session="80ms", to=gateway.url) as b:
        wait_until(lambda: b.lost, "a beat is refused")
    assert words in caplog.records[0].message


@pytest.mark.parametrize("code", [0, 3])
def test_a_process_that_ends_without_a_word_does_not_leave(code: int, gateway: GatewayDouble) -> None:
    """Beats that nobody closed are no leave, as the exit code is not known, and do not keep the process from ending."""
    script = f"""
        import sys
        from heartwheel_beats import beats

        beats("orders", member="a", session="1h").start()
        job = beats("backup", every="24h").start()
        while not job.acknowledged:
            pass
        sys.exit({code})
    """
    worker = start(gateway, script)
    worker.communicate(timeout=30)
    assert worker.returncode == code
    assert (gateway.leaves(), gateway.failures("a")) == ([], [])
    assert gateway.failures("job") == ["the process ended before the job was closed"]
    assert {row.get("client_id") for row in gateway.rows if row["member_id"] == "job"} == {JOB_RUN}
    assert gateway.tokens == {"Bearer a-token"}


def test_a_generator_function_is_refused() -> None:
    """The call of one is over before its work begins, so that beats around it would say nothing."""

    def rows() -> Iterator[int]:
        yield 1

    async def loop_rows() -> AsyncIterator[int]:
        yield 1

    for function in (rows, loop_rows):
        with pytest.raises(TypeError, match=r"is a generator function.*hint: write `with beats\('orders'\):` in it"):
            beats("orders")(function)


@pytest.mark.parametrize("failure", ["", "disk full"])
def test_a_job_says_how_it_ended_when_it_can(failure: str, gateway: GatewayDouble) -> None:
    """Its last record is sent again while the gateway answers that it cannot take it."""
    gateway.status, job = 503, beats("backup", every="24h", to=gateway.url)
    job._begin()
    end = threading.Thread(target=job.fail if failure else job.close, args=(failure,))
    end.start()
    wait_until(lambda: job.lost >= 3, "it was tried again")
    gateway.status = 202
    end.join()
    assert [row.get("failure", row.get("client_id")) for row in gateway.rows] == [failure or JOB]


def test_a_record_that_is_refused_is_not_sent_again(gateway: GatewayDouble) -> None:
    """A worker's end does not wait for an answer that will be the same."""
    gateway.status, job = 401, beats("backup", every="24h", to=gateway.url)
    job._begin()
    job.close()
    assert (job.lost, job.acknowledged) == (1, 0)


def test_checks_do_not_meddle_with_a_limit(gateway: GatewayDouble, caplog: pytest.LogCaptureFixture) -> None:
    """A job over its limit has failed at once, whatever a check says before and after, and that is said once."""
    job = beats("backup", session="400ms", every="24h", limit="1ms", to=gateway.url)
    with caplog.at_level(logging.WARNING, "heartwheel_beats"):
        job.hold("check x: exit code 1", patience_s=3_600)
        with job:
            wait_until(lambda: gateway.failures("job"), "it has failed")
            for _ in range(3):
                job.go_on()
                job.hold("check x: exit code 1")
                job.go_on()
            assert job._beat() <= 0.2
    assert gateway.failures("job") == ["not finished within 0.001 s"]
    assert [row["client_id"] for row in gateway.rows if "type" not in row] == [JOB]
    assert [record.message for record in caplog.records] == [
        "member job of backup does not beat: check x: exit code 1",
        "member job of backup does not beat: not finished within 0.001 s",
    ]


def test_a_killed_process_does_not_leave(gateway: GatewayDouble) -> None:
    """Nothing of a killed worker beats on, and nobody leaves for it: it is to be expired."""
    script = "from heartwheel_beats import beats\nwith beats('orders', member='a', session='100ms'): input()"
    worker = start(gateway, script)
    wait_until(lambda: gateway.heartbeats("a"), "it beats")
    worker.send_signal(signal.SIGKILL)
    worker.communicate(timeout=30)
    before = gateway.heartbeats("a")
    with beats("orders", member="witness", session="100ms", to=gateway.url):
        wait_until(lambda: gateway.heartbeats("witness") >= 5, "five intervals are over")
    assert gateway.heartbeats("a") - before <= 1  # one may have been on its way
    assert gateway.leaves("a") == []


def test_forks_are_members_of_their_own(gateway: GatewayDouble) -> None:
    """A child neither beats nor leaves for its parent; beats it opens itself are its own, and the parent's go on."""
    script = """
        import os, sys
        from heartwheel_beats import beats

        parents = beats("web", member="parent", session="100ms").start()
        children = []
        for number in range(2):
            pid = os.fork()
            if not pid:
                assert not parents.beating
                parents.close()
                with beats("web", member=f"child-{number}", session="100ms"):
                    pass
                sys.exit(0)
            children.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
        print(codes, flush=True)
        input()
        parents.close()
    """
    worker = start(gateway, script)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "[0, 0]\n"
    assert gateway.leaves("parent") == []
    assert gateway.leaves("child-0") == gateway.leaves("child-1") == ["done"]
    before = gateway.heartbeats("parent")
    wait_until(lambda: gateway.heartbeats("parent") > before + 1, "the parent beats on")
    worker.communicate("\n", timeout=30)
    assert gateway.leaves("parent") == ["done"]


@pytest.mark.parametrize("to", ["", "gateway:8486", "ftp://gateway", "kafka://", "http://", "http://[x", "http://h:x"])
def test_wrong_addresses_are_refused(to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that cannot work is refused where it is given, not at the first beat; empty is the default."""
    monkeypatch.delenv("HEARTWHEEL_BEATS_TO", raising=False)
    if not to:
        assert isinstance(sender_for(to), HttpSender)
        return
    with pytest.raises(BeatsError):
        beats("orders", to=to)


@pytest.mark.parametrize("wrong", ["", "30", "0s", "-1s", "0.5ms", "1e3s", "30 s x", "9999999h"])
def test_durations(wrong: str) -> None:
    """A duration has a unit that is known, and is a whole number of milliseconds, at least one."""
    with pytest.raises(ValueError, match="duration"):
        parse_duration_ms(wrong)


@pytest.mark.parametrize("given", ["500ms", "30s", "1.5m", "2 h", "1d", 7, "45", "1 week", "1s 5ms"])
def test_durations_are_read_as_those_of_settings(given: str | int) -> None:
    """What a setting takes a beat takes, in the same sense, and what the one refuses the other does."""
    try:
        wanted = parse_setting_ms(given)
    except ValueError:
        with pytest.raises(ValueError, match="duration"):
            parse_duration_ms(given)
    else:
        assert parse_duration_ms(given) == wanted


def test_a_grace_needs_a_job() -> None:
    """A grace that nothing would come of is refused, and names what is missing; a job has one by default."""
    with pytest.raises(ValueError, match="so it needs --every"):
        beats("backup", grace="2h")
    assert beats("backup", every="1h", grace="2h").is_job


def test_kafka_that_is_away_loses_the_beat() -> None:
    """A sender to a Kafka that nobody reaches says so within its time, and does not end the worker."""
    with beats("orders", sender=KafkaSender("127.0.0.1:9", timeout_s=0.2)) as beat:
        wait_until(lambda: beat.lost, "the beat is lost")
    assert beat.acknowledged == 0


@pytest.mark.parametrize("long", ["30d", "25d", 2**31])
def test_duration_beyond_the_limit_is_called_too_long(long: str | int) -> None:
    """A duration that is well written and too long is told the limit, and not that it is no duration."""
    assert parse_duration_ms("24d") == 24 * 86_400_000
    with pytest.raises(ValueError, match="is too long a duration: at most 24d"):
        parse_duration_ms(long)
