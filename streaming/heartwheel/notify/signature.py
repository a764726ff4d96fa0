"""Sign what is posted, so that a receiver knows who sent it, that nobody changed it, and that it is no replay.

The scheme and the names of the headers are those of the Standard Webhooks specification, 1.0.0: HMAC-SHA256 over
`id.timestamp.body`, in base64 behind `v1,`. Libraries that verify it exist for most languages.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Final

from heartwheel.errors import HeartwheelError

ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"

TOLERANCE_MS: Final = 300_000
"""Most that a receiver's clock and the sender's may differ; an older message is refused as a replay."""

KEY_BYTES_MIN: Final = 24
"""Shortest key that the specification allows, bytes."""

_PREFIX: Final = "whsec_"
_TIMESTAMP_DIGITS_MAX: Final = 15
"""Most digits of a timestamp that are looked at: 2^53 ms in seconds has thirteen."""


class SecretError(HeartwheelError):
    """A secret cannot be used; the message does not show it."""


class SignatureError(HeartwheelError):
    """Tell why a message is not to be trusted."""


def parse_secrets(text: str) -> tuple[bytes, ...]:
    """Read keys, one a line: `whsec_` and base64, or any text of at least 24 bytes.

    With two of them every message is signed twice, so that a receiver can change from one to the other at leisure.

    Args:
        text: the lines; empty ones do not count, and without any nothing is signed.

    Raises:
        SecretError: if one of them cannot be used.
    """
    return tuple(_key(line) for line in map(str.strip, text.splitlines()) if line)


_HOW: Final = "make one: python3 -c 'import base64, os; print(\"whsec_\" + base64.b64encode(os.urandom(32)).decode())'"


def _key(line: str) -> bytes:
    try:
        key = line.encode(errors="surrogateescape")  # the environment may hold bytes that are no text
    except UnicodeEncodeError:
        raise SecretError("is no text", hint=_HOW) from None
    if line.startswith(_PREFIX):
        try:
            key = base64.b64decode(line.removeprefix(_PREFIX), validate=True)
        except ValueError:
            raise SecretError(f"is not base64 behind {_PREFIX}", hint=_HOW) from None
    if len(key) < KEY_BYTES_MIN:
        raise SecretError(f"has a key of {len(key)} bytes, at least {KEY_BYTES_MIN} are needed", hint=_HOW)
    return key


def signed_headers(message_id: str, body: bytes, keys: Sequence[bytes], *, now_ms: int) -> dict[str, str]:
    """Make the headers of one attempt to deliver a message.

    Args:
        message_id: the same for every attempt: the receiver drops what it has seen.
        body: exactly the bytes that are sent.
        keys: sign with each; without any the signature is left out.
        now_ms: when the attempt is made, epoch ms; each attempt is signed anew, so that a late one is no replay.
    """
    timestamp = str(now_ms // 1000)
    headers = {ID_HEADER: message_id, TIMESTAMP_HEADER: timestamp}
    if keys:
        headers[SIGNATURE_HEADER] = " ".join(_sign(message_id, timestamp, body, key) for key in keys)
    return headers


def verify(headers: Mapping[str, str], body: bytes, keys: Sequence[bytes], *, now_ms: int) -> None:
    """Check the signature of a message, as its receiver does; whatever came, it raises nothing else.

    Args:
        headers: of the request, their names in lower case.
        body: the bytes of the request, before anything parsed them.
        keys: one of them must have signed.
        now_ms: the receiver's clock, epoch ms.

    Raises:
        SignatureError: if a header is missing, the time is off, or no signature fits.
    """
    missing = [name for name in (ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER) if name not in headers]
    if missing:
        raise SignatureError(f"headers are missing: {', '.join(missing)}")
    timestamp = headers[TIMESTAMP_HEADER]
    if not _is_close(timestamp, now_ms):
        raise SignatureError(f"the timestamp is off: {timestamp[:20]!r}")
    given = [one.encode(errors="surrogatepass") for one in headers[SIGNATURE_HEADER].split()]
    wanted = [_sign(headers[ID_HEADER], timestamp, body, key).encode() for key in keys]
    if not any(hmac.compare_digest(one, other) for one in given for other in wanted):
        raise SignatureError("no signature fits")


def _is_close(timestamp: str, now_ms: int) -> bool:
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= _TIMESTAMP_DIGITS_MAX):
        return False
    return abs(now_ms - int(timestamp) * 1000) <= TOLERANCE_MS


def _sign(message_id: str, timestamp: str, body: bytes, key: bytes) -> str:
    digest = hmac.new(key, f"{message_id}.{timestamp}.".encode(errors="surrogatepass") + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
