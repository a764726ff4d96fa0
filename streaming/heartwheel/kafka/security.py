"""One set of Kafka client properties for all clients: the Java one inside Spark, kafka-python and librdkafka.

People write the properties they know, in librdkafka's style (`sasl.username`, `ssl.ca.location`) or in Java's
(`sasl.jaas.config`, `ssl.truststore.location` with PEM files); each is translated for the client that needs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from heartwheel.base.errors import HeartwheelError

_SAME: Final = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.truststore.location": "ssl_cafile",
    "ssl.keystore.location": "ssl_certfile",
}
_READ_ELSEWHERE: Final = frozenset(
    {"sasl.jaas.config", "ssl.endpoint.identification.algorithm", "ssl.truststore.type", "ssl.keystore.type"}
)
_NUMBERS: Final = {"request.timeout.ms": "request_timeout_ms", "metadata.max.age.ms": "metadata_max_age_ms"}
_OF_LIBRDKAFKA: Final = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.keystore.location": "ssl.certificate.location",
}
_JAVA_ONLY: Final = frozenset({"sasl.jaas.config", "ssl.truststore.type", "ssl.keystore.type"})
_STORES: Final = ("truststore", "keystore")
_LOGIN_MODULES: Final = {"PLAIN": "plain.PlainLoginModule", "SCRAM": "scram.ScramLoginModule"}

SUPPORTED_PROPERTIES: Final = frozenset(_SAME) | frozenset(_NUMBERS) | _READ_ELSEWHERE
"""The client properties that are understood, in either style."""


class ClientPropertyError(HeartwheelError):
    """Which client properties cannot be used, all of them at once, one a line."""


def client_settings(properties: Mapping[str, str]) -> dict[str, str | int | bool]:
    """Translate client properties into kafka-python's keyword arguments.

    Args:
        properties: names in dotted style, values as text.

    Raises:
        ClientPropertyError: naming every property that is unknown or cannot work here.
    """
    check_properties(properties)
    settings: dict[str, str | int | bool] = {_SAME[name]: properties[name] for name in properties if name in _SAME}
    settings |= {_NUMBERS[name]: int(properties[name]) for name in properties if name in _NUMBERS}
    if "sasl.jaas.config" in properties:
        user, password = _login(properties["sasl.jaas.config"])
        settings |= {"sasl_plain_username": user, "sasl_plain_password": password}
    algorithm = properties.get("ssl.endpoint.identification.algorithm")
    if algorithm is not None:
        settings["ssl_check_hostname"] = algorithm.lower() not in {"", "none"}
    return settings


def librdkafka_properties(properties: Mapping[str, str]) -> dict[str, str | int | float | bool]:
    """Translate client properties into those of librdkafka.

    Args:
        properties: names in dotted style, values as text.

    Raises:
        ClientPropertyError: naming every property that is unknown or cannot work here.
    """
    check_properties(properties)
    settings: dict[str, str | int | float | bool] = {
        _OF_LIBRDKAFKA.get(name, name): value for name, value in properties.items() if name not in _JAVA_ONLY
    }
    if "ssl.keystore.location" in properties:
        settings["ssl.key.location"] = properties["ssl.keystore.location"]
    if "sasl.jaas.config" in properties:
        settings["sasl.username"], settings["sasl.password"] = _login(properties["sasl.jaas.config"])
    algorithm = properties.get("ssl.endpoint.identification.algorithm")
    if algorithm is not None:
        settings["ssl.endpoint.identification.algorithm"] = algorithm.lower() or "none"
    return settings


def java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Translate client properties into those of the Java client; prefix them with `kafka.` for Spark.

    Args:
        properties: names in dotted style, values as text.

    Raises:
        ClientPropertyError: naming every property that is unknown or cannot work here.
    """
    check_properties(properties)
    renamed = {
        "sasl.mechanisms": "sasl.mechanism",
        "ssl.ca.location": "ssl.truststore.location",
    }
    moved = {"sasl.username", "sasl.password", "ssl.certificate.location", "ssl.key.location"}
    java = {renamed.get(name, name): value for name, value in properties.items() if name not in moved}
    if "ssl.ca.location" in properties:
        java["ssl.truststore.type"] = "PEM"
    if "ssl.certificate.location" in properties:
        java |= _key_store(properties)
    if "sasl.username" in properties:
        java["sasl.jaas.config"] = _jaas(properties)
    if java.get("ssl.endpoint.identification.algorithm", "").lower() == "none":
        java["ssl.endpoint.identification.algorithm"] = ""
    return java


def check_properties(properties: Mapping[str, str]) -> None:
    """Check that every property is one that both clients can follow.

    Raises:
        ClientPropertyError: naming every one that is not, with its reason.
    """
    faults = [f"{name}: not a supported client property" for name in sorted(set(properties) - SUPPORTED_PROPERTIES)]
    for store in _STORES:
        kind = properties.get(f"ssl.{store}.type", "JKS")
        if f"ssl.{store}.location" in properties and kind != "PEM":
            faults.append(f"ssl.{store}.location: a {kind} store is read by Java only; set ssl.{store}.type=PEM")
    faults += [
        f"{name}: {properties[name]!r} is no number" for name in _NUMBERS if not _is_number(properties.get(name))
    ]
    if "sasl.jaas.config" in properties and not _JAAS_LOGIN.findall(properties["sasl.jaas.config"]):
        faults.append("sasl.jaas.config: it holds no username and password")
    if ("ssl.certificate.location" in properties) != ("ssl.key.location" in properties):
        faults.append("ssl.certificate.location: goes together with ssl.key.location")
    if faults:
        known = ", ".join(sorted(SUPPORTED_PROPERTIES))
        raise ClientPropertyError("\n".join(faults), hint=f"supported are {known}")


_JAAS_LOGIN: Final = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')


def _key_store(properties: Mapping[str, str]) -> dict[str, str]:
    """Give Java the client's certificate and key themselves: it knows no property for the key's own file."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": _read(properties, "ssl.certificate.location"),
        "ssl.keystore.key": _read(properties, "ssl.key.location"),
    }


def _read(properties: Mapping[str, str], name: str) -> str:
    try:
        return Path(properties[name]).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no PEM file"
        raise ClientPropertyError(f"{name}: cannot read {properties[name]}: {why}") from None


def _is_number(value: str | None) -> bool:
    return value is None or value.isdecimal()


def _login(jaas: str) -> tuple[str, str]:
    found = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _JAAS_LOGIN.findall(jaas)}
    return found.get("username", ""), found.get("password", "")


def _jaas(properties: Mapping[str, str]) -> str:
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or "PLAIN"
    module = _LOGIN_MODULES["SCRAM" if mechanism.upper().startswith("SCRAM") else "PLAIN"]
    user, password = (
        re.sub(r'(["\\])', r"\\\1", properties.get(name, "")) for name in ("sasl.username", "sasl.password")
    )
    package = "org.apache.kafka.common.security"
    return f'{package}.{module} required username="{user}" password="{password}";'
