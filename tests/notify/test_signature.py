"""Signatures: by the book of Standard Webhooks, and worth nothing to those who change or repeat a message."""

from __future__ import annotations

import base64
import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heartwheel.readers.notify.signature import (
    ID_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    TOLERANCE_MS,
    SecretError,
    SignatureError,
    parse_secrets,
    signed_headers,
    verify,
)

NOW_MS = 1_614_265_330_000
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - of the specification's own test vector
BODY = b'{"test": 2432232314}'
MESSAGE_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"


def test_vector_of_the_specification() -> None:
    """The signature is the one that the reference libraries make, so that all of them can verify it."""
    headers = signed_headers(MESSAGE_ID, BODY, parse_secrets(SECRET), now_ms=NOW_MS)
    assert headers == {
        ID_HEADER: MESSAGE_ID,
        TIMESTAMP_HEADER: "1614265330",
        SIGNATURE_HEADER: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_true_message_is_accepted() -> None:
    """Up to five minutes apart in either direction."""
    keys = parse_secrets(SECRET)
    headers = signed_headers(MESSAGE_ID, BODY, keys, now_ms=NOW_MS)
    for off_ms in (-TOLERANCE_MS, 0, TOLERANCE_MS):
        verify(headers, BODY, keys, now_ms=NOW_MS + off_ms)


@pytest.mark.parametrize(
    ("change", "body", "off_ms"),
    [
        ({}, BODY + b" ", 0),
        ({ID_HEADER: "msg_other"}, BODY, 0),
        ({TIMESTAMP_HEADER: "1614265331"}, BODY, 0),
        ({TIMESTAMP_HEADER: "now"}, BODY, 0),
        ({SIGNATURE_HEADER: "v1,"}, BODY, 0),
        ({SIGNATURE_HEADER: "v1,ünicode"}, BODY, 0),
        ({}, BODY, TOLERANCE_MS + 1_000),
        ({}, BODY, -TOLERANCE_MS - 1_000),
    ],
)
def test_a_changed_or_repeated_message_is_refused(change: dict[str, str], body: bytes, off_ms: int) -> None:
    """Whoever changes a byte, the id or the time, or sends it again later, has no signature that fits."""
    keys = parse_secrets(SECRET)
    headers = signed_headers(MESSAGE_ID, BODY, keys, now_ms=NOW_MS) | change
    with pytest.raises(SignatureError):
        verify(headers, body, keys, now_ms=NOW_MS + off_ms)


def test_a_missing_header_is_named() -> None:
    """An unsigned message says what it lacks."""
    with pytest.raises(SignatureError, match=SIGNATURE_HEADER):
        verify(signed_headers(MESSAGE_ID, BODY, (), now_ms=NOW_MS), BODY, parse_secrets(SECRET), now_ms=NOW_MS)


def test_secrets_can_be_changed_without_a_gap() -> None:
    """With two of them both sign: receivers that know the old one or the new one are content."""
    other = "whsec_" + base64.b64encode(b"n" * 32).decode()
    headers = signed_headers(MESSAGE_ID, BODY, parse_secrets(f"{SECRET}\n{other}\n"), now_ms=NOW_MS)
    for one in (SECRET, other):
        verify(headers, BODY, parse_secrets(one), now_ms=NOW_MS)


TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
NAMES = st.sampled_from([ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER])


@given(st.dictionaries(NAMES | TEXT, TEXT | st.just("1614265330")), st.binary(max_size=40), st.lists(st.binary()))
@example({TIMESTAMP_HEADER: "9" * 5_000}, BODY, [b"k"])
@example({TIMESTAMP_HEADER: "\N{SUPERSCRIPT TWO}"}, BODY, [b"k"])
@example({ID_HEADER: "\ud800"}, BODY, [b"k"])
@example({SIGNATURE_HEADER: "v1,\udcff"}, BODY, [b"k"])
def test_whatever_comes_is_refused_in_one_way(changes: dict[str, str], body: bytes, keys: list[bytes]) -> None:
    """`verify` raises `SignatureError` and nothing else, for headers of any characters and any length."""
    headers = {ID_HEADER: "msg_1", TIMESTAMP_HEADER: "1614265330", SIGNATURE_HEADER: "v1,"} | changes
    with pytest.raises(SignatureError):
        verify(headers, body, keys, now_ms=NOW_MS)


@given(TEXT | TEXT.map("whsec_{}".format))
@example("whsec_ü")
@example("\udcff" * 30)
@example("\ud800")
def test_whatever_a_secret_is_it_is_read_or_refused(text: str) -> None:
    """Bytes that are no text and base64 that is none are reported in words for people."""
    with contextlib.suppress(SecretError):
        assert all(len(key) >= 24 for key in parse_secrets(text))


@pytest.mark.parametrize("secret", ["short", "whsec_c2hvcnQ=", "whsec_***"])
def test_weak_secrets_are_refused_unseen(secret: str) -> None:
    """The words for people never hold the secret."""
    with pytest.raises(SecretError) as caught:
        parse_secrets(secret)
    assert secret not in str(caught.value)
    assert "whsec_" in (caught.value.hint or "")
