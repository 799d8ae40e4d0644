"""Containers that change their size, on real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from am.client.launching import python_launch_context
from tests.cluster.applications import tasks_of
from tests.cluster.conftest import eventually
from tests.cluster.growing_am import LARGE
from yarn.applications import ApplicationSubmissionContext
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus
from yarnling.cluster.blocking import BlockingClient, BlockingCluster

pytestmark = pytest.mark.cluster

HELD_MB = 300


def test_a_container_may_use_its_new_size(cluster: BlockingCluster, tmp_path: Path) -> None:
    """The container starts with 128 MB and uses 300. Without its new size the node would kill it at the next check."""
    client = cluster.client
    app_id = client.new_application().application_id
    am = python_launch_context("tests.cluster.growing_am", [str(tmp_path)])
    client.submit(ApplicationSubmissionContext(app_id, am, Resource(256, 1), name="grows", max_app_attempts=1))

    eventually((tmp_path / "grown").exists, 60.0)
    (task,) = tasks_of(client, client.report(app_id))
    assert task.resource == LARGE
    eventually(lambda: most_used_mb(client) >= HELD_MB, 60.0)

    (tmp_path / "go").touch()
    ended = client.wait(app_id, timeout_s=60)
    assert ended.final_status is FinalApplicationStatus.SUCCEEDED, ended.diagnostics


def most_used_mb(client: BlockingClient) -> int:
    """The memory use of the containers of the node where they use most."""
    used = [node.containers_utilization for node in client.nodes()]
    return max(use.physical_memory_mb if use else 0 for use in used)
