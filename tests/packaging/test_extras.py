"""The distributions as people install them: built, put into environments with one extra each, and run without Java."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from heartwheel.front.cli.commands import COMMANDS, function_of
from heartwheel.front.cli.extras import ALL, EXTRAS
from support.distributions import FOLDERS, ROOT, build, empty_environment, environment, needed, pip, requirements_of
from support.job import wait_for
from support.lone_commands import ARGUMENTS, run_alone

LOG = str(ROOT / "tests" / "explain" / "logs" / "3.9.1" / "server.log")
RECORDING = str(ROOT / "tests" / "recordings" / "kill-one" / "events.jsonl")
BASE = {"msgspec", "pydantic", "rich", "typer"}
BASE_BYTES_MAX = 60_000_000
ROOMS = {
    "": ("wire", "settings", "engine.rules", "engine.replay"),
    "kafka": ("proof.audit", "proof.members", "sources.tap"),
    "page": ("readers", "sources.explain", "sources.gateway", "sources.watch"),
    "mcp": ("sources.mcp_server",),
    "job": ("engine",),
}
"""The packages of heartwheel behind the commands of each extra."""

LOADS_ALL = """
import importlib, pkgutil, sys
for room in sys.argv[1:]:
    package = importlib.import_module(f"heartwheel.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
"""
Built = dict[str, tuple[Path, Path]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build both distributions."""
    return {name: build(folder, tmp_path_factory.mktemp(name)) for name, folder in FOLDERS.items()}


@pytest.fixture(scope="module")
def python_of(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that makes the environment of an extra once, and returns its interpreter."""
    made: dict[str, Path] = {}

    def interpreter(extra: str) -> Path:
        if extra not in made:
            made[extra] = environment(tmp_path_factory.mktemp(extra or "base"), built["heartwheel"][0], extra)
        return made[extra]

    return interpreter


def heartwheel(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the installed program, without Java on its path."""
    program = str(python.with_name("heartwheel"))
    return subprocess.run([program, *words], env={"PATH": ""}, capture_output=True, text=True, check=False, timeout=100)


def beat_of(distribution: str, python: Path) -> int:
    """Let a distribution's own program beat for a worker that fails; return the exit code."""
    program = {"heartwheel": ["heartwheel", "beat"], "heartwheel-beats": ["heartwheel-beat"]}[distribution]
    words = ["--group", "g", "--to", "http://127.0.0.1:1", "--", str(python), "-c", "raise SystemExit(3)"]
    command = [str(python.with_name(program[0])), *program[1:], *words]
    return subprocess.run(command, env={"PATH": ""}, check=False, timeout=100).returncode


def test_extras_are_those_of_the_project() -> None:
    """The table of extras has the packages that pyproject.toml names, and no extra is without a command."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {Requirement(text).name for text in project["dependencies"]} == BASE
    provider = metadata.packages_distributions()
    for extra, modules in EXTRAS.items():
        asked = [Requirement(text) for text in project["optional-dependencies"][extra]]
        inner = {name for each in asked if each.name == "heartwheel" for of in each.extras for name in EXTRAS[of]}
        own = {canonicalize_name(provider[module][0]) for module in set(modules) - inner}
        assert inner <= set(modules)
        assert own == {each.name for each in asked} - {"heartwheel"}
    assert {entry.extra for entry in COMMANDS.values()} == {"", ALL, *EXTRAS}


def test_readme_names_the_extra_of_each_command() -> None:
    """The README's table of commands has them all, each with its extra."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`heartwheel [^|]+) \| ?(\w*) \|", readme, re.MULTILINE)
    shown = {command: extra for cell, extra in rows for command in re.findall(r"heartwheel (\w+)", cell)}
    assert shown == {name: entry.extra for name, entry in COMMANDS.items()}


def test_summaries_are_of_commands_that_exist() -> None:
    """Each line of the table is a command's, whose function is found by its name."""
    assert [name for name in COMMANDS if not function_of(name).__doc__] == []


@pytest.mark.parametrize("name", FOLDERS)
def test_the_source_builds_the_same_wheel(name: str, built: Built, tmp_path: Path) -> None:
    """The source distribution holds all that the wheel is built of, and no file that is not tracked."""
    wheel, source = built[name]
    with tarfile.open(source) as opened:
        opened.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    again, _ = build(folder, tmp_path / "dist")
    with ZipFile(wheel) as one, ZipFile(again) as other:
        assert {each: one.read(each) for each in one.namelist()} == {
            each: other.read(each) for each in other.namelist()
        }
    tracked = subprocess.run(["git", "ls-files"], cwd=FOLDERS[name], capture_output=True, text=True, check=True)
    with tarfile.open(source) as opened:
        files = [(FOLDERS[name] / each.partition("/")[2]).resolve() for each in opened.getnames()]
    held = {str(file.relative_to(FOLDERS[name])) for file in files}
    assert held - set(tracked.stdout.splitlines()) <= {"PKG-INFO", ".gitignore"}


@pytest.mark.proof
@pytest.mark.parametrize("extra", ["page", "kafka", "job"])
def test_an_extra_has_all_that_its_commands_import(extra: str, python_of: Callable[[str], Path]) -> None:
    """Without Java and Kafka each command of an extra says so, and misses no package."""
    python, names = python_of(extra), [name for name, entry in COMMANDS.items() if entry.extra == extra]
    with ThreadPoolExecutor(len(names)) as pool:
        for code, err, out in pool.map(lambda name: run_alone(name, python), names):
            assert not re.search("Traceback|needs the extra|No module", err), err
            assert "error: " in err or out or not code


@pytest.mark.parametrize("extra", ROOMS)
def test_an_extra_has_all_that_its_rooms_import(extra: str, python_of: Callable[[str], Path]) -> None:
    """Every module behind the commands of an extra can be imported where only that extra is installed."""
    command = [str(python_of(extra)), "-c", LOADS_ALL, *ROOMS[extra]]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run_in(python: Path, *lines: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run commands one after the other in one process, which costs a twentieth of one each; print their exit codes."""
    code = "import json, sys; from heartwheel.front.cli.app import run; print(*map(run, json.loads(sys.argv[1])))"
    return subprocess.run(
        [str(python), "-c", code, json.dumps(lines)],
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )


def test_the_base_names_the_extra_of_every_other_command(python_of: Callable[[str], Path]) -> None:
    """A command whose packages are missing is one line and exit code 2."""
    extras = {name: entry.extra for name, entry in COMMANDS.items() if entry.extra}
    done = run_in(python_of(""), *((name, *ARGUMENTS[name]) for name in extras))
    assert done.stdout.split() == ["2"] * len(extras)
    assert done.stderr.splitlines() == [
        f'error: heartwheel {name} needs the extra "{extra}"; hint: pip install "heartwheel[{extra}]"'
        for name, extra in extras.items()
    ]


def test_help_of_every_command_needs_no_extra(python_of: Callable[[str], Path]) -> None:
    """The base shows the help of each command, and which extra it needs."""
    shown = heartwheel(python_of(""), "--help").stdout
    for extra in (*EXTRAS, ALL):
        commands = re.findall(
            r"^  (\w+) ", shown.partition(f'With "heartwheel[{extra}]":\n')[2].partition("\n\n")[0], re.MULTILINE
        )
        assert commands == [name for name, entry in COMMANDS.items() if entry.extra == extra]
    done = run_in(python_of(""), *((name, "--help") for name in COMMANDS))
    assert done.stdout.splitlines()[-1].split() == ["0"] * len(COMMANDS)


def test_the_base_explains_replays_and_beats(python_of: Callable[[str], Path]) -> None:
    """A log, a recording, the settings and a worker: what needs neither an extra nor Java."""
    python = python_of("")
    explained = heartwheel(python, "explain", LOG)
    assert explained.returncode == 0
    assert "thrown out by its session timeout" in explained.stdout
    assert "member_expired" in heartwheel(python, "replay", RECORDING).stdout
    assert "as it was" in heartwheel(python, "replay", RECORDING, "--what-if", "session_timeout=1s").stdout
    assert "engine.shards" in heartwheel(python, "config").stdout
    assert (
        "A max.poll.interval.ms of 14.1 s would have prevented 1 of 1 removal"
        in heartwheel(python, "advise", LOG).stdout
    )
    assert beat_of("heartwheel", python) == 3


def test_a_log_is_watched_with_nothing_but_the_page(python_of: Callable[[str], Path], tmp_path: Path) -> None:
    """No Java, no Spark and no way to this source: the page and its files, and what the log says of its time."""
    program = str(python_of("page").with_name("heartwheel"))
    command = [program, "watch", LOG, "--port", "0", "--history", str(tmp_path / "history.db")]
    with subprocess.Popen(
        command, env={"PATH": ""}, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            wait_for(lambda: httpx.get(f"{url}readyz").status_code == 200, "a watcher that has read its log")
            page = httpx.get(f"{url}timeline").text
            files = re.findall(r'(?:href|src)="/(page/[^"]+)"', page)
            assert {httpx.get(url + file).status_code for file in (*files, "page/js/pages/timeline.js")} == {200}
            of_log = {"since_ms": 1_795_313_500_000, "until_ms": 1_795_313_600_000}
            assert httpx.get(f"{url}api/lanes", params=of_log).json()["removals"] == 4
            assert "spark" not in Path(f"/proc/{process.pid}/maps").read_text().lower()
        finally:
            process.terminate()
        assert process.wait(30) == 0
    removed = heartwheel(python_of(""), "explain", "--history", str(tmp_path / "history.db"), "--only", "out", "--json")
    assert len(removed.stdout.splitlines()) == 4


@pytest.mark.parametrize(
    ("words", "extra", "user"),
    [
        (("explain", "--page", LOG), "page", "heartwheel explain --page"),
        (("beat", "--group", "g", "--", "true"), "kafka", "heartwheel beat to Kafka"),
    ],
)
def test_an_option_that_needs_an_extra_names_it(
    words: tuple[str, ...], extra: str, user: str, python_of: Callable[[str], Path]
) -> None:
    """Commands of the base with an option that needs more say so in the same words."""
    ended = heartwheel(python_of(""), *words)
    assert ended.returncode == 2
    assert ended.stderr == f'error: {user} needs the extra "{extra}"; hint: pip install "heartwheel[{extra}]"\n'


@pytest.mark.proof
def test_pip_installs_four_packages_for_the_base(built: Built, tmp_path: Path) -> None:
    """From an index: the four, what they need, and no more than 60 MB."""
    wheel = built["heartwheel"][0]
    python = empty_environment(tmp_path)
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = tmp_path / "pins.txt"
    pins.write_text("\n".join(re.findall(r"^[\w.-]+==[^ ;\\]+", lock, re.MULTILINE)))
    done = pip(python, "install", "--constraint", str(pins), str(wheel))
    if done.returncode and re.search(r"No matching distribution|[Cc]onnection|timed out", done.stderr):
        pytest.skip(f"no index can be reached here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    installed = {each["name"] for each in json.loads(pip(python, "list", "--format", "json").stdout)}
    named = {name.lower().replace("_", "-") for name in installed}
    assert named == {"heartwheel", *needed(requirements_of(wheel), "")}
    assert heartwheel(python, "explain", LOG).returncode == 0
    size = sum(file.lstat().st_blocks * 512 for file in (tmp_path / "lib").rglob("*"))
    assert size <= BASE_BYTES_MAX


def test_beats_run_with_nothing_else(built: Built, tmp_path: Path) -> None:
    """A worker's distribution brings no other, starts it and passes its exit code on."""
    wheel = built["heartwheel-beats"][0]
    python = environment(tmp_path, wheel, "")
    assert needed(requirements_of(wheel), "") == set()
    assert beat_of("heartwheel-beats", python) == 3
    assert needed(requirements_of(wheel), "kafka") == {"kafka-python"}


def test_removing_one_distribution_leaves_the_other_whole(built: Built, tmp_path: Path) -> None:
    """The two have no file in common: one that is installed and removed again changes nothing of the other."""
    first, second = FOLDERS
    python = environment(tmp_path, built[first][0], "")
    for kept, removed in ((first, second), (second, first)):
        pip(python, "install", "--no-index", "--no-deps", str(built[second][0])).check_returncode()
        pip(python, "uninstall", "--yes", removed).check_returncode()
        assert beat_of(kept, python) == 3
    names = [set(ZipFile(wheel).namelist()) for wheel, _ in built.values()]
    assert set.intersection(*names) == set()
