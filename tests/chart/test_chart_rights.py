"""The chart's users on a broker that refuses what no right allows: each component works with them, and no more."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourcePattern, ResourceType

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.jars import default_cache_dir
from heartwheel.kafka.broker.node_process import free_port
from heartwheel.kafka.broker.node_security import NodeSecurity
from heartwheel.kafka.client import KafkaRefusedError, admin_client
from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.sender import Sender
from heartwheel.kafka.topic_specs import TopicNames
from heartwheel.readers.notify.signature import parse_secrets
from support.certificates import Authority
from support.chart import ALL, SCRAM, STRIMZI, merged, of_kind, rendered
from support.chart_containers import TOKEN, WEBHOOK_SECRET, read_only_root, running, secrets_in
from support.job import Job, Topics, ended, wait_for
from support.webhook_receiver import Receiver

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(600)]

VALUES = merged(ALL, SCRAM, STRIMZI, {"dashboard": {"canary": True}})
PASSWORD = secrets.token_hex(16)
OPERATIONS = {
    "Read": ACLOperation.READ,
    "Write": ACLOperation.WRITE,
    "Describe": ACLOperation.DESCRIBE,
    "DescribeConfigs": ACLOperation.DESCRIBE_CONFIGS,
}


class Guarded(NamedTuple):
    """A broker with the users and rights of the chart, and its topics as an administrator has them."""

    broker: EmbeddedKafka
    topics: Topics
    authority: Path

    def login(self, user: str) -> dict[str, str]:
        """Return the properties by which a user logs in."""
        return _login(user, self.authority)


def _login(user: str, authority: Path) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(authority),
    }


def _acls(user: dict[str, Any]) -> Iterator[ACL]:
    """Return what Strimzi's user operator makes of a KafkaUser."""
    for rule in user["spec"]["authorization"]["acls"]:
        resource = rule["resource"]
        assert (resource["type"], resource["patternType"]) == ("topic", "literal")
        pattern = ResourcePattern(ResourceType.TOPIC, resource["name"], ACLResourcePatternType.LITERAL)
        for operation in rule["operations"]:
            principal = f"User:{user['metadata']['name']}"
            yield ACL(principal, "*", OPERATIONS[operation], ACLPermissionType.ALLOW, pattern)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Run the broker; without a right nobody may do anything but the administrator and the broker itself."""
    folder = tmp_path_factory.mktemp("guarded")
    authority = Authority(folder, "authority")
    _, _, both = authority.issue("broker")
    users = of_kind(rendered(VALUES), "KafkaUser")
    security = NodeSecurity(
        key_and_certificate=both, trusted=authority.certificate, users=dict.fromkeys(["admin", *users], PASSWORD)
    )
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    with EmbeddedKafka(security=security, config=config) as broker:
        admin = _login("admin", authority.certificate)
        topics = Topics(broker.bootstrap, _name, properties=admin)
        with admin_client(broker.bootstrap, admin, doing="give rights") as client:
            client.create_acls([acl for user in users.values() for acl in _acls(user)])
        yield Guarded(broker, topics, authority.certificate)


def _name(topic: str) -> str:
    return str(getattr(TopicNames(), topic))


def test_each_component_works_with_the_rights_of_its_user(guarded: Guarded, tmp_path: Path) -> None:
    """A beat at the gateway becomes an expiration of the job, a row of the dashboard, a message; the canary beats."""
    topics, bootstrap = guarded.topics, guarded.broker.bootstrap
    login = [f"kafka.client.{name}={value}" for name, value in guarded.login("heartwheel-job").items()]
    flags = [flag for flag in login if "password" not in flag]
    ports = {name: free_port() for name in ("dashboard", "gateway")}
    with (
        pytest.MonkeyPatch.context() as patch,
        Receiver(parse_secrets(WEBHOOK_SECRET)) as receiver,
    ):
        patch.setenv("HEARTWHEEL_KAFKA__CLIENT__SASL_PASSWORD", PASSWORD)
        for name in ("dashboard", "gateway", "notifier"):
            (tmp_path / name).mkdir()
            files = {"kafka-user/password": PASSWORD, "kafka-ca/ca.crt": guarded.authority.read_text()}
            secrets_in(tmp_path / name, files | {"webhook/url": receiver.url})
        with (
            ended(_confined(Job(topics, tmp_path / "checkpoint", *flags), tmp_path, patch).start()) as job,
            running(tmp_path / "dashboard", "dashboard", VALUES, ports["dashboard"], bootstrap),
            running(tmp_path / "gateway", "gateway", VALUES, ports["gateway"], bootstrap),
            running(tmp_path / "notifier", "notifier", VALUES, 0, bootstrap),
        ):
            token = {"Authorization": f"Bearer {TOKEN}"}
            beat = f"http://127.0.0.1:{ports['gateway']}/beat/orders/worker?session=6s"
            wait_for(lambda: _status("POST", beat, token) == 202, "the gateway to write a heartbeat")
            job.wait_for(lambda: "worker" in topics.expired(), "the job to expire the worker")
            page = f"http://127.0.0.1:{ports['dashboard']}/api/expirations"
            wait_for(lambda: '"worker"' in _text(page, token), "the dashboard to show it")
            wait_for(lambda: any("worker" in body.text for body in receiver.bodies), "the notifier to post it")
            wait_for(
                lambda: any(
                    row.get("group_id", "").startswith("heartwheel-canary") for row in topics.rows("heartbeats")
                ),
                "the canary to beat",
            )


def _confined(job: Job, folder: Path, patch: pytest.MonkeyPatch) -> Job:
    """Have a job start on a root that is read-only where it is possible, with what the chart mounts for it to write."""
    cache = folder / "cache"
    for name in ("logs", "work"):
        (cache / name).mkdir(parents=True)
    for name in ("jars", "classes"):
        (cache / name).symlink_to(default_cache_dir().with_name(name))
    patch.setenv("HEARTWHEEL_CACHE", str(cache))
    patch.chdir(cache / "work")
    job.command[:0] = read_only_root()
    return job


def _status(method: str, url: str, headers: dict[str, str]) -> int:
    try:
        return httpx.request(method, url, headers=headers, timeout=30).status_code
    except httpx.TransportError:
        return 0


def _text(url: str, headers: dict[str, str]) -> str:
    try:
        return httpx.get(url, headers=headers, timeout=30).text
    except httpx.TransportError:
        return ""


@pytest.mark.parametrize(
    ("user", "topic"),
    [("heartwheel-gateway", "heartbeats"), ("heartwheel-job", "rejects"), ("heartwheel-notifier", "heartbeats")],
)
def test_a_user_may_do_no_more(guarded: Guarded, user: str, topic: str) -> None:
    """The gateway reads no heartbeats, the job no rejects, and the notifier no heartbeats: the broker refuses them."""
    name = guarded.topics.names[topic]
    sender = Sender(guarded.broker.bootstrap, name, linger_ms=0, properties=guarded.login("admin"))
    sender.send(b"key", b"a record to read")
    sender.close()
    assert (sender.unknown, sum(sender.errors.values())) == (0, 0)
    login = guarded.login(user)
    with pytest.raises(KafkaRefusedError):
        list(read_topic(guarded.broker.bootstrap, name, properties=login))
