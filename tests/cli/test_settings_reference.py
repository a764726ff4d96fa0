"""The reference file says what the models say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from heartwheel.settings import FIELDS, load_settings
from heartwheel.settings.keys import TABLES

REFERENCE = Path(__file__).parents[2] / "conf" / "heartwheel.toml"


def test_reference_shows_every_default(tmp_path: Path) -> None:
    """With every # taken off, conf/heartwheel.toml is the default configuration: no key missing, none too many."""
    text = re.sub(r"^#(?=[a-z_]+ = )", "", REFERENCE.read_text(), flags=re.MULTILINE)
    file = tmp_path / "all.toml"
    file.write_text(text)
    shown = load_settings(file)
    defaults = load_settings(tmp_path / _empty(tmp_path))
    assert shown.settings == defaults.settings
    assert [path for path, origin in shown.origin.items() if origin.layer == "default"] == []


def test_reference_sets_nothing() -> None:
    """As it is shipped the file changes no value, so that a new default reaches those who never touched it."""
    sections = tomllib.loads(REFERENCE.read_text())
    assert all(
        set(section) <= {"topics", "client", "conf", "group_overrides", "expected_members"}
        for section in sections.values()
    )
    assert not any(section[table] for section in sections.values() for table in section)


def test_reference_has_every_section() -> None:
    """Every section and free table has its heading in the file, so that a line can be uncommented where it stands."""
    headings = set(re.findall(r"^\[(.+)\]$", REFERENCE.read_text(), re.MULTILINE))
    sections = {path if path in TABLES else path.rpartition(".")[0] for path in FIELDS}
    assert headings == sections


def _empty(folder: Path) -> str:
    (folder / "empty.toml").write_text("")
    return "empty.toml"
