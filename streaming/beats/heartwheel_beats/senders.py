"""Ways to send a record: through a gateway over HTTP, or to Kafka itself."""

from __future__ import annotations

# Looked up by the first connection; a process that has begun to end can import it no more.
import encodings.idna  # noqa: F401
import http.client
import json
import os
import ssl
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from .timed import Deadline, TimedConnection, TimedTlsConnection

DEFAULT_TO: Final = "http://127.0.0.1:8486"
"""Where beats go if nothing else is said: a gateway on this machine."""

TOKEN: Final = "HEARTWHEEL_BEATS_TOKEN"  # noqa: S105 - the name of a variable
"""The variable of the environment that holds what the gateway asks for."""

TOPIC: Final = "consumer-heartbeats"
"""The topic of heartbeats, unless an address names another one."""

_ANSWER_BYTES_MAX: Final = 4_096
_ACCEPTED: Final = 202
_TOO_MANY_REQUESTS: Final = 429


class BeatsError(Exception):
    """Beats cannot be sent with this setup."""


class LostError(BeatsError):
    """A record was not acknowledged."""


class RefusedError(LostError):
    """A record was refused, and would be refused again."""


class Sender(Protocol):
    """Send records, one at a time.

    A sender may have two attributes. `timeout_s` is how long one record may take, seconds; it is lowered for the last
    record of a member. `to` is where records go, for messages.
    """

    def send(self, key: bytes, value: bytes) -> None:
        """Send one record and wait until Kafka has it.

        Raises:
            LostError: it was not acknowledged in time.
        """

    def close(self) -> None:
        """Give up what it holds."""

    def abandon(self) -> None:
        """Forget what it holds in a child after a fork, without a word to the other end."""


def sender_for(to: str | None, *, token: str | None = None, timeout_s: float = 5.0) -> Sender:
    """Make the sender that an address asks for.

    Args:
        to: `http://...`, `https://...` or `kafka://HOST:PORT,HOST:PORT[/TOPIC]`; `None` takes `$HEARTWHEEL_BEATS_TO`.
        token: what the gateway asks for; `None` takes `$HEARTWHEEL_BEATS_TOKEN`.
        timeout_s: how long one record may take, seconds.

    Raises:
        BeatsError: the address is none of these, or kafka-python is not installed.
    """
    to = to or os.environ.get("HEARTWHEEL_BEATS_TO") or DEFAULT_TO
    scheme, _, rest = to.partition("://")
    if scheme in {"http", "https"}:
        token = os.environ.get(TOKEN, "") if token is None else token
        return HttpSender(to, token=token, timeout_s=timeout_s)
    if scheme == "kafka" and rest:
        servers, _, topic = rest.partition("/")
        return KafkaSender(servers, topic or TOPIC, timeout_s=timeout_s)
    raise BeatsError(f"{to!r} is no address such as http://gateway:8486 or kafka://kafka:9092")


