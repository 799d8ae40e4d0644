"""A heartbeat that reports only what is new does what the heartbeat with the whole report does."""

from __future__ import annotations

from rm.core.events import PlayedHeartbeat
from tests.rm.builders import RM, done, resource_request
from tests.rm.state_digest import digest
from yarn.containers import ContainerStatus
from yarn.protocols.tracker import NodeHeartbeatResponse
from yarn.settings.yarnling import CHECK_INVARIANTS
from yarn.states import ContainerState


def report(rm: RM, *news: ContainerStatus, is_whole: bool) -> NodeHeartbeatResponse:
    """The node's heartbeat, whole or with the news alone."""
    nm = rm.nodes["n1"]
    assert rm.core.quiet_nodes.needs_only_news(nm.node_id, rm.now_ms)
    if is_whole:
        return rm.beat(ended=[status for status in news if status.state is ContainerState.COMPLETE])
    response: NodeHeartbeatResponse = rm.send(PlayedHeartbeat(rm.call(), nm.node_id, news))
    for status in news:
        if status.state is ContainerState.COMPLETE:
            nm.running.pop(status.container_id)
    nm.obey(response)
    return response


def life(*, is_whole: bool) -> tuple[list[object], list[str]]:
    """The replies and effects of heartbeats in the life of a container, and the core's state at the end.

    Runs in which heartbeats are left out check no invariants.
    """
    rm = RM({CHECK_INVARIANTS.key: "false"})
    nm = rm.node("n1")
    app = rm.submit()
    rm.run_am(app)
    rm.get(app, 1)
    rm.core.quiet_nodes.suspend(nm.node_id)
    seen: list[object] = []
    rm.allocate(app, [resource_request(1)])
    seen.append((report(rm, is_whole=is_whole), rm.effects))
    (container,) = rm.allocate(app).allocated
    rm.run(container)
    seen.append((report(rm, ContainerStatus(container.id, ContainerState.RUNNING), is_whole=is_whole), rm.effects))
    seen.append((report(rm, done(container.id), is_whole=is_whole), rm.effects))
    rm.allocate(app)
    rm.allocate(app)
    seen.append((report(rm, is_whole=is_whole), rm.effects))
    rm.core.quiet_nodes.due()
    return seen, digest(rm.core)


def test_a_heartbeat_with_news_alone_is_the_heartbeat_with_the_whole_report() -> None:
    whole, with_news = life(is_whole=True), life(is_whole=False)
    assert with_news == whole
    last, _ = whole[0][-1]  # type: ignore[misc]
    assert last.containers_to_forget, "the container's end is known to its AM"


def test_a_node_reports_all_containers_when_an_application_that_runs_there_is_over() -> None:
    rm = RM()
    nm = rm.node("n1")
    app = rm.submit()
    rm.run_am(app)
    assert rm.core.quiet_nodes.needs_only_news(nm.node_id, rm.now_ms)
    rm.kill(app)
    assert not rm.core.quiet_nodes.needs_only_news(nm.node_id, rm.now_ms)
