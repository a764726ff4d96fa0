"""Add the locked jars to a software bill of materials: `python -m heartwheel.kafka.broker.sbom FILE`.

The file is CycloneDX in JSON, as `make sbom` has it written about the Python packages. PySpark's own jars are part of
its package and not listed one by one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from heartwheel.kafka.broker.jars import Jar, read_lock


def component(jar: Jar) -> dict[str, Any]:
    """Describe a jar as a component of CycloneDX 1.6, with its hash and the sets that it belongs to."""
    group, name, version = jar.coordinate.split(":")
    purl = f"pkg:maven/{group}/{name}@{version}?type=jar"
    return {
        "type": "library",
        "bom-ref": purl,
        "group": group,
        "name": name,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
        "properties": [{"name": "heartwheel:jar-set", "value": name} for name in jar.sets],
    }


def with_jars(document: dict[str, Any], jars: Iterable[Jar]) -> dict[str, Any]:
    """Add jars to a bill of materials; those that it has already are replaced.

    Args:
        document: CycloneDX, decoded.
    """
    ours = {found["bom-ref"]: found for found in map(component, jars)}
    others = [found for found in document.get("components", ()) if found.get("bom-ref") not in ours]
    return document | {"components": [*others, *(ours[reference] for reference in sorted(ours))]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Add all locked jars to the named file.

    Returns:
        The exit code of the command.
    """
    (name,) = sys.argv[1:] if arguments is None else arguments
    file = Path(name)
    document = json.loads(file.read_text(encoding="utf-8"))
    jars = read_lock(resources.files(__package__).joinpath("jars.lock").read_text(encoding="utf-8"))
    file.write_text(json.dumps(with_jars(document, jars), indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
