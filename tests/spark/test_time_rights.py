"""A job that may not write ticks, or not enough of them: time stands still, and everybody is told why.

The tests share one job on a broker that asks for a login and looks at rights and quotas.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.admin import ACLResourcePatternType as PatternType
from kafka.protocol.admin import AlterClientQuotasRequest

from heartwheel.engine.runtime.driver.ticker import CLIENT_ID
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.node_security import NodeSecurity
from heartwheel.kafka.client import admin_client
from support.certificates import Authority
from support.job import Job, Topics, beats_of, running
from support.signs import doctor_of, metrics_of, page_of
from support.verdicts import assert_audit_is_clean

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(600)]

USER, ADMIN = "heart", "admin"
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # The broker itself and the probe come without a login, over a listener of their own.
    "super.users": f"User:ANONYMOUS;User:{ADMIN}",
    "allow.everyone.if.no.acl.found": "true",
}


class World(NamedTuple):
    """What the tests share."""

    topics: Topics
    job: Job

    def die(self, group: str) -> list[str]:
        """Let the members of a group beat once and never again."""
        beats = beats_of(group, 5)
        self.topics.send(beats)
        return [beat.member_id for beat in beats]

    def admin(self) -> Any:
        """Open a client that may do everything."""
        return admin_client(self.topics.bootstrap, self.topics.properties)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run the broker and the job; nobody but the ticker writes all the time."""
    folder = tmp_path_factory.mktemp("rights")
    passwords = {user: secrets.token_hex(8) for user in (USER, ADMIN)}
    authority = Authority(folder, "authority")
    security = NodeSecurity(
        key_and_certificate=authority.issue("broker")[2], trusted=authority.certificate, users=passwords
    )
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedKafka(security=security, config=AUTHORIZED))
        topics = Topics(broker.bootstrap, lambda name: name, properties=_login(authority, ADMIN, passwords[ADMIN]))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("HEARTWHEEL_KAFKA__CLIENT__SASL_PASSWORD", passwords[USER])
        login = _login(authority, USER, "")
        flags = [f"kafka.client.{name}={value}" for name, value in login.items() if value]
        job = stack.enter_context(running(topics, folder / "checkpoint", *flags))
        job.until_live()
        yield World(topics, job)


def _login(authority: Authority, user: str, password: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.location": str(authority.certificate),
    }


def _assert_everybody_is_told(world: World, why: str, *, hint: str) -> None:
    """Wait until the page says why time stands still, and look at what else does."""
    world.job.wait_for(lambda: _says(page_of(world.topics).sentence, why), f"the page to say {why!r}")
    world.job.wait_for(lambda: f'heartwheel_tickless_reason{{reason="{why}"}} 1.0' in metrics_of(world.topics), why)
    ticks = doctor_of(world.job)["ticks"]
    assert (ticks["status"], why in ticks["detail"]) == ("bad", True), ticks
    assert hint in ticks["hint"]


def _says(sentence: str, why: str) -> bool:
    return sentence.startswith("Time has stopped") and why in sentence


def _until_healthy(world: World) -> None:
    world.job.wait_for(lambda: page_of(world.topics).sentence.startswith("Healthy"), "the page to be healthy")


def test_without_the_right_to_write_time_stands_still(world: World) -> None:
    """The ACL is taken away from the job, and given back: nobody is expired meanwhile, and nobody is forgotten."""
    topic = world.topics.names["heartbeats"]
    pattern = ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL)
    everybody = ACL("User:*", "*", ACLOperation.ALL, ACLPermissionType.ALLOW, pattern)
    not_the_job = ACL(f"User:{USER}", "*", ACLOperation.WRITE, ACLPermissionType.DENY, pattern)
    with world.admin() as admin:
        admin.create_acls([everybody, not_the_job])
    waiting = world.die("denied")
    _assert_everybody_is_told(
        world,
        "ticks may not be written to the topic: their user needs the ACL Write on it",
        hint="give the job's user Write",
    )
    assert set(world.topics.expired()).isdisjoint(waiting)
    with world.admin() as admin:
        found = ResourcePatternFilter(ResourceType.TOPIC, topic, PatternType.LITERAL)
        admin.delete_acls([ACLFilter(f"User:{USER}", "*", ACLOperation.WRITE, ACLPermissionType.DENY, found)])
    world.job.until_expired(waiting)
    _until_healthy(world)
    assert_audit_is_clean(world.job)


def test_a_quota_that_holds_ticks_back_is_named(world: World) -> None:
    """A quota lets far fewer bytes through than ticks need: they come late, and it is named."""
    _set_quota(world, 50.0)
    _assert_everybody_is_told(
        world, "a quota of the cluster holds back the user that writes ticks", hint="raise producer_byte_rate"
    )
    world.job.until_expired(world.die("throttled"))
    _set_quota(world, None)
    _until_healthy(world)
    world.job.until_expired(world.die("free-again"))
    assert_audit_is_clean(world.job)


def _set_quota(world: World, bytes_per_s: float | None) -> None:
    """Set the quota of the job's ticker, or take it back."""
    entry = AlterClientQuotasRequest.EntryData
    who = [
        entry.EntityData(entity_type=kind, entity_name=name)
        for kind, name in (("user", USER), ("client-id", CLIENT_ID))
    ]
    change = entry.OpData(key="producer_byte_rate", value=bytes_per_s or 0.0, remove=bytes_per_s is None)
    request = AlterClientQuotasRequest(entries=[entry(entity=who, ops=[change])], validate_only=False)
    with world.admin() as admin:
        answer = admin._manager.run(admin._manager.send, request)
    assert [each.error_code for each in answer.entries] == [0]
