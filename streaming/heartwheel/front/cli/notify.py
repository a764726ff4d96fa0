"""`heartwheel notify`: report expired and returned members to a webhook."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.plain import plain_json
from heartwheel.front.cli.console import BootstrapFlag, ConfigFile, SetFlags, load
from heartwheel.front.cli.options import parsed_duration
from heartwheel.front.cli.signals import stopped_by_signals
from heartwheel.settings import SettingProblem, Settings, SettingsError, env_name

if TYPE_CHECKING:
    from heartwheel.readers.notify.delivery import DeliveryResult
    from heartwheel.readers.notify.dispatcher import Post
    from heartwheel.readers.notify.message import Message


_CREATE: Final = "heartwheel topics --create, or name them in [kafka.topics]"


def notify(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be posted, one JSON object a line; keep nothing.")
    ] = False,
    since: Annotated[
        int | None,
        typer.Option(parser=parsed_duration, metavar="TIME", help="At the first start, begin so long ago, such as 1h."),
    ] = None,
    state_dir: Annotated[
        str | None, typer.Option(metavar="PATH", help="Positions and open incidents (notify.state_dir).")
    ] = None,
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Post to a webhook who was expired from which group and who came back, until SIGTERM or Ctrl-C.

    One incident per group: opened at the first expiration, updated as more come, closed when all are back. It continues
    where it stopped; messages that could not be delivered are retried. The address is notify.url, best set in the
    environment. docs/webhook.md describes the messages and how to verify them.

    For example:

        HEARTWHEEL_NOTIFY__URL=https://chat.example/hook heartwheel notify --bootstrap-servers kafka:9092

        heartwheel notify --dry-run --since 1h
    """
    settings = load(config, set_, kafka__bootstrap_servers=bootstrap_servers, notify__state_dir=state_dir).settings
    from heartwheel.base.wall_clock import wall_ms
    from heartwheel.front.cli.run import log_to_stderr

    log_to_stderr()
    keys = () if dry_run else keys_of(settings)
    _require_topics(settings)
    since_ms = None if since is None else wall_ms() - since
    if dry_run:
        _print_only(settings, since_ms)
    else:
        _post(settings, keys, since_ms)


def _require_topics(settings: Settings) -> None:
    """Check whether the topics exist: with a wrong name the notifier would be silent for ever."""
    from heartwheel.kafka.client import WATCHED_TIMEOUT_MS, KafkaUnreachableError
    from heartwheel.kafka.topics import describe_topics

    bootstrap, names, properties = settings.kafka.bootstrap_servers, settings.kafka.topics, settings.kafka.client
    wanted = [names.expirations, names.triggers]
    with contextlib.suppress(KafkaUnreachableError):  # Kafka may come later: the notifier waits for it
        found = describe_topics(bootstrap, wanted, properties=properties, connect_timeout_ms=WATCHED_TIMEOUT_MS)
        missing = [name for name in wanted if name not in found]
        if missing:
            raise HeartwheelError(f"topics are missing at {bootstrap}: {', '.join(missing)}", hint=_CREATE)


def _post(settings: Settings, keys: tuple[bytes, ...], since_ms: int | None) -> None:
    import logging

    from heartwheel.readers.notify.notifier import Notifier
    from heartwheel.readers.notify.store import Store

    if not keys:
        logging.getLogger("heartwheel").warning("messages are not signed: notify.secret is empty")
    store = Store(Path(settings.notify.state_dir))
    with store.locked(), posting(settings, keys) as post:
        notifier = Notifier(settings, post, store=store, since_ms=since_ms)
        with stopped_by_signals(notifier.stop):
            notifier.run()


def keys_of(settings: Settings) -> tuple[bytes, ...]:
    """Return the keys, or report all missing settings at once."""
    from heartwheel.readers.notify.delivery import AddressError, parse_address
    from heartwheel.readers.notify.signature import SecretError, parse_secrets

    problems: list[SettingProblem] = []
    keys: tuple[bytes, ...] = ()
    if not settings.notify.url:
        hint = f"set {env_name('notify.url')} in the environment, or try --dry-run"
        problems.append(SettingProblem("notify.url", "is empty: there is no address to post to", hint=hint))
    else:
        try:
            parse_address(settings.notify.url)
        except AddressError as error:
            problems.append(SettingProblem("notify.url", str(error)))
    try:
        keys = _pager_key(settings) if settings.notify.kind != "webhook" else parse_secrets(settings.notify.secret)
    except SecretError as error:
        problems.append(SettingProblem("notify.secret", str(error), hint=error.hint or ""))
    if problems:
        raise SettingsError(problems)
    return keys


def _pager_key(settings: Settings) -> tuple[bytes, ...]:
    """Return the key of a pager, which is sent as it is."""
    from heartwheel.readers.notify.signature import SecretError

    key = settings.notify.secret.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise SecretError("is no key of one word", hint=f"set it to the {settings.notify.kind} key that takes events")
    return (key.encode(),)


@contextlib.contextmanager
def posting(settings: Settings, keys: tuple[bytes, ...]) -> Iterator[Post]:
    """Yield what posts messages, in the form that the configuration names."""
    from heartwheel.base.wall_clock import wall_ms
    from heartwheel.readers.notify.delivery import Delivery
    from heartwheel.readers.notify.pagers import PAGERS

    wanted = settings.notify
    with Delivery(wanted.url, keys, timeout_ms=wanted.timeout_ms, pager=PAGERS.get(wanted.kind)) as delivery:
        yield lambda message: delivery.post(message, now_ms=wall_ms())


def _print_only(settings: Settings, since_ms: int | None) -> None:
    from heartwheel.readers.notify.delivery import DeliveryResult, DeliveryStatus
    from heartwheel.readers.notify.notifier import Notifier

    def show(message: Message) -> DeliveryResult:
        typer.echo(plain_json(message.body))
        return DeliveryResult(DeliveryStatus.DELIVERED)

    notifier = Notifier(settings, show, store=None, since_ms=since_ms)
    with stopped_by_signals(notifier.stop):
        notifier.run()
