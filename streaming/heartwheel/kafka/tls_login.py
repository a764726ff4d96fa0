"""Give up at once where a broker's refusal is final: a login or a certificate does not get better by asking again.

kafka-python looks for a first broker until its time is up, whatever the brokers say: a wrong password would be tried a
dozen times, which locks accounts, and end as "nobody answers". `test_wrong_login_is_tried_once` holds it, and
tests/project/test_private_parts.py names the internals of the library that this needs.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, Final

from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError, UnsupportedSaslMechanismError
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from heartwheel.base.errors import HeartwheelError

_OF_LOGIN: Final = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError)
# A broker that is going down ends handshakes so too.
_PASSING: Final = ("EOF", "reset", "timed out")
_OF_TLS: Final = ("[SSL", "CERTIFICATE", "certificate")


class TlsError(HeartwheelError, ConnectionError):
    """Client and broker do not agree on TLS, in OpenSSL's words."""


def refusal_of(error: object) -> Exception | None:
    """Return whether an error of a connection is final, and as which one it should be raised.

    Args:
        error: what ended the connection.

    Returns:
        A login's error as it is, one of TLS or of its files as `TlsError`; `None` where another try may help.
    """
    if isinstance(error, Exception) and isinstance(error, _OF_LOGIN):
        return error
    if isinstance(error, (FileNotFoundError, PermissionError)):
        return TlsError(f"a file of its settings cannot be read: {error.strerror or error}")
    words = str(error)
    of_tls = isinstance(error, (ssl.SSLError, KafkaConnectionError)) and any(word in words for word in _OF_TLS)
    if not of_tls or any(word in words for word in _PASSING):
        return None
    return TlsError(words.partition("Handshake failed: ")[2] or words)


class FirmManager(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python is untyped
    """kafka-python's manager, but it ends the search for a first broker once each has refused for good."""

    def __init__(self, net: Any, **given: Any) -> None:
        super().__init__(net, **given)
        self.refusals: dict[Any, Exception] = {}

    def get_connection(self, node_id: Any, *args: Any, **kwargs: Any) -> Any:
        """Open or find a connection, and note how its start ends."""
        connection = super().get_connection(node_id, *args, **kwargs)
        if not self.bootstrapped:
            connection.init_future.add_errback(lambda error: self._note(node_id, error))
        return connection

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        transport = await super()._build_transport(node, timeout_at=timeout_at)
        transport._sock_recv = _with_last_words(transport._sock_recv)  # noqa: SLF001 - there is no public way
        return transport

    def _note(self, node_id: Any, error: object) -> None:
        refusal = refusal_of(error)
        if refusal is None or self.bootstrapped:
            return
        self.refusals[node_id] = refusal
        if len(self.refusals) == len(self.cluster.bootstrap_brokers()):
            self.closed = True  # ends the search; sockets are closed by `heartwheel.kafka.client.connect`
            self._bootstrap_wakeup.notify()


def _with_last_words(receive: Callable[[], tuple[bytes, Any]]) -> Callable[[], tuple[bytes, Any]]:
    """Wrap a read so that bytes that arrive together with an error are returned; the next read returns the error.

    A broker answers why it refuses a login, and then closes the connection. A slow client gets both in one read, of
    which kafka-python would drop the answer: the login would look like a broker that is down
    (`test_last_words_are_heard`).

    Args:
        receive: returns the bytes that arrived, and the error that ended the connection.
    """

    def receive_data() -> tuple[bytes, Any]:
        data, error = receive()
        return (data, None) if data else (data, error)

    return receive_data


def firm_client(**given: Any) -> tuple[Any, FirmManager]:
    """Build the network client that kafka-python's clients share, with a manager that gives up in time."""
    net = NetworkSelector(**given)
    manager = FirmManager(net, **given)
    return KafkaNetClient(net=net, manager=manager, **given), manager
