"""llms.txt: what docs/README.md says, for language models."""

from __future__ import annotations

import re

from support.llms_txt import ROOT, llms_txt


def test_it_is_what_the_index_of_the_documents_says() -> None:
    """After a change of docs/README.md: make llms."""
    assert (ROOT / "llms.txt").read_text(encoding="utf-8") == llms_txt()


def test_every_page_is_in_it_and_every_link_leads_to_a_file() -> None:
    """Each page of docs has its line, by a path from the root on."""
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", llms_txt(), re.MULTILINE)
    assert [path for path in links if not (ROOT / path).exists()] == []
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} - {"docs/README.md"}
    assert pages <= set(links)
