"""Write a set of the jar lock again: `python -m heartwheel.kafka.broker.lock SET GROUP:ARTIFACT:VERSION ...`.

The Ivy of the installed pyspark resolves the coordinates, from the repository that jars are fetched from. The lines are
printed, for a person to look at before they replace others in `jars.lock`. The sets were made from

- broker: `org.apache.kafka:kafka_2.13` and `org.apache.logging.log4j:log4j-slf4j-impl`, without which the broker logs
  nothing; `--without` what neither formatting, running, producing with any codec, consuming in groups nor transactions
  need: `caffeine,commons-beanutils,commons-collections,commons-digester,commons-logging,jackson-dataformat-csv,
  jackson-dataformat-yaml,jackson-datatype-jdk8,jose4j,jspecify,kafka-tools-api,scala-reflect,snakeyaml`
- image: the same with `jackson-dataformat-yaml` and `snakeyaml`
- spark-4.2 and the like: four coordinates with `--alone`, for pyspark brings the rest
- streams: `org.apache.kafka:kafka-streams` with `--alone`: what else it needs is in `broker`, but for RocksDB, which
  only state stores need
- broker-4.3, streams-4.3: as broker and streams, with 4.3.1 and log4j-slf4j-impl 2.25.4
- tools: `org.apache.kafka:kafka-tools` with `--alone`
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from heartwheel.kafka.broker.jars import Jar, JarError, file_sha256
from heartwheel.kafka.broker.java import JavaError, find_java
from heartwheel.kafka.broker.repository import Repository, RepositoryError, ivy_jar, repository_address, shown_address

_SEPARATOR: Final = "!!"
_PATTERN: Final = f"[organisation]{_SEPARATOR}[artifact]{_SEPARATOR}[revision].[ext]"
_NOT_FOUND: Final = re.compile(r"^\s*:: (\S+): not found", re.MULTILINE)


def resolve(
    set_name: str, coordinates: Sequence[str], *, transitive: bool = True, without: Collection[str] = ()
) -> list[Jar]:
    """Resolve coordinates to jars with their sizes and hashes.

    Args:
        coordinates: `group:artifact:version` each.
        transitive: whether to take what they depend on as well.
        without: artifacts to leave out.

    Returns:
        The jars, in the order of their coordinates.

    Raises:
        JarError: if something cannot be resolved, by name.
    """
    with tempfile.TemporaryDirectory(prefix="heartwheel-lock-") as folder:
        _run_ivy(Path(folder), coordinates, transitive=transitive)
        jars = [_locked(file, set_name) for file in sorted(Path(folder, "jars").iterdir())]
    return [jar for jar in jars if jar.coordinate.split(":")[1] not in without]


def lock_line(jar: Jar) -> str:
    """Write a jar as a line of the lock."""
    return f"{jar.sha256} {jar.size:>9} {','.join(jar.sets)} {jar.coordinate}"


def _run_ivy(folder: Path, coordinates: Sequence[str], *, transitive: bool) -> None:
    try:
        command = [str(find_java()), "-jar", str(ivy_jar())]
        address = Repository(repository_address()).address  # refuses one that would send a password in the clear
        (folder / "settings.xml").write_text(_settings(address))
    except (JavaError, RepositoryError) as error:
        raise JarError(str(error), hint=error.hint) from None
    (folder / "ivy.xml").write_text(_module(coordinates, transitive=transitive))
    options = {
        "-settings": folder / "settings.xml",
        "-ivy": folder / "ivy.xml",
        "-cache": folder / "cache",
        "-confs": "default",
        "-retrieve": folder / "jars" / _PATTERN,
    }
    command += [str(part) for option in options.items() for part in option]
    # Some jars are published as bundles, and Ivy leaves those out unless they are asked for.
    done = subprocess.run([*command, "-types", "jar", "bundle"], capture_output=True, text=True, check=False)
    missing = sorted(set(_NOT_FOUND.findall(done.stdout)))
    if missing or done.returncode:
        raise JarError(
            "Ivy cannot resolve: "
            + (", ".join(missing) or (done.stdout + done.stderr).replace(address, shown_address(address))[-2000:])
        )


def _settings(address: str) -> str:
    return (
        '<ivysettings><settings defaultResolver="all"/><resolvers>'
        f'<ibiblio name="all" m2compatible="true" root={quoteattr(address)}/></resolvers></ivysettings>'
    )


def _module(coordinates: Sequence[str], *, transitive: bool) -> str:
    flag = str(transitive).lower()
    dependencies = "".join(
        f"<dependency org={quoteattr(group)} name={quoteattr(artifact)} rev={quoteattr(version)}"
        f' conf="default->default" transitive="{flag}"/>'
        for group, artifact, version in (coordinate.split(":") for coordinate in coordinates)
    )
    return (
        '<ivy-module version="2.0"><info organisation="heartwheel" module="lock"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _locked(file: Path, set_name: str) -> Jar:
    coordinate = file.name.removesuffix(".jar").replace(_SEPARATOR, ":")
    return Jar(file_sha256(file), file.stat().st_size, (set_name,), coordinate)


def main(arguments: Sequence[str] | None = None) -> int:
    """Resolve and print lines for the lock.

    Returns:
        The exit code of the command.
    """
    parser = argparse.ArgumentParser(
        prog="python -m heartwheel.kafka.broker.lock", description="Print lines for jars.lock."
    )
    parser.add_argument("set", help="the set that the jars belong to")
    parser.add_argument("coordinates", nargs="+", metavar="GROUP:ARTIFACT:VERSION")
    parser.add_argument("--alone", action="store_true", help="leave out what they depend on")
    parser.add_argument("--without", default="", metavar="ARTIFACT[,...]", help="leave these artifacts out")
    options = parser.parse_args(arguments)
    try:
        without = frozenset(options.without.split(","))
        jars = resolve(options.set, options.coordinates, transitive=not options.alone, without=without)
    except JarError as error:
        sys.stderr.write(f"{error.report()}\n")
        return 1
    sys.stdout.writelines(lock_line(jar) + "\n" for jar in jars)
    return 0


if __name__ == "__main__":
    sys.exit(main())
