"""The TLS context of a server."""

from __future__ import annotations

import ssl


def tls_context(certificate: str, key: str) -> ssl.SSLContext:
    """Return a server's context for TLS 1.2 and newer.

    Raises:
        OSError: a file cannot be read or is not what it should be.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Without a password OpenSSL would ask on the terminal for that of an encrypted key.
    context.load_cert_chain(certificate, key, password="")
    return context
