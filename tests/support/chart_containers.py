"""Containers of the chart as processes of this machine: their commands, variables and mounted files, without images."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from support.certificates import Authority
from support.chart import Object, of_kind, rendered

TOKEN = "t" * 32
WEBHOOK_SECRET = "whsec_" + "A" * 43 + "="


def containers(objects: list[Object]) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """Return name, arguments and environment of every container that runs a command of heartwheel."""
    for name, each in of_kind(objects, "Deployment").items():
        (container,) = each["spec"]["template"]["spec"]["containers"]
        yield name, container["args"], {one["name"]: one["value"] for one in container.get("env", ())}
    for name, each in of_kind(objects, "SparkApplication").items():
        env = each["spec"]["driver"].get("env", ())
        yield name, each["spec"]["arguments"], {one["name"]: one["value"] for one in env}


def mounted(folder: Path, text: str) -> str:
    """Return a text with the folders of a container below a folder of the test."""
    return re.sub(r"(?<![\w/])/(?=run/secrets|var/lib)", f"{folder}/", text)


def secrets_in(folder: Path, others: Mapping[str, str] | None = None) -> None:
    """Write every file that the chart mounts from a Secret.

    Args:
        folder: stands for the root of a container.
        others: other contents, by the names of volume and file, such as `kafka-user/password`.
    """
    authority = Authority(folder, "authority")
    key, certificate, _ = authority.issue("heartwheel")
    files = {
        "users/users": "ada:$2y$05$" + "a" * 53 + "\n",
        "token/token": TOKEN,
        "session/session": "s" * 32,
        "access/access": f"orders {TOKEN}\n",
        "webhook/url": "http://127.0.0.1:1/hook",
        "webhook/secret": WEBHOOK_SECRET,
        "metrics/token": TOKEN,
        "kafka-user/password": "wrong",
        "kafka-ca/ca.crt": authority.certificate.read_text(),
        "kafka-user/user.crt": certificate.read_text(),
        "kafka-user/user.key": key.read_text(),
        "tls/tls.crt": certificate.read_text(),
        "tls/tls.key": key.read_text(),
    }
    for name, text in (files | dict(others or {})).items():
        file = folder / "run" / "secrets" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@cache
def read_only_root() -> tuple[str, ...]:
    """Return the words that start a command on a root that is read-only but for /tmp; none without the right to."""
    script = 'mount --bind /tmp /tmp && mount -o remount,bind,ro / && exec "$@"'
    words = ("unshare", "--mount", "sh", "-c", script, "sh")
    try:
        done = subprocess.run([*words, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return ()
    return () if done.returncode else words


@contextmanager
def running(
    folder: Path, name: str, values: dict[str, Any], port: int, bootstrap: str = "127.0.0.1:1"
) -> Iterator[tuple[Object, subprocess.Popen[bytes]]]:
    """Run a container at another port and broker, on a read-only root if possible; give it and its process."""
    deployment = of_kind(rendered(values), "Deployment")[f"heartwheel-{name}"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    swapped = {"kafka.kafka.svc:9092": bootstrap, "0.0.0.0": "127.0.0.1"}  # noqa: S104 - of a container
    words = [swapped.get(word, mounted(folder, word)) for word in container["args"]]
    if "--port" in words:
        words[words.index("--port") + 1] = str(port)
    env = {each["name"]: mounted(folder, each["value"]) for each in container.get("env", ())}
    path = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"], "HOME": str(folder)}
    with (folder / "log").open("w") as log:
        command = [*read_only_root(), sys.executable, "-m", "heartwheel", *words]
        process = subprocess.Popen(command, env=path | env, cwd=folder, stdout=log, stderr=log)
    try:
        yield container, process
        assert process.poll() is None, (folder / "log").read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, (folder / "log").read_text()
