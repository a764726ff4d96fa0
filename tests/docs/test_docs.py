"""The pages say nothing that is not so: links lead somewhere, commands, options and settings exist."""

from __future__ import annotations

import functools
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

import heartwheel
from heartwheel.front.cli.app import app
from heartwheel.readers.dashboard.docs_page import troubleshooting_page
from heartwheel.settings import FIELDS, load_settings
from heartwheel.settings.keys import GONE, SECTIONS, table_of
from heartwheel.wire.verdicts import ExpiryReason

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
ids = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def prose(page: Path) -> str:
    """Give a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Name the headings of a page as links do."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    plain = (re.sub(r"[`*]", "", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def test_page_reads_on_in_sections_that_are_there() -> None:
    """What health and the groups' page name as further reading is a section of the page that the dashboard serves."""
    health = (ROOT / "streaming/heartwheel/readers/live/health.py").read_text(encoding="utf-8")
    words = (ROOT / "streaming/heartwheel/readers/dashboard/page/js/words.js").read_text(encoding="utf-8")
    (named,) = re.findall(r"TROUBLE_TOPICS = new Set\(\[(.*?)\]\)", words)
    topics = re.findall(r'topic="([\w-]+)"', health) + re.findall(r'"([\w-]+)"', named)
    assert len(topics) >= 8
    served = re.findall(r'<h[1-6] id="([^"]+)"', troubleshooting_page(""))
    assert set(topics) <= set(served) == anchors(ROOT / "docs" / "troubleshooting.md")


def test_program_names_sections_that_are_there() -> None:
    """Errors, hints and comments lead to pages, and to sections of them, that a reader finds."""
    sources = (file.read_text(encoding="utf-8") for file in sorted((ROOT / "streaming").rglob("*.py")))
    named = {each for text in sources for each in re.findall(r"\bdocs/([\w-]+\.md)(?:#([\w-]+))?", text)}
    assert any(section for _, section in named)
    lost = {(page, section) for page, section in named if not (ROOT / "docs" / page).exists()}
    assert lost == set()
    assert {
        (page, section) for page, section in named if section and section not in anchors(ROOT / "docs" / page)
    } == set()


def commands(page: Path) -> Iterator[list[str]]:
    """List the commands of the program that a page shows, in blocks and in sentences, as words."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    for line in lines + spans:
        words = shlex.split(line, comments=True) if line.startswith(("heartwheel ", "HEARTWHEEL_")) else []
        while words and re.match(r"HEARTWHEEL_\w+=", words[0]):
            words.pop(0)
        if words[1:]:
            yield words[1 : words.index("|")] if "|" in words else words[1:]


@functools.cache
def options() -> dict[str, set[str]]:
    """Name the options of each command of the program."""
    program = typer.main.get_command(app)
    return {
        name: {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for name, command in program.commands.items()  # type: ignore[attr-defined] # a group has commands
    }


@ids
def test_links_lead_somewhere(page: Path) -> None:
    """Every link to a file, a heading or an image has its end; those to other sites are not asked."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if "://" in target:
            continue
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@ids
def test_commands_and_options_exist(page: Path) -> None:
    """Every command that a page shows is one, with options that it has."""
    for name, *words in commands(page):
        if name == "--version":
            continue  # the program's own option
        assert name in options(), name
        ours = words[: words.index("--")] if "--" in words else words  # behind it stands somebody else's command
        used = {word.partition("=")[0] for word in ours if word.startswith("--")}
        assert used - options()[name] == set(), name


@ids
def test_settings_exist(page: Path) -> None:
    """Every setting that a page names in a flag, a variable or a sentence is one.

    `replay` has names of its own, and properties of Spark look like settings of the section.
    """
    text = page.read_text(encoding="utf-8")
    flags = [
        words[at + 1].partition("=")[0]
        for words in commands(page)
        if words[0] != "replay"
        for at, word in enumerate(words)
        if word == "--set"
    ]
    variables = [name.lower().replace("__", ".") for name in re.findall(r"HEARTWHEEL_([A-Z_]*__[A-Z_]+)", text)]
    sections = "|".join(sorted({section.partition(".")[0] for section in SECTIONS} - {"spark"}))
    spoken = re.findall(rf"`((?:{sections})\.[a-z_.]+)(?:=[^`]*| = [^`]*)?`", prose(page))
    unknown = [
        path
        for path in {*flags, *variables, *spoken}
        if path not in FIELDS and path not in SECTIONS and path not in GONE and not table_of(path)
    ]
    assert unknown == []


