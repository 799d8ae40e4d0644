"""The workflow, the image and the dev container run commands of the README, which work in a clean directory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
README = "\n".join((ROOT / name).read_text() for name in ("README.md", "docs/commands.md"))
DOCKERFILE = (ROOT / "examples/ci/Dockerfile").read_text()
DEV_CONTAINER = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
WORKFLOW = yaml.safe_load((ROOT / "examples/ci/github-actions.yml").read_text())
PATH_OF_COMMANDS = 'echo "$PWD/.venv/bin" >> "$GITHUB_PATH"'
INSTALL_FOR_TESTS = "pip install . pytest"


def commands_of(text: str) -> set[str]:
    """The lines of the text's blocks of code, without comments."""
    return {re.sub(r"\s+#.*", "", line).strip() for line in text.splitlines()}


def steps(job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = WORKFLOW["jobs"][job]["steps"]
    return [step for step in found if "run" in step]


def test_the_workflow_runs_the_commands_of_the_readme() -> None:
    commands = [step["run"] for step in steps("commands")]
    assert set(commands) - commands_of(README) == {PATH_OF_COMMANDS}
    assert commands[:2] == ["scripts/install --run", PATH_OF_COMMANDS]
    assert steps("commands")[-1] == {"if": "always()", "run": "yarnling down"}
    assert [step["run"] for step in steps("tests")] == [INSTALL_FOR_TESTS, "pytest examples/ci"]


def test_actions_have_a_major_version() -> None:
    used = [step["uses"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "uses" in step]
    assert used
    assert [action for action in used if not re.fullmatch(r"actions/[a-z-]+@v\d+", action)] == []


def test_the_image_installs_as_the_readme_and_starts_its_cluster() -> None:
    (install,) = re.findall(r"^RUN (scripts.*)$", DOCKERFILE, re.MULTILINE)
    (started,) = re.findall(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)
    assert install in commands_of(README)
    assert " ".join(json.loads(started)) + " --detach" in commands_of(README)
    ignored = (ROOT / "examples/ci/Dockerfile.dockerignore").read_text().split()
    assert {".git", ".venv*"} <= set(ignored)


def test_the_dev_container_installs_as_a_contributor_does() -> None:
    first_words = {line.split("  ")[0] for line in commands_of((ROOT / "CONTRIBUTING.md").read_text())}
    assert DEV_CONTAINER["postCreateCommand"] in first_words
    assert DEV_CONTAINER["remoteEnv"]["PATH"].startswith("${containerWorkspaceFolder}/.venv/bin:")


def run(command: str, directory: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-e", "-c", command], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    """The files of the checkout that are under version control, or would be, in an empty directory."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.split("\0")[:-1]:
        if (ROOT / name).exists():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes((ROOT / name).read_bytes())
            (tmp_path / name).chmod((ROOT / name).stat().st_mode)
    return tmp_path


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of a job, with a Python that has only pip and a cluster of its own."""
    job = tmp_path_factory.mktemp("job")
    venv.create(job / "python", with_pip=True)
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV", "YARNLING"))
    }
    paths = f"{job / 'python' / 'bin'}{os.pathsep}{kept['PATH']}"
    return kept | {"PATH": paths, "GITHUB_PATH": str(job / "path"), "YARNLING_NAME": f"ci-{os.getpid()}"}


@pytest.mark.cluster
@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("job", ["commands", "tests"])
def test_the_jobs_run_in_a_clean_directory(job: str, clean: Path, environment: dict[str, str]) -> None:
    added = Path(environment["GITHUB_PATH"])
    try:
        for step in steps(job):
            if step.get("if") != "failure()":
                paths = added.read_text().splitlines() if added.exists() else []
                run(step["run"], clean, environment | {"PATH": os.pathsep.join([*paths, environment["PATH"]])})
    finally:
        subprocess.run([sys.executable, "-m", "yarnling", "down"], cwd=ROOT, env=environment, check=False)


@pytest.mark.cluster
@pytest.mark.slow
def test_the_example_test_passes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "examples/ci"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