class HttpSender:
    """Send through a gateway, over one connection that is opened again when it breaks.

    Args:
        url: of the gateway; a path in it is kept.
        token: sent as `Authorization: Bearer`.
        timeout_s: for one record as a whole, seconds; looking up the gateway's name is bounded by the system alone.

    Raises:
        BeatsError: the address names no host.
    """

    def __init__(self, url: str, *, token: str = "", timeout_s: float = 5.0) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise BeatsError(f"the gateway's address is wrong: {error}") from None
        if not host or parts.username or parts.query:
            raise BeatsError("the gateway's address must be http:// or https://, a host, and perhaps a port and a path")
        self.to = f"{parts.scheme}://{parts.netloc}{parts.path}"
        self._path = parts.path.rstrip("/") + "/beat"
        self._headers = {"content-type": "application/json"}
        if token:
            if not (token.isascii() and token.isprintable()):
                raise BeatsError("the token must be printable ASCII")
            self._headers["authorization"] = f"Bearer {token}"
        self.timeout_s = timeout_s
        self._connection: TimedConnection | TimedTlsConnection
        if parts.scheme == "https":
            self._connection = TimedTlsConnection(host, port, context=ssl.create_default_context())
        else:
            self._connection = TimedConnection(host, port)

    def send(self, key: bytes, value: bytes) -> None:  # noqa: ARG002 - the gateway reads the group from the record
        """Post one record; a connection that the gateway has closed meanwhile is opened again, once.

        Raises:
            RefusedError: the answer says that the record is wrong.
            LostError: the answer was another one than 202, or there was none in time.
        """
        self._connection.deadline = Deadline(self.timeout_s)
        fresh = self._connection.sock is None
        try:
            self._post(value)
        except (http.client.HTTPException, OSError) as error:
            self._connection.close()
            if fresh or isinstance(error, TimeoutError):
                raise LostError(self._words(error)) from error
            try:
                self._post(value)
            except (http.client.HTTPException, OSError) as again:
                self._connection.close()
                raise LostError(self._words(again)) from again

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    abandon = close

    def _post(self, value: bytes) -> None:
        self._connection.set_timeout()
        self._connection.request("POST", self._path, value, self._headers)
        answer = self._connection.getresponse()
        words = answer.read(_ANSWER_BYTES_MAX)
        if answer.status != _ACCEPTED:
            self._connection.close()
            refused = 400 <= answer.status < 500 and answer.status != _TOO_MANY_REQUESTS
            kind = RefusedError if refused else LostError
            raise kind(f"{self.to} answered {answer.status}: {_answered(words)}")

    def _words(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer from {self.to} within {self.timeout_s:g} s"
        return f"no gateway answers at {self.to} ({_words(error)}); hint: is it up, is the address right?"


class KafkaSender:
    """Send to Kafka itself with kafka-python, which connects at the first record.

    Args:
        bootstrap: `host:port[,host:port]`.
        topic: where records go.
        timeout_s: how long one record may take, seconds.
        settings: more arguments for `KafkaProducer`, such as those for TLS and a login.

    Raises:
        BeatsError: kafka-python is not installed.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str = TOPIC,
        *,
        timeout_s: float = 5.0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            import kafka  # noqa: PLC0415 - only who beats to Kafka itself needs it
        except ImportError:
            raise BeatsError("kafka-python is not installed: pip install 'heartwheel-beats[kafka]'") from None
        self._make, self._error = kafka.KafkaProducer, kafka.errors.KafkaError
        self.to = f"Kafka at {bootstrap}"
        self._topic, self.timeout_s = topic, timeout_s
        self._settings = {
            "bootstrap_servers": bootstrap.split(","),
            "linger_ms": 0,
            "enable_idempotence": False,
            "acks": "all",
            "allow_auto_create_topics": False,
            **(settings or {}),
        }
        self._producer: Any = None

    def send(self, key: bytes, value: bytes) -> None:
        """Send one record; after a failure the next one gets a producer of its own.

        Raises:
            LostError: Kafka did not acknowledge it.
        """
        try:
            if self._producer is None:
                self._producer = self._make(**self._timeouts() | self._settings)
            self._producer.config["max_block_ms"] = self._timeouts()["max_block_ms"]
            self._producer.send(self._topic, value, key).get(self.timeout_s)
        except (self._error, OSError) as error:
            self.close()
            hint = "is the broker up, is the address right, does it ask for TLS or a login?"
            raise LostError(f"no acknowledgement from {self.to} ({_words(error)}); hint: {hint}") from error

    def close(self) -> None:
        """Close the producer; what it has not sent is given up."""
        producer, self._producer = self._producer, None
        if producer is not None:
            try:
                producer.close(timeout=min(1.0, self.timeout_s))
            except self._error:
                producer._sender.force_close()  # noqa: SLF001 - there is no public way to say it

    def _timeouts(self) -> dict[str, Any]:
        """Return what a producer may take, as `timeout_s` is now, milliseconds."""
        timeout_ms = int(self.timeout_s * 1000)
        return {
            "bootstrap_timeout_ms": timeout_ms,
            "max_block_ms": timeout_ms,
            "request_timeout_ms": timeout_ms,
            "delivery_timeout_ms": timeout_ms + 1000,
        }

    def abandon(self) -> None:
        """Forget the producer: its thread is the parent's."""
        self._producer = None


def _answered(body: bytes) -> str:
    """Return what a gateway answered, for people: its error and its hint, or as it stands if it has none."""
    text = body.decode("utf-8", "replace")
    try:
        problem = json.loads(text)
        text = f"{problem['error']}; hint: {problem['hint']}"
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return text[:300]


def _words(error: Exception) -> str:
    """Return an error for people; its class only where it has no words of its own."""
    words = getattr(error, "strerror", None) or str(error)
    return (words or type(error).__name__)[:300]
