"""What `yarnling down` says of clusters that have nothing left to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.yarnling.test_clean_up import state
from yarnling.cli.down import end_all, end_one


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_one_that_ended_without_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state(tmp_path / "cluster").write()
    end_one("mine", as_json=False)
    assert capsys.readouterr().out == "Cluster mine had ended without a word; nothing of it was left.\n"
    state(tmp_path / "cluster").write()
    end_one("mine", as_json=True)
    assert json.loads(capsys.readouterr().out) == {"name": "mine", "killed": 0}


def test_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    end_all(as_json=False)
    assert capsys.readouterr().out == "No cluster is up.\n"
    end_all(as_json=True)
    assert json.loads(capsys.readouterr().out) == []
    state(tmp_path / "cluster").write()
    end_all(as_json=True)
    assert json.loads(capsys.readouterr().out) == [{"name": "mine", "killed": 0}]
