"""One set of client properties serves both clients."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from heartwheel.kafka.security import (
    ClientPropertyError,
    client_settings,
    java_properties,
    librdkafka_properties,
)

LIBRDKAFKA = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "heart",
    "sasl.password": 'wh"ee\\l',
    "ssl.ca.location": "/etc/ca.pem",
}
JAVA = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
    r' username="heart" password="wh\"ee\\l";',
    "ssl.truststore.location": "/etc/ca.pem",
    "ssl.truststore.type": "PEM",
}


@pytest.mark.parametrize(
    ("properties", "settings"),
    [
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"},
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"},
        ),
        (
            {"sasl.jaas.config": 'a.PlainLoginModule required username="u\\"" password="p";'},
            {"sasl.username": 'u"', "sasl.password": "p"},
        ),
        (
            {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": "ca",
                "ssl.endpoint.identification.algorithm": "",
            },
            {"ssl.ca.location": "ca", "ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.location": "both", "ssl.key.password": "s"},
            {"ssl.certificate.location": "both", "ssl.key.location": "both", "ssl.key.password": "s"},
        ),
    ],
    ids=["librdkafka", "jaas", "truststore", "keystore"],
)
def test_librdkafka_gets_its_own_names(properties: dict[str, str], settings: dict[str, str]) -> None:
    """Properties in either style become librdkafka's, and a producer of it takes all of them."""
    assert librdkafka_properties(properties) == settings
    Producer({name: value for name, value in settings.items() if not name.startswith("ssl.")})


def test_both_styles_say_the_same() -> None:
    """A login in Java's words or in librdkafka's gives the same settings, with any character in the password."""
    expected = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "heart",
        "sasl_plain_password": 'wh"ee\\l',
        "ssl_cafile": "/etc/ca.pem",
    }
    assert client_settings(LIBRDKAFKA) == client_settings(JAVA) == expected
    assert java_properties(LIBRDKAFKA) == java_properties(JAVA) == JAVA


def test_all_faults_at_once() -> None:
    """Every property that cannot work is named, each with its reason, and the supported ones are listed."""
    with pytest.raises(ClientPropertyError) as caught:
        client_settings({"fetch.max.bytes": "1", "ssl.truststore.location": "ca.jks", "request.timeout.ms": "soon"})
    lines = str(caught.value).splitlines()
    assert lines[0] == "fetch.max.bytes: not a supported client property"
    assert lines[1] == "ssl.truststore.location: a JKS store is read by Java only; set ssl.truststore.type=PEM"
    assert lines[2] == "request.timeout.ms: 'soon' is no number"
    assert str(caught.value.hint).startswith("supported are client.id, ")


@pytest.mark.parametrize(("value", "checked"), [("https", True), ("", False), ("none", False)])
def test_host_name_check_can_be_turned_off(value: str, checked: bool) -> None:  # noqa: FBT001 - a column of the table
    """Java turns the check off with an empty value, librdkafka with `none`; both clients understand both."""
    properties = {"ssl.endpoint.identification.algorithm": value}
    assert client_settings(properties) == {"ssl_check_hostname": checked}
    assert java_properties(properties) == {"ssl.endpoint.identification.algorithm": "https" if checked else ""}


def test_jaas_without_a_login_is_refused() -> None:
    """A JAAS line whose login cannot be read is an error, not an anonymous login."""
    with pytest.raises(ClientPropertyError, match="holds no username and password"):
        client_settings({"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"})
