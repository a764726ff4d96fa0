"""A certificate authority for the length of a test: PEM files for brokers and clients of this machine."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFE = dt.timedelta(days=1)
_PEM = serialization.Encoding.PEM


class Authority:
    """Sign certificates.

    Args:
        folder: gets all files.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = folder / f"{name}.crt"
        self.certificate.write_bytes(self._sign(self._name, self._key, authority=True).public_bytes(_PEM))

    def issue(self, name: str) -> tuple[Path, Path, Path]:
        """Issue a certificate for this machine.

        Returns:
            The files of the key, of the certificate, and of both together.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        parts = (
            key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
            self._sign(subject, key, authority=False).public_bytes(_PEM),
        )
        files = [self._folder / f"{name}.{kind}" for kind in ("key", "crt", "both")]
        for file, data in zip(files, (*parts, b"".join(parts)), strict=True):
            file.write_bytes(data)
        return files[0], files[1], files[2]

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, authority: bool) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        builder = (
            x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - _LIFE)
            .not_valid_after(now + _LIFE)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if not authority:
            builder = builder.add_extension(here, critical=False)
        return builder.sign(self._key, hashes.SHA256())
