"""One Kafka container for all tests of this folder; where no Docker can run, they are skipped and say why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.kafka_container import KafkaContainer

HINT = "run .ci/docker-leg, which installs, starts and builds what it needs"


@pytest.fixture(scope="session")
def kafka_container() -> Iterator[KafkaContainer]:
    """Run one container for all tests; a broker that fails to start is an error, never a skip."""
    pytest.importorskip("testcontainers", reason="testcontainers is not installed")
    from docker.errors import DockerException, ImageNotFound  # noqa: PLC0415

    import docker  # noqa: PLC0415 - only there with the extra
    from support.kafka_container import IMAGE_VARIABLE, KafkaContainer, image_name  # noqa: PLC0415

    try:
        client = docker.from_env()
    except DockerException:
        pytest.skip(f"no Docker daemon answers; {HINT}")
    try:
        client.images.get(image_name())
    except ImageNotFound:
        if IMAGE_VARIABLE in os.environ:
            raise
        pytest.skip(f"there is no image {image_name()}; {HINT}")
    finally:
        client.close()
    with KafkaContainer() as container:
        yield container
