"""The index of the documents for language models, llms.txt, made from docs/README.md: `make llms` writes it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)\)")
_WITH_CODE: Final = re.compile(r"[`*]")


def llms_txt() -> str:
    """Return the text of llms.txt: what heartwheel is, and each page with what a reader wants of it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    title, question, about = re.findall(r"^# (.+)\n\n\*\*(.+)\*\*\n\n(.+?\.) ", readme)[0]
    table, _, rest = index.partition("\n\nEvery setting")
    lines = [f"# {title}", "", f"> {question} {about}", "", "## Documents", ""]
    lines += list(_entries(table))
    lines += ["", "## Optional", "", *(f"- [{name}]({path})" for name, path in _links(f"Every setting{rest}"))]
    return "\n".join(lines) + "\n"


def _entries(table: str) -> Iterator[str]:
    """Yield a line for each page of the table, with what its reader wants; a page that comes twice has one line."""
    seen = set[str]()
    for wanted, pages in re.findall(r"^\| (?!I want to|---)(.+?) \| (.+) \|$", table, re.MULTILINE):
        for name, path in _links(pages):
            if path not in seen:
                seen.add(path)
                yield f"- [{name}]({path}): to {_WITH_CODE.sub('', wanted)}"


def _links(text: str) -> list[tuple[str, str]]:
    """Return the names and paths of a text's links, the paths from the root of the project on."""
    found = [(_WITH_CODE.sub("", name), Path("docs") / path) for name, path in _LINK.findall(text)]
    return [(name, str((ROOT / path).resolve().relative_to(ROOT))) for name, path in found]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(llms_txt(), encoding="utf-8")
