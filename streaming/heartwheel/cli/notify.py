"""`heartwheel notify`: tell a webhook who was expired, and who came back."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from heartwheel.cli.console import BootstrapFlag, ConfigFile, SetFlags, load
from heartwheel.cli.signals import stopped_by_signals
from heartwheel.errors import HeartwheelError
from heartwheel.plain import plain_json
from heartwheel.settings import Problem, Settings, SettingsError, env_name, parse_duration_ms

if TYPE_CHECKING:
    from heartwheel.notify.delivery import DeliveryResult
    from heartwheel.notify.message import Message


_CREATE: Final = "heartwheel topics --create, or name them in [kafka.topics]"


def _duration(text: str) -> int:
    try:
        return parse_duration_ms(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def notify(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be posted, one JSON object a line; keep nothing.")
    ] = False,
    since: Annotated[
        int | None,
        typer.Option(parser=_duration, metavar="TIME", help="At the first start, begin so long ago, such as 1h."),
    ] = None,
    state_dir: Annotated[
        str | None, typer.Option(metavar="PATH", help="Positions and open incidents (notify.state_dir).")
    ] = None,
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Post to a webhook who was expired from which group and who came back, until SIGTERM or Ctrl-C.

    One incident a group: opened at the first expiration, updated as more come, closed when all are back. It goes on
    where it stopped; what could not be delivered is retried. The address is notify.url, best set in the environment.
    docs/webhook.md describes the messages and how to verify them.

    For example:

        HEARTWHEEL_NOTIFY__URL=https://chat.example/hook heartwheel notify --bootstrap-servers kafka:9092

        heartwheel notify --dry-run --since 1h
    """
    settings = load(config, set_, kafka__bootstrap_servers=bootstrap_servers, notify__state_dir=state_dir).settings
    from heartwheel.cli.run import log_to_stderr
    from heartwheel.wall_clock import wall_ms

    log_to_stderr()
    keys = () if dry_run else _keys(settings)
    _require_topics(settings)
    since_ms = None if since is None else wall_ms() - since
    if dry_run:
        _print_only(settings, since_ms)
    else:
        _post(settings, keys, since_ms)


def _require_topics(settings: Settings) -> None:
    """Look whether the topics are there: a name that is wrong would otherwise be silence for ever."""
    from heartwheel.kafka.client import WATCHED_TIMEOUT_MS, KafkaUnreachableError
    from heartwheel.kafka.topics import describe_topics

    bootstrap, names, properties = settings.kafka.bootstrap_servers, settings.kafka.topics, settings.kafka.client
    wanted = [names.expirations, names.triggers]
    with contextlib.suppress(KafkaUnreachableError):  # it may come later: the notifier waits for it
        found = describe_topics(bootstrap, wanted, properties=properties, connect_timeout_ms=WATCHED_TIMEOUT_MS)
        missing = [name for name in wanted if name not in found]
        if missing:
            raise HeartwheelError(f"topics are missing at {bootstrap}: {', '.join(missing)}", hint=_CREATE)


def _post(settings: Settings, keys: tuple[bytes, ...], since_ms: int | None) -> None:
    import logging

    from heartwheel.notify.delivery import Delivery
    from heartwheel.notify.notifier import Notifier
    from heartwheel.notify.store import Store
    from heartwheel.wall_clock import wall_ms

    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every address, and that may be a secret
    if not keys:
        logging.getLogger("heartwheel").warning("messages are not signed: notify.secret is empty")
    store = Store(Path(settings.notify.state_dir))
    with store.locked(), Delivery(settings.notify.url, keys, timeout_ms=settings.notify.timeout_ms) as delivery:

        def post(message: Message) -> DeliveryResult:
            return delivery.post(message, now_ms=wall_ms())

        notifier = Notifier(settings, post, store=store, since_ms=since_ms)
        with stopped_by_signals(notifier.stop):
            notifier.run()


def _keys(settings: Settings) -> tuple[bytes, ...]:
    """Read the keys, and tell everything that is missing at once."""
    from heartwheel.notify.delivery import AddressError, parse_address
    from heartwheel.notify.signature import SecretError, parse_secrets

    problems: list[Problem] = []
    keys: tuple[bytes, ...] = ()
    if not settings.notify.url:
        hint = f"set {env_name('notify.url')} in the environment, or try --dry-run"
        problems.append(Problem("notify.url", "is empty: there is no address to post to", hint=hint))
    else:
        try:
            parse_address(settings.notify.url)
        except AddressError as error:
            problems.append(Problem("notify.url", str(error)))
    try:
        keys = parse_secrets(settings.notify.secret)
    except SecretError as error:
        problems.append(Problem("notify.secret", str(error), hint=error.hint or ""))
    if problems:
        raise SettingsError(problems)
    return keys


def _print_only(settings: Settings, since_ms: int | None) -> None:
    from heartwheel.notify.delivery import DeliveryResult, DeliveryStatus
    from heartwheel.notify.notifier import Notifier

    def show(message: Message) -> DeliveryResult:
        typer.echo(plain_json(message.body))
        return DeliveryResult(DeliveryStatus.DELIVERED)

    notifier = Notifier(settings, show, store=None, since_ms=since_ms)
    with stopped_by_signals(notifier.stop):
        notifier.run()
