"""The settings of one small Kafka node: what differs from Kafka's defaults, and why."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SMALL_NODE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        # A misspelt topic must be an error, not a new topic.
        "auto.create.topics.enable": "false",
        # One node holds one replica of everything; 50 partitions of each internal topic would only be 150 folders.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        # The default lets the first join of every group wait 3 s for company.
        "group.initial.rebalance.delay.ms": "0",
        # The default, 128 MB, is more than a small heap has.
        "log.cleaner.dedupe.buffer.size": "4194304",
        # After a crash the controller refuses the broker until its old session is over: by default it is back after
        # 12 s, so after 5. Shorter ones would fence a healthy broker whenever a loaded machine stalls for a second.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # By default an idle controller writes a record of nothing twice a second, a third of what an idle node costs.
        "metadata.max.idle.interval.ms": "0",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "num.recovery.threads.per.data.dir": "2",
    }
)
"""Broker properties shared by the embedded broker and the container of the tests; listeners and folders come on top."""

LOGGING: Final = """\
rootLogger.level=warn
rootLogger.appenderRefs=file
rootLogger.appenderRef.file.ref=FILE
loggers=server,groups
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=info
logger.groups.name=org.apache.kafka.coordinator.group
logger.groups.level=info
appenders=file
appender.file.type=RollingFile
appender.file.name=FILE
appender.file.fileName=${sys:heartwheel.log}
appender.file.filePattern=${sys:heartwheel.log}.%i
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d{ISO8601} %p [%t] %c{1}: %m%n
appender.file.policies.type=Policies
appender.file.policies.size.type=SizeBasedTriggeringPolicy
appender.file.policies.size.size=16MB
appender.file.strategy.type=DefaultRolloverStrategy
appender.file.strategy.max=2
"""
"""Log4j 2 configuration: warnings, the server's own life and that of its groups go to one rolling file, at most 48 MB.

What it says of groups is what any broker says by default: `heartwheel explain` reads it.
"""

REQUEST_LOGGING: Final = """\
loggers=server,groups,requests
logger.requests.name=kafka.request.logger
logger.requests.level=debug
logger.requests.additivity=false
logger.requests.appenderRefs=requests
logger.requests.appenderRef.requests.ref=REQUESTS
appenders=file,requests
appender.requests.type=RollingFile
appender.requests.name=REQUESTS
appender.requests.fileName=${sys:heartwheel.log}.requests
appender.requests.filePattern=${sys:heartwheel.log}.requests.%i
appender.requests.layout.type=PatternLayout
appender.requests.layout.pattern=[%d] %p %m (%c)%n
appender.requests.policies.type=Policies
appender.requests.policies.size.type=SizeBasedTriggeringPolicy
appender.requests.policies.size.size=16MB
appender.requests.strategy.type=DefaultRolloverStrategy
appender.requests.strategy.max=4
"""
"""What is added to `LOGGING` for a broker whose requests are tapped, in the layout that Kafka comes with."""


def properties_text(settings: Mapping[str, str]) -> str:
    r"""Write settings as a Java properties file.

    Args:
        settings: names without spaces; values as the broker shall read them, so a backslash is written as `\\`.
    """
    escaped = ((name, value.replace("\\", "\\\\")) for name, value in settings.items())
    return "".join(f"{name}={value}\n" for name, value in escaped)
