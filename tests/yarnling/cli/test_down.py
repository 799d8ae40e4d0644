"""`yarnling down` for clusters whose supervisor has already died."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.yarnling.test_clean_up import state
from yarnling.cli.down import stop_all, stop_one


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_a_cluster_without_supervisor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state(tmp_path / "cluster").write()
    stop_one("mine", as_json=False)
    assert capsys.readouterr().out == "The supervisor of cluster mine had already died; no processes remained.\n"
    state(tmp_path / "cluster").write()
    stop_one("mine", as_json=True)
    assert json.loads(capsys.readouterr().out) == {"name": "mine", "killed": 0}


def test_all_clusters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stop_all(as_json=False)
    assert capsys.readouterr().out == "No cluster is up.\n"
    stop_all(as_json=True)
    assert json.loads(capsys.readouterr().out) == []
    state(tmp_path / "cluster").write()
    stop_all(as_json=True)
    assert json.loads(capsys.readouterr().out) == [{"name": "mine", "killed": 0}]
