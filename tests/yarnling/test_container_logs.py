"""Log files of containers in the directories of NodeManagers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from yarn.ids import ApplicationId, ContainerId
from yarnling.cluster import containers
from yarnling.cluster.containers import find_logs

APP = ApplicationId(1, 1)
CONTAINER = "container_1_0001_01_000001"


def test_a_directory_that_the_node_deletes_meanwhile_has_no_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / str(APP) / CONTAINER
    directory.mkdir(parents=True)
    (directory / "stdout").touch()
    assert [log.name for log in find_logs([tmp_path], APP)] == ["stdout"]

    def parsed_once_deleted(name: str) -> ContainerId:
        shutil.rmtree(directory)
        return ContainerId.parse(name)

    monkeypatch.setattr(containers, "_container_id", parsed_once_deleted)
    assert find_logs([tmp_path], APP) == []
