"""The check for import cycles finds those that only type checkers see."""

from __future__ import annotations

import sys
from pathlib import Path

import grimp
import pytest

from scripts.cycles import cycles


def test_a_cycle_through_type_checking_imports_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "knotted"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("from knotted import two\n")
    (package / "two.py").write_text("from knotted import three\n")
    (package / "three.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from knotted import one\n"
    )
    (package / "four.py").write_text("from knotted import one\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    graph = grimp.build_graph("knotted", cache_dir=None)
    assert list(cycles(graph)) == [["knotted.one", "knotted.three", "knotted.two"]]
