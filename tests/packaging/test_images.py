"""The images `watch` and `job`: what is installed in them, from which lock, and that nothing else is needed to run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.dockerfile import ROOT, Step, stages

STAGES = stages()
IMAGES = ("watch", "job")
READERS = (
    *("dashboard", "gateway", "notify", "top", "topics", "doctor", "audit"),
    *("explain", "replay", "beat", "config", "tap"),
)


def locks_of(stage: str) -> list[str]:
    """List the locks that a stage installs."""
    return re.findall(r"-r (\S+\.lock)", "\n".join(step.value for step in STAGES[stage] if step.keyword == "RUN"))


def test_the_stages_are_known() -> None:
    """Both images come from one file and one wheel; an image without a target is the whole."""
    assert list(STAGES) == ["base", "wheel", "watch", "job"]
    for image in IMAGES:
        assert Step("COPY", "--from=wheel /dist /dist") in STAGES[image]


def test_the_image_of_readers_has_no_jvm() -> None:
    """No package of Debian is installed in `watch`, and its lock names neither Spark nor what Spark needs."""
    assert locks_of("watch") == ["requirements-watch.lock"]
    assert not any("apt-get" in step.value for step in STAGES["watch"])
    pins = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements-watch.lock").read_text(), re.MULTILINE))
    assert "starlette" in pins
    assert pins & {"pyspark", "py4j", "numpy", "pandas", "pyarrow"} == set()


def test_the_image_of_the_job_has_everything() -> None:
    """`job` installs the whole lock by the locked tools, Java, an init process, and links Spark's connector."""
    assert locks_of("job") == ["requirements-build.lock", "requirements.lock"]
    text = "\n".join(step.value for step in STAGES["job"])
    assert {"openjdk-17-jre-headless", "procps", "tini"} <= set(text.split())
    assert "python -m heartwheel.kafka.broker.jars spark" in text
    assert (ROOT / "docker" / "spark" / "main.py").is_file()


@pytest.mark.parametrize("stage", STAGES)
def test_every_step_is_a_script(stage: str) -> None:
    """The shell can read each RUN of the Dockerfile, and it ends at the first command that fails."""
    for step in STAGES[stage]:
        if step.keyword == "RUN":
            subprocess.run(["sh", "-n", "-c", step.value], check=True, capture_output=True)
            assert ";" not in re.sub(r"'[^']*'", "", step.value)


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_runs_without_rights(image: str) -> None:
    """It runs as a user without rights, who owns nothing that is executed."""
    steps = STAGES[image]
    users = [step.value for step in steps if step.keyword == "USER"]
    assert users == ["heartwheel"]
    after = steps[steps.index(Step("USER", "heartwheel")) :]
    assert {step.keyword for step in after} == {"USER", "VOLUME", "ENTRYPOINT", "CMD"}
    text = "\n".join(step.value for step in steps)
    assert "useradd --create-home --uid 1000 heartwheel" in text
    given = [word for words in re.findall(r"\bchown ([^&\n]*)", text) for word in words.split()]
    folders = {"/var/lib/heartwheel", *(("/opt/spark/work-dir", '"$HEARTWHEEL_CACHE/logs"') if image == "job" else ())}
    assert set(given) == {"heartwheel", *folders}
    assert "chmod" not in text
    assert "--chown" not in text


def _build(target: str, root: Path) -> dict[str, str]:
    """Do in a folder what a build does, without Docker and root: COPY, ENV, and RUN of all but users and owners."""
    env = {"PATH": os.environ["PATH"], "HOME": str(root)}
    folder = root
    for step in STAGES[target]:
        value = re.sub(r"(?<![\w.])/(?=(?:opt|var|dist)\b)", f"{root}/", step.value)
        match step.keyword:
            case "WORKDIR":
                folder = Path(value)
                folder.mkdir(parents=True, exist_ok=True)
            case "ENV":
                for name, text in re.findall(r"(\w+)=(\S+)", value):
                    env[name] = text.replace("$PATH", env["PATH"])
            case "COPY" if "--from=" in value:
                stage = re.findall(r"--from=(\w+)", value)[0]
                shutil.copytree(root.parent / stage / "dist", root / "dist")
            case "COPY":
                *sources, place = value.split()
                for source in sources:
                    end = folder / place
                    if (ROOT / source).is_dir():
                        shutil.copytree(ROOT / source, end, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
                    else:
                        end.mkdir(parents=True, exist_ok=True)
                        shutil.copy(ROOT / source, end)
            case "RUN" if "useradd" not in value:
                done = subprocess.run(
                    ["/bin/sh", "-ec", value], cwd=folder, env=env, capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, f"{value}\n{done.stderr}"
    return env


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_what_the_image_of_readers_installs_runs_without_java(tmp_path: Path) -> None:
    """The steps of `watch`, done in an empty environment, give its commands in 200 MB; two builds give one wheel."""
    _build("wheel", tmp_path / "wheel")
    _build("wheel", tmp_path / "again" / "wheel")
    (wheel,) = (tmp_path / "wheel" / "dist").iterdir()
    assert wheel.read_bytes() == (tmp_path / "again" / "wheel" / "dist" / wheel.name).read_bytes()
    env = _build("watch", tmp_path / "watch")
    bin_folder = tmp_path / "watch" / "opt" / "venv" / "bin"
    only = {"PATH": str(bin_folder), "HEARTWHEEL_CACHE": env["HEARTWHEEL_CACHE"]}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, env=only, cwd=tmp_path, capture_output=True, text=True, check=False)

    for command in READERS:
        shown = run(str(bin_folder / "heartwheel"), command, "--help")
        assert shown.returncode == 0, f"{command}: {shown.stderr}"
    found = run(str(bin_folder / "python"), "-c", "import pyspark")
    assert "No module named 'pyspark'" in found.stderr
    refused = run(str(bin_folder / "heartwheel"), "topics", "--bootstrap-servers", "127.0.0.1:1")
    assert "no Kafka answers at 127.0.0.1:1" in refused.stderr
    size = sum(file.stat().st_size for file in bin_folder.parent.rglob("*") if file.is_file() and not file.is_symlink())
    assert size < 200e6