def test_configuration_on_the_pages_is_valid(tmp_path: Path) -> None:
    """Each block of TOML loads, with the files that it names."""
    for page in PAGES:
        for block in re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            for path in re.findall(r'"(?:file:)?(/[^"]+)"', block):
                (tmp_path / Path(path).name).write_text("a-secret-of-32-characters-or-more")
            file = tmp_path / "heartwheel.toml"
            file.write_text(re.sub(r'"(file:)?/[^"]*/([^"/]+)"', rf'"\1{tmp_path}/\2"', block))
            assert load_settings(file).settings


def test_every_page_is_in_the_index() -> None:
    """Whoever looks for a page finds it in docs/README.md."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if page.name != "README.md" and f"]({page.name})" not in index] == []


def test_the_readme_is_short_and_shows_both_doors_first() -> None:
    """Before the second heading stands what to run with a Kafka, what to run with workers, and where to read on."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    first = text.partition("\n## ")[0]
    for wanted in ("heartwheel explain ", "make demo", "](docs/architecture.md)", "](docs/README.md)"):
        assert wanted in first, wanted


def test_links_of_the_readme_and_of_contributing_lead_somewhere() -> None:
    """The pages at the root link to what is there, as those in docs/ do."""
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        test_links_lead_somewhere(page)


def test_every_room_is_on_the_page_of_architecture() -> None:
    """Whoever sees a folder of the package finds on one page, and in the package's docstring, what it is for."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## The rooms")[2]
    package = ROOT / "streaming" / "heartwheel"
    rooms = {file.parent.name for depth in ("*", "*/*") for file in package.glob(f"{depth}/__init__.py")}
    assert len(rooms) > 25
    assert {room for room in rooms if f"`{room}`" not in page} == set()
    unnamed = {room for room in rooms if f"`{room}`" not in (heartwheel.__doc__ or "")}
    assert unnamed == {"broker", "http_server", "operations_job"}


def test_the_glossary_is_short() -> None:
    """The words that a newcomer has to learn are fifteen at most."""
    glossary = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Glossary")[2]
    assert 5 < len(re.findall(r"^\| (?!word|--)", glossary, re.MULTILINE)) <= 15


def test_alerts_lead_to_the_runbook() -> None:
    """Every runbook that an alert names is a heading of the page."""
    rules = (ROOT / "docker" / "prometheus" / "rules" / "heartwheel.yml").read_text(encoding="utf-8")
    named = re.findall(r"runbook: docs/troubleshooting\.md#([\w-]+)", rules)
    assert len(named) >= 5
    assert set(named) <= anchors(ROOT / "docs" / "troubleshooting.md")


def test_a_console_consumer_s_lines_become_a_log() -> None:
    """The sed of the page on timeouts turns what the console consumer prints into lines that replay reads."""
    page = (ROOT / "docs" / "tune-timeouts.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"sed -E '(.+)' >", page)
    line = 'LogAppendTime:1795240119080\t{"group_id":"orders","member_id":"a"}\n'
    done = subprocess.run(["sed", "-E", script], input=line, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"t_ms": 1795240119080, "group_id": "orders", "member_id": "a"}


def test_the_page_on_the_dashboard_has_its_words() -> None:
    """Reasons are called as on the screen, so that a person finds them."""
    words = (ROOT / "streaming/heartwheel/readers/dashboard/page/js/words.js").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "dashboard.md").read_text(encoding="utf-8")
    reasons = re.findall(r'(\w+): \{\s*label: "([^"]+)"', words.partition("const REASONS")[2].partition("\n};")[0])
    assert {name for name, _ in reasons} == set(ExpiryReason)
    timers = {label: name.replace("_", " ") for name, label in reasons if name.endswith("_timeout")}
    assert [label for _, label in reasons if f"| {label} | {timers.get(label, 'none')} |" not in page] == []
