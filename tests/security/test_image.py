"""The image of the job: what is run in it, the job's own user cannot change."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_jobs_user_owns_no_jar() -> None:
    """Only the folders of checkpoints and of logs are given to the user of the container, and not what is below."""
    image = (ROOT / "docker" / "Dockerfile").read_text().replace("\\\n", " ")
    assert re.findall(r"^USER (\S+)$", image, re.MULTILINE)[-1] == "heartwheel"
    given = [word for line in re.findall(r"\bchown ([^&\n]*)", image) for word in line.split()]
    assert given == ["heartwheel", "/var/lib/heartwheel", '"$HEARTWHEEL_CACHE/logs"']
    assert "chmod" not in image
    assert "--chown" not in image
