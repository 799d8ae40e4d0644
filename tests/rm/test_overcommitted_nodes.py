"""Nodes that get a size that is too small for their containers (signalContainersIfOvercommitted)."""

from __future__ import annotations

import pytest

from rm.core.events import UpdateNodeResource
from rm.scheduler.model.rm_container import RMContainer
from tests.rm.builders import RM
from tests.rm.test_decommissioning import BEAT_MS, N1, exclude_gracefully, refresh
from yarn.ids import ApplicationId, ContainerId
from yarn.protocols.admin import ResourceOption
from yarn.resource import Resource


@pytest.fixture
def rm() -> RM:
    """Two nodes; n1 gets other sizes."""
    rm = RM()
    rm.node("n1")
    rm.node("n2")
    return rm


def resize(rm: RM, memory_mb: int, timeout_ms: int = -1) -> None:
    rm.send(UpdateNodeResource(rm.call(), ((N1, ResourceOption(Resource(memory_mb, 8), timeout_ms)),)))


def test_a_node_that_is_recommissioned_too_small_loses_the_newest_containers_but_no_am(rm: RM) -> None:
    """AbstractYarnScheduler.signalContainersIfOvercommitted: the size comes with an over-commit timeout of 0."""
    app = rm.submit()
    am = rm.run_am(app, "n1")
    older = rm.get(app, 1, "n1")
    rm.wait(BEAT_MS)
    (newer,) = rm.get(app, 1, "n1")
    resize(rm, 2048)
    rm.beat("n1")
    assert len(rm.core.scheduler.containers_of(app)) == 3, "a size without a timeout ends nothing"
    exclude_gracefully(rm, "n1")
    rm.beat("n1")
    refresh(rm)
    assert set(rm.core.scheduler.containers_of(app)) == {am.id, *(one.id for one in older)}
    assert newer.id in rm.beat("n1").containers_to_clean_up
    assert [(one.container_id, one.exit_status) for one in rm.allocate(app).completed] == [(newer.id, -102)]


def test_a_node_that_was_decommissioning_asks_for_containers_when_it_is_resized_and_then_kills(rm: RM) -> None:
    """SchedulerNode.setOvercommitTimeOut keeps the timeout of an earlier change."""
    app = rm.submit()
    am = rm.run_am(app, "n1")
    (task,) = rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1")
    rm.beat("n1")
    refresh(rm)
    resize(rm, 1024)
    preemption = rm.allocate(app).preemption
    assert preemption is not None
    assert preemption.negotiable == (task.id,)
    rm.beat("n1")
    assert set(rm.core.scheduler.containers_of(app)) == {am.id}


def two_tasks(rm: RM) -> tuple[ApplicationId, RMContainer, ContainerId, ContainerId]:
    """An application on n1 with its AM, and an older and a newer container."""
    app = rm.submit()
    am = rm.run_am(app, "n1")
    (older,) = rm.get(app, 1, "n1")
    rm.wait(BEAT_MS)
    (newer,) = rm.get(app, 1, "n1")
    return app, am, older.id, newer.id


def test_a_new_size_with_timeout_0_kills_the_newest_containers_at_once(rm: RM) -> None:
    app, am, older, newer = two_tasks(rm)
    resize(rm, 2048, timeout_ms=0)
    assert set(rm.core.scheduler.containers_of(app)) == {am.id, older}
    assert newer in rm.beat("n1").containers_to_clean_up
    response = rm.allocate(app)
    assert [(one.container_id, one.exit_status) for one in response.completed] == [(newer, -102)]
    assert response.preemption is None


def test_a_new_size_with_a_timeout_asks_for_containers_and_kills_them_after_it(rm: RM) -> None:
    app, am, older, newer = two_tasks(rm)
    resize(rm, 2048, timeout_ms=10_000)
    preemption = rm.allocate(app).preemption
    assert preemption is not None
    assert preemption.negotiable == (newer,)
    rm.wait(9_999)
    rm.beat("n1")
    assert newer in rm.core.scheduler.containers_of(app)
    rm.wait(1)
    rm.beat("n1")
    assert set(rm.core.scheduler.containers_of(app)) == {am.id, older}
