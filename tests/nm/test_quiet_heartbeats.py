"""When a node's heartbeats would only repeat the last one, and how they are left out and taken up again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nm.core.effects import SendHeartbeat
from nm.core.events import ContainerExited, ContainerLaunched
from tests.nm.nodes import Node, container_id
from yarn.machine import Tick


@pytest.fixture
def node() -> Node:
    return Node().register()


def test_heartbeats_can_be_left_out_while_the_node_has_no_news(node: Node) -> None:
    assert node.core.is_quiet
    node.after(1000, Tick())
    assert not node.core.is_quiet, "an answer is expected"
    node.answer()
    node.core.pause_heartbeats()
    request = node.core.paused_heartbeat()
    assert node.core.next_deadline_ms() is None
    due_ms = node.now_ms + 5000
    node.core.resume_heartbeats(4, due_ms, node.now_ms)
    assert node.core.next_deadline_ms() == due_ms
    node.after(5000, Tick())
    assert node.one(SendHeartbeat).request == replace(request, response_id=request.response_id + 4)


def test_a_node_with_orders_or_containers_that_changed_is_not_quiet(node: Node) -> None:
    node.after(1000, Tick())
    node.answer(applications_to_clean_up=(container_id(9).application_id,))
    assert not node.core.is_quiet
    node.start(1)
    node.step(ContainerLaunched(container_id(1), 1))
    node.after(1000, Tick())
    node.answer()
    assert node.core.is_quiet
    node.step(ContainerExited(container_id(1), 1, 0))
    assert not node.core.is_quiet


def test_orders_about_a_container_whose_end_was_reported_before_change_no_heartbeat(node: Node) -> None:
    node.start(1)
    node.step(ContainerLaunched(container_id(1), 1))
    node.after(1000, Tick())
    node.answer(containers_to_clean_up=(container_id(1),))
    assert not node.core.is_quiet, "it runs, and is to be killed"
    node.step(ContainerExited(container_id(1), 1, 0))
    node.answer(containers_to_forget=(container_id(1),))
    assert not node.core.is_quiet, "the next heartbeat does not report it any more"

    node.start(2)
    node.step(ContainerLaunched(container_id(2), 1))
    node.after(1000, Tick())
    node.answer()
    node.step(ContainerExited(container_id(2), 1, 0))
    node.answer(containers_to_clean_up=(container_id(2),))
    assert node.core.is_quiet, "it has ended, and waits until its ApplicationMaster knows"
    node.core.pause_heartbeats()
    request = node.core.paused_heartbeat()
    node.core.resume_heartbeats(2, node.now_ms + 1000, node.now_ms)
    node.after(1000, Tick())
    assert node.one(SendHeartbeat).request == replace(request, response_id=request.response_id + 2)
    node.answer(containers_to_forget=(container_id(2),))
    assert node.core.is_quiet
    node.after(1000, Tick())
    assert replace(node.one(SendHeartbeat).request, response_id=0) == replace(request, response_id=0)


@pytest.mark.parametrize("later_ms", [0, 1, 599_000, 600_000, 1_300_000])
def test_the_caches_are_cleaned_at_the_same_times(node: Node, later_ms: int) -> None:
    interval_ms = node.core.context.settings.cache_cleanup_interval_ms
    started_ms = node.now_ms
    node.after(1000, Tick())
    node.answer()
    node.core.pause_heartbeats()
    node.now_ms += later_ms
    node.core.resume_heartbeats(0, node.now_ms + 10 * interval_ms, node.now_ms)
    deadline_ms = node.core.next_deadline_ms()
    assert deadline_ms is not None
    assert (deadline_ms - started_ms) % interval_ms == 0
    assert node.now_ms <= deadline_ms < node.now_ms + interval_ms
