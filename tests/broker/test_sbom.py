"""The bill of materials names every locked jar, once, with its hash."""

from __future__ import annotations

import json
from pathlib import Path

from heartwheel.kafka.broker import sbom
from heartwheel.kafka.broker.jars import locked_jars


def test_every_locked_jar_is_in_it(tmp_path: Path) -> None:
    """Jars are added to what is there, each once however often it is done, with package URL, hash and sets."""
    file = tmp_path / "sbom.cdx.json"
    package = {"type": "library", "bom-ref": "numpy", "name": "numpy"}
    file.write_text(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [package]}))
    for _ in range(2):
        assert sbom.main([str(file)]) == 0
    document = json.loads(file.read_text())
    first, *jars = document["components"]
    assert (document["bomFormat"], first) == ("CycloneDX", package)
    spark = ("spark-4.0", "spark-4.1", "spark-4.2", "spark-4.3")
    sets = ("broker", "image", "broker-4.3", *spark, "streams", "streams-4.3", "tools")
    locked = {jar.coordinate: jar for name in sets for jar in locked_jars(name)}
    found = {f"{jar['group']}:{jar['name']}:{jar['version']}": jar for jar in jars}
    assert len(jars) == len(found)
    assert found.keys() == locked.keys()
    for coordinate, jar in found.items():
        assert jar["hashes"] == [{"alg": "SHA-256", "content": locked[coordinate].sha256}]
        assert jar["purl"] == jar["bom-ref"]
        assert {each["value"] for each in jar["properties"]} == set(locked[coordinate].sets)
