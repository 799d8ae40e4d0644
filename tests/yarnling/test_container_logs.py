"""Log files of containers in the directories of NodeManagers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import cast

import pytest

from yarn.ids import ApplicationId, ContainerId
from yarnling.cluster import containers
from yarnling.cluster.client import Client
from yarnling.cluster.containers import ContainerLog, find_logs
from yarnling.cluster.jobs import container_results

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


async def test_a_log_that_is_aggregated_since_it_was_found_is_read_there(tmp_path: Path) -> None:
    """The node has deleted its file between the search and the reading."""
    (aggregated := tmp_path / "stdout").write_text("hello")
    found = iter([tmp_path / "deleted" / "stdout", aggregated])

    class Logs:
        async def attempts(self, app_id: ApplicationId) -> tuple[()]:
            return ()

        def logs(self, app_id: ApplicationId) -> list[ContainerLog]:
            return [ContainerLog(ContainerId.parse(CONTAINER), next(found))]

    (result,) = await container_results(cast(Client, Logs()), APP)
    assert result.stdout == "hello"
