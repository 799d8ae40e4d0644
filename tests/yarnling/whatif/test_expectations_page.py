"""docs/what-if-examples.md: each command prints what the page says, and the grammar is complete."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from yarnling.cli.app import app
from yarnling.whatif.expectation_file import read_expectations
from yarnling.whatif.expectations import PHRASES
from yarnling.whatif.measures import MEASURES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/what-if-examples.md").read_text()
NAMES = ["move-capacity", "preemption", "user-limits", "autoscaling", "upgrade", "goals", "contradiction"]
EXAMPLES = re.findall(
    r"```\n\$ yarnling (simulate (?:compare|search) .*?)\n\n(.*?)```\n\nExit status (\d)", PAGE, re.DOTALL
)


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def test_the_page_has_all_examples() -> None:
    assert len(EXAMPLES) == len(NAMES)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("command", "printed", "status"), EXAMPLES, ids=NAMES)
def test_an_example_prints_what_the_page_says(
    command: str, printed: str, status: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, shlex.split(command.replace("\\\n", " ")))
    assert lines_of(answer.stdout) == lines_of(printed)
    assert answer.exit_code == int(status)


@pytest.mark.parametrize(
    "section", re.split(r"^## ", PAGE, flags=re.MULTILINE)[1 : len(NAMES) + 1], ids=lambda text: text.split("\n")[0]
)
def test_the_text_repeats_only_figures_that_were_printed(section: str) -> None:
    _, printed, text = section.split("```")
    figures = re.findall(r"\d[\d.,]*(?<![.,]) (?:ms|s|min|h|%|containers)(?!\w)", text)
    assert len(figures) > 2
    assert [figure for figure in figures if figure.removesuffix(" containers") not in printed] == []


def test_the_page_has_every_measure_and_phrase() -> None:
    assert [name for name in (*MEASURES, *PHRASES) if f"`{name}`" not in " ".join(PAGE.split())] == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/what-if/*/expect.yaml")), ids=lambda path: path.parent.name)
def test_the_files_of_expectations_are_valid(path: Path) -> None:
    assert read_expectations(path)


def test_the_expectations_of_the_page_are_valid(tmp_path: Path) -> None:
    (tmp_path / "expect.yaml").write_text(re.findall(r"```yaml\n(about.*?)```", PAGE, re.DOTALL)[0])
    assert len(read_expectations(tmp_path / "expect.yaml")) == 5
