"""Sign messages, so that a receiver can verify the sender and the content, and recognise a replay.

The scheme and the names of the headers are those of the Standard Webhooks specification, 1.0.0: HMAC-SHA256 over
`id.timestamp.body`, in base64 after `v1,`. Libraries that verify it exist for most languages.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Final

from heartwheel.base.errors import HeartwheelError

ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"

TOLERANCE_MS: Final = 300_000
"""Most that a receiver's clock and the sender's may differ; an older message is refused as a replay."""

KEY_BYTES_MIN: Final = 24
"""Shortest key that the specification allows, bytes."""

_PREFIX: Final = "whsec_"
_TIMESTAMP_DIGITS_MAX: Final = 15
"""Most digits of an accepted timestamp: 2^53 ms in seconds has thirteen."""


class SecretError(HeartwheelError):
    """A secret cannot be used; the message does not show it."""


class SignatureError(HeartwheelError):
    """A message cannot be trusted."""


def parse_secrets(text: str) -> tuple[bytes, ...]:
    """Parse keys, one per line: `whsec_` and base64, or any text of at least 24 bytes.

    With two of them every message is signed twice, so that a receiver can change from one to the other at any time.

    Args:
        text: the lines; empty ones are skipped, and without any nothing is signed.

    Raises:
        SecretError: one of them cannot be used.
    """
    return tuple(_key(line) for line in map(str.strip, text.splitlines()) if line)


_HOW: Final = "make one: python3 -c 'import base64, os; print(\"whsec_\" + base64.b64encode(os.urandom(32)).decode())'"


def _key(line: str) -> bytes:
    try:
        key = line.encode(errors="surrogateescape")  # the environment may contain bytes that are no text
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
    """Return the headers of one attempt to deliver a message.

    Args:
        message_id: the same for every attempt, so that the receiver can drop duplicates.
        body: exactly the bytes that are sent.
        keys: sign with each; without any the signature is left out.
        now_ms: when the attempt is made, epoch ms; each attempt is signed again, so that a late one does not look like
            a replay.
    """
    timestamp = str(now_ms // 1000)
    headers = {ID_HEADER: message_id, TIMESTAMP_HEADER: timestamp}
    if keys:
        headers[SIGNATURE_HEADER] = " ".join(_sign(message_id, timestamp, body, key) for key in keys)
    return headers


def verify(headers: Mapping[str, str], body: bytes, keys: Sequence[bytes], *, now_ms: int) -> None:
    """Check the signature of a message, as its receiver does; no input makes it raise anything else.

    Args:
        headers: of the request, their names in lower case.
        body: the bytes of the request, before they are parsed.
        keys: one of them must have signed.

    Raises:
        SignatureError: a header is missing, the time is off, or no signature fits.
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
