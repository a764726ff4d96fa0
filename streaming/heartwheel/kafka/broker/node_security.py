"""TLS and SASL/SCRAM for the embedded broker: what its clients' listener asks for.

The broker keeps a plaintext listener of its own on the loopback interface, for itself and for the readiness probe; it
is advertised to nobody else. Clients see the secure one alone.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SCRAM_MECHANISM: Final = "SCRAM-SHA-512"
"""The one mechanism that the listener offers."""

_ITERATIONS: Final = 4096  # the least that Kafka takes
_SALT_BYTES: Final = 32
_LISTENER: Final = "SASL_SSL"
_LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
INTERNAL: Final = "INTERNAL"
"""The name of the listener that the broker keeps for itself."""


@dataclass(frozen=True, kw_only=True)
class NodeSecurity:
    """The secure listener of one broker; all files are PEM.

    Args:
        key_and_certificate: the broker's private key (PKCS#8) and its certificate chain, in one file.
        trusted: the certificates that clients' own certificates must chain to.
        users: password by user name, known to the cluster from its first start; kept out of `repr`.
        client_certificates: whether a client needs a certificate beside its password.
    """

    key_and_certificate: Path
    trusted: Path
    users: Mapping[str, str] = field(repr=False)
    client_certificates: bool = False

    def properties(self, host: str, port: int, internal_port: int, controller: str) -> dict[str, str]:
        """Return the broker's properties, in place of those of a plaintext node.

        Args:
            host: where all listeners listen.
            port: of the clients' listener.
            internal_port: of the broker's own listener.
            controller: the controller's listener, whole.
        """
        listeners = f"{_LISTENER}://{host}:{port},{INTERNAL}://{host}:{internal_port}"
        return {
            "listeners": f"{listeners},{controller}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": f"{_LISTENER}:SASL_SSL,{INTERNAL}:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": INTERNAL,
            "sasl.enabled.mechanisms": SCRAM_MECHANISM,
            # The module is needed, a login in it is not: nobody but clients logs in here.
            f"listener.name.{_LISTENER.lower()}.{SCRAM_MECHANISM.lower()}.sasl.jaas.config": _LOGIN_MODULE,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.key_and_certificate),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
            # Without the listener's name a listener with a login does not look at it.
            f"listener.name.{_LISTENER.lower()}.ssl.client.auth": "required" if self.client_certificates else "none",
        }

    def format_arguments(self) -> list[str]:
        """Return the arguments with which the storage is formatted, so that the users exist from the first start.

        They hold salted hashes and no password. Yet whoever reads one can try passwords on it, and every user of a
        machine can read a command line: they are for `arguments_file`.
        """
        arguments = []
        for user, password in self.users.items():
            salt = secrets.token_bytes(_SALT_BYTES)
            salted = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _ITERATIONS)
            words = {
                "name": user,
                "salt": f'"{base64.b64encode(salt).decode()}"',
                "iterations": str(_ITERATIONS),
                "saltedpassword": f'"{base64.b64encode(salted).decode()}"',
            }
            credential = ",".join(f"{name}={value}" for name, value in words.items())
            arguments += ["--add-scram", f"{SCRAM_MECHANISM}=[{credential}]"]
        return arguments


@contextlib.contextmanager
def arguments_file(arguments: Sequence[str]) -> Iterator[list[str]]:
    """Write arguments of Kafka's tools to a file that only this user can read, and that is gone after the block.

    Args:
        arguments: what stands in the file, one a line.

    Yields:
        What to put on the command line in their place: `@PATH`, which argparse4j replaces by the lines of the file, or
        nothing if there are none.
    """
    if not arguments:
        yield []
        return
    with tempfile.NamedTemporaryFile("w", suffix=".arguments", encoding="utf-8") as file:  # its mode is 0600
        file.write("".join(f"{argument}\n" for argument in arguments))
        file.flush()
        yield [f"@{file.name}"]
