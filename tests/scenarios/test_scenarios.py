"""The mission's cases and the rules of the scheduler as text, compared byte for byte (see script.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.script import Script

_FILES = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


def _parameters() -> list[object]:
    return [
        pytest.param(path, id=path.stem, marks=[pytest.mark.case(case) for case in Script.read(path).cases])
        for path in _FILES
    ]


@pytest.mark.parametrize("path", _parameters())
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    """What the commands do is what the file says, and every invariant holds after each of them."""
    replayed = Script.read(path).replay()
    if request.config.getoption("--rewrite", False):
        path.write_text(replayed, encoding="utf-8")
    assert replayed == path.read_text(encoding="utf-8")
