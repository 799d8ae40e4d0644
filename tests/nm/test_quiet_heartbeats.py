"""When a node's heartbeats would only repeat the last one, and how they are left out and taken up again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nm.core.effects import SendHeartbeat
from nm.core.events import ContainerExited, ContainerLaunched
from nm.core.played_container import PlayedContainer
from tests.nm.nodes import Node, container_id, container_token
from yarn.ids import ContainerId
from yarn.machine import Tick
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse
from yarn.states import ContainerState, NodeAction


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


def play(node: Node, number: int) -> PlayedContainer:
    """Play the start of a container, and report it."""
    container = PlayedContainer(container_token(number), node.core.context)
    node.core.play_starts([container], node.now_ms)
    node.after(1000, Tick())
    node.answer()
    return container


def play_to_the_end(node: Node, number: int, *, is_forgotten: bool) -> None:
    """Play a container, and report its start and its end."""
    container = play(node, number)
    node.core.play_end(container, node.now_ms)
    node.answer()
    node.after(1000, Tick())
    node.answer(containers_to_forget=(container.id,) if is_forgotten else ())


def end_application(node: Node, **orders: tuple[ContainerId, ...]) -> NodeHeartbeatRequest:
    """Order its end with the reply to a heartbeat, and return the heartbeat."""
    node.after(1000, Tick())
    request = node.one(SendHeartbeat).request
    node.answer(applications_to_clean_up=(container_id(1).application_id,), **orders)
    return request


@pytest.mark.parametrize("is_forgotten", [True, False], ids=["before", "in the same reply"])
def test_the_end_of_a_played_application_whose_containers_are_forgotten_changes_no_heartbeat(
    node: Node, *, is_forgotten: bool
) -> None:
    play_to_the_end(node, 1, is_forgotten=is_forgotten)
    request = end_application(node, containers_to_forget=() if is_forgotten else (container_id(1),))
    assert not node.core.applications
    assert node.core.is_quiet
    node.after(1000, Tick())
    assert node.one(SendHeartbeat).request == replace(request, response_id=request.response_id + 1)


def test_the_end_of_a_played_application_is_news_while_a_container_is_not_forgotten(node: Node) -> None:
    play_to_the_end(node, 1, is_forgotten=False)
    end_application(node)
    assert not node.core.is_quiet, "the end is reported once more"
    node.after(1000, Tick())
    assert [status.container_id for status in node.one(SendHeartbeat).request.containers] == [container_id(1)]


def test_the_end_of_a_played_application_is_news_while_a_container_runs(node: Node) -> None:
    play_to_the_end(node, 1, is_forgotten=True)
    play(node, 2)
    assert node.core.is_quiet
    request = end_application(node)
    assert not node.core.is_quiet, "it is killed"
    node.after(1000, Tick())
    assert node.one(SendHeartbeat).request.containers != request.containers


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


def test_containers_that_are_played_while_heartbeats_are_left_out_are_news(node: Node) -> None:
    first = play(node, 1)
    node.core.pause_heartbeats()
    status = node.core.status
    second = PlayedContainer(container_token(2), node.core.context)
    assert node.core.play_starts([second], node.now_ms) == []
    assert status.has_news
    assert not status.is_wanted, "a start waits for the next heartbeat"
    assert [news.container_id for news in status.take_news()] == [second.id]
    assert not status.has_news
    assert node.core.play_end(first, node.now_ms) == []
    assert status.is_wanted
    assert [(news.container_id, news.state) for news in status.take_news()] == [(first.id, ContainerState.COMPLETE)]
    status.reports_received(())
    assert status.take_news() == ()


def test_only_what_has_ended_is_forgotten_while_heartbeats_are_left_out(node: Node) -> None:
    first, second = play(node, 1), play(node, 2)
    node.core.pause_heartbeats()
    node.core.play_end(first, node.now_ms)
    node.core.status.take_news()
    node.core.status.reports_received(())
    forgotten = NodeHeartbeatResponse(1, NodeAction.NORMAL, containers_to_forget=(first.id,))
    assert node.core.status.only_forgets_ended(forgotten)
    node.core.status.reports_received(forgotten.containers_to_forget)
    assert list(node.core.containers) == [second.id]
    for order in ({"containers_to_clean_up": (second.id,)}, {"applications_to_clean_up": (second.id.application_id,)}):
        assert not node.core.status.only_forgets(replace(forgotten, **order))


def test_the_end_of_an_application_is_followed_while_heartbeats_are_left_out(node: Node) -> None:
    play_to_the_end(node, 1, is_forgotten=True)
    node.core.pause_heartbeats()
    over = NodeHeartbeatResponse(9, NodeAction.NORMAL, applications_to_clean_up=(container_id(1).application_id,))
    assert node.core.status.only_forgets(over)
    assert not node.core.status.only_forgets_ended(over), "a start for the application may be under way"
    node.core.play_answer(over, node.now_ms)
    assert not node.core.applications
    assert node.core.reports_only_containers
    assert not node.core.status.has_news
