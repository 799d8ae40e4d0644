"""The mission's cases and the rules of the scheduler as text, compared byte for byte (see script.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.script import Script

_FILES = sorted((Path(__file__).parent / "scripts").rglob("*.txt"))


def _parameters() -> list[object]:
    return [pytest.param(path, id=path.stem, marks=_marks(Script.read(path))) for path in _FILES]


def _marks(script: Script) -> list[pytest.MarkDecorator]:
    return [
        *(pytest.mark.case(case) for case in script.cases),
        *(pytest.mark.hadoop_method(method) for method in script.hadoop),
    ]


@pytest.mark.parametrize("path", _parameters())
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    """The commands have the output that the file shows, and every invariant holds after each of them."""
    replayed = Script.read(path).replay()
    if request.config.getoption("--rewrite", False):
        path.write_text(replayed, encoding="utf-8")
    assert replayed == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_every_scenario_names_its_case_or_its_hadoop_method(path: Path) -> None:
    """Each names a case, or the Hadoop method with its rule or numbers; and file names are unique."""
    script = Script.read(path)
    assert script.cases or script.hadoop, "no line `# case: A1` or `# hadoop: LeafQueue.assignContainers`"
    assert [other for other in _FILES if other.stem == path.stem] == [path]
