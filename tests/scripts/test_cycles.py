"""The check for import cycles finds those that only type checkers see, and folders that import each other."""

from __future__ import annotations

import sys
from pathlib import Path

import grimp
import pytest

from scripts.cycles import cycles, pairs


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


def test_two_folders_that_import_each_other_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "mutual"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "__init__.py").write_text("")
    (package / "top.py").write_text("from mutual.inner import used\n")
    (package / "inner" / "used.py").write_text("")
    (package / "inner" / "user.py").write_text("from mutual import base\n")
    (package / "base.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    graph = grimp.build_graph("mutual", cache_dir=None)
    assert list(cycles(graph)) == []
    there, back = "mutual.top -> mutual.inner.used", "mutual.inner.user -> mutual.base"
    assert pairs(graph) == {("mutual", "mutual.inner"): (there, back)}
