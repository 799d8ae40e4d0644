"""Hosts are excluded, at once or gracefully, and included again (NodesListManager, DecommissioningNodesWatcher)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rm.core.administration import decommissioning_nodes
from rm.core.events import (
    NodeHeartbeat,
    RefreshNodes,
    RegisterNode,
    SignalContainer,
    UnregisterNode,
    UpdateNodeResource,
)
from rm.core.host_lists import HostLists
from rm.core.node_reports import cluster_metrics, node_reports
from tests.rm.builders import RM, done, resource_request
from yarn.containers import ContainerStatus, ResourceRequest
from yarn.ids import NodeId
from yarn.nodes import NodeReport
from yarn.protocols.admin import ResourceOption
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import ContainerState, DecommissionType, NodeAction, NodeState, NodeUpdateType, SignalContainerCommand

N1, N2 = NodeId("n1", 45454), NodeId("n2", 45454)
BEAT_MS = 1000


@pytest.fixture
def rm() -> RM:
    """Two nodes; n1 is decommissioned."""
    rm = RM()
    rm.node("n1")
    rm.node("n2")
    return rm


def refresh(
    rm: RM, *excluded: str, kind: DecommissionType = DecommissionType.NORMAL, timeout_s: int = 60, **lists: object
) -> None:
    hosts = HostLists(excluded=tuple((host, None) for host in excluded), **lists)  # type: ignore[arg-type]
    rm.send(RefreshNodes(rm.call(), hosts, kind, timeout_s))


def exclude_gracefully(rm: RM, *hosts: str, timeout_s: int = 60) -> None:
    refresh(rm, *hosts, kind=DecommissionType.GRACEFUL, timeout_s=timeout_s)


def report(rm: RM, node_id: NodeId) -> NodeReport:
    (found,) = (node for node in node_reports(rm.core.context, frozenset()) if node.node_id == node_id)
    return found


def state(rm: RM, node_id: NodeId = N1) -> NodeState:
    return report(rm, node_id).state


def register(rm: RM, host: str) -> tuple[NodeAction, str]:
    request = RegisterNodeManagerRequest(NodeId(host, 45454), 8042, Resource(8192, 8))
    reply = rm.send(RegisterNode(rm.call(), request, "/default-rack"))
    return reply.action, reply.diagnostics


# At once


def test_an_excluded_node_is_decommissioned_at_once_with_its_containers(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app, "n2")
    (task,) = rm.get(app, 1, "n1")
    refresh(rm, "n1")
    assert state(rm) is NodeState.DECOMMISSIONED
    reply = rm.allocate(app)
    assert [(status.container_id, status.exit_status) for status in reply.completed] == [(task.id, -100)]
    (update,) = reply.updated_nodes
    assert (update.node_id, update.update_type) == (N1, NodeUpdateType.UNUSABLE)
    metrics = cluster_metrics(rm.core.context)
    assert (metrics.total, metrics.active, metrics.decommissioned) == (1, 1, 1)


def test_an_excluded_host_is_refused_by_name(rm: RM) -> None:
    refresh(rm, "n1", "n3")
    beat = rm.beat("n1")
    assert (beat.action, beat.diagnostics) == (
        NodeAction.SHUTDOWN,
        "Disallowed NodeManager nodeId: n1:45454 hostname: n1",
    )
    assert register(rm, "n3") == (
        NodeAction.SHUTDOWN,
        "Disallowed NodeManager from  n3, Sending SHUTDOWN signal to the NodeManager.",
    )


def test_a_host_included_again_registers_as_a_new_node(rm: RM) -> None:
    refresh(rm, "n1")
    refresh(rm)
    assert state(rm) is NodeState.DECOMMISSIONED, "the old node does not return"
    assert register(rm, "n1")[0] is NodeAction.NORMAL
    assert state(rm) is NodeState.RUNNING
    assert cluster_metrics(rm.core.context).decommissioned == 0


def test_a_host_in_no_list_is_shut_down_and_not_decommissioned(rm: RM) -> None:
    """NodesListManager.isUntrackedNode: there is an include list, and neither list names it."""
    refresh(rm, "n2", included=("n2", "n3"))
    assert state(rm) is NodeState.SHUTDOWN
    assert state(rm, N2) is NodeState.DECOMMISSIONED


# Gracefully


def test_a_decommissioning_node_gets_no_new_containers(rm: RM) -> None:
    """AbstractYarnScheduler.nodeUpdate: its size becomes what is in use, and is restored when it is recommissioned."""
    app = rm.submit()
    rm.run_am(app, "n2")
    (task,) = rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1")
    assert state(rm) is NodeState.DECOMMISSIONING
    assert decommissioning_nodes(rm.core.context) == (N1,)
    beat = rm.beat("n1")
    assert beat.action is NodeAction.NORMAL
    assert report(rm, N1).capability == Resource(1024, 1)
    rm.allocate(app, [resource_request(2)])
    assert rm.beat("n1").resource == Resource(1024, 1), "the NM gets its size"
    assert rm.allocate(app).allocated == ()
    refresh(rm)
    assert state(rm) is NodeState.RUNNING
    assert report(rm, N1).capability == Resource(8192, 8)
    assert rm.beat("n1").resource == Resource(8192, 8)
    assert len(rm.allocate(app).allocated) == 2
    assert rm.core.scheduler.container(task.id) is not None


def test_an_am_that_waits_while_all_nodes_leave_starts_when_one_stays() -> None:
    """In Hadoop its request shrinks to nothing, and waits for ever: CapacityScheduler.allocate caps it by the nodes."""
    rm = RM({"yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "0"})
    rm.node("n1")
    rm.wait(BEAT_MS)
    app = rm.submit()
    am = rm.run_am(app)
    exclude_gracefully(rm, "n1", timeout_s=-1)
    rm.beat("n1", [done(am.id, 1)])
    assert rm.core.scheduler.maximum_allocation(rm.now_ms) == Resource(0, 0)
    refresh(rm)
    rm.beat("n1")
    assert rm.attempt_id(app).attempt == 2
    assert rm.attempt_state(app) in ("ALLOCATED", "ALLOCATED_SAVING", "LAUNCHED")


def test_ams_are_notified_of_a_decommissioning_node(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1", timeout_s=8)
    (update,) = rm.allocate(app).updated_nodes
    assert (update.state, update.update_type) == (NodeState.DECOMMISSIONING, NodeUpdateType.DECOMMISSIONING)
    assert update.decommissioning_timeout_s == 8
    rm.beat("n1")
    refresh(rm)
    (update,) = rm.allocate(app).updated_nodes
    assert (update.state, update.update_type) == (NodeState.RUNNING, NodeUpdateType.USABLE)
    assert update.decommissioning_timeout_s == 8, "RecommissionNodeTransition keeps it"


def test_a_node_is_decommissioned_when_the_last_application_that_ran_there_has_ended(rm: RM) -> None:
    """The completion of its container is not enough: the output may still be needed."""
    app = rm.submit()
    am = rm.run_am(app, "n2")
    (task,) = rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1", timeout_s=-1)
    rm.beat("n1", [done(task.id)])
    rm.wait(10 * BEAT_MS)
    rm.beat("n1")
    assert state(rm) is NodeState.DECOMMISSIONING
    rm.finish(app)
    rm.beat("n2", [done(am.id)])
    assert rm.state(app) == "FINISHED"
    beat = rm.beat("n1")
    assert (beat.action, beat.diagnostics) == (
        NodeAction.SHUTDOWN,
        "DECOMMISSIONING n1:45454 is ready to be decommissioned",
    )
    assert state(rm) is NodeState.DECOMMISSIONED


def test_an_empty_node_is_decommissioned_at_its_next_heartbeat(rm: RM) -> None:
    exclude_gracefully(rm, "n1")
    rm.beat("n1")
    assert state(rm) is NodeState.DECOMMISSIONED


def test_a_decommissioning_node_waits_for_an_am_that_it_reports_for_the_first_time(rm: RM) -> None:
    """StatusUpdateWhenHealthyTransition checks before it takes the report: no application is known there yet."""
    app = rm.submit()
    rm.launch(app, "n1")
    exclude_gracefully(rm, "n1")
    rm.beat("n1")
    assert state(rm) is NodeState.DECOMMISSIONING


def test_a_decommissioning_node_waits_for_a_container_that_it_reports_as_new(rm: RM) -> None:
    """DecommissioningNodesWatcher counts NEW as RUNNING. No NodeManager of 3.4.1 reports NEW (getCurrentState)."""
    app = rm.submit()
    am = rm.launch(app, "n1")
    exclude_gracefully(rm, "n1")
    request = replace(rm.nodes["n1"].request(), containers=(ContainerStatus(am.id, ContainerState.NEW),))
    reply = rm.send(NodeHeartbeat(rm.call(), request))
    assert (reply.action, state(rm)) == (NodeAction.NORMAL, NodeState.DECOMMISSIONING)


def test_a_decommissioning_node_does_not_wait_for_a_task_that_it_reports_for_the_first_time(rm: RM) -> None:
    """Only AMs count there (StatusUpdateWhenHealthyTransition.hasScheduledAMContainers): a lost task can run again."""
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.allocate(app, [resource_request(1)])
    rm.beat("n1")
    exclude_gracefully(rm, "n1")
    rm.beat("n1")
    assert state(rm) is NodeState.DECOMMISSIONED


def test_a_node_is_decommissioned_with_its_containers_at_the_timeout(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app, "n2")
    (task,) = rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1", timeout_s=8)
    rm.beat("n1")
    rm.now_ms += 7 * BEAT_MS
    assert rm.beat("n1").action is NodeAction.NORMAL
    rm.now_ms += BEAT_MS
    assert rm.beat("n1").action is NodeAction.SHUTDOWN
    assert state(rm) is NodeState.DECOMMISSIONED
    (status,) = rm.allocate(app).completed
    assert (status.container_id, status.exit_status) == (task.id, -100)
    assert status.diagnostics == "Container released on a *lost* node"


def test_a_silent_node_is_decommissioned_by_the_poll(rm: RM) -> None:
    """A poll every 20 s; the node is decommissioned because of its timeout, not because of missing heartbeats."""
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1", timeout_s=30)
    rm.beat("n1")
    rm.wait(39 * BEAT_MS)
    assert state(rm) is NodeState.DECOMMISSIONING
    rm.wait(2 * BEAT_MS)
    assert state(rm) is NodeState.DECOMMISSIONED
    assert rm.core.next_deadline_ms() is not None


def test_a_later_refresh_changes_the_remaining_time(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1", timeout_s=60)
    rm.beat("n1")
    exclude_gracefully(rm, "n1", timeout_s=5)
    rm.now_ms += 5 * BEAT_MS
    assert rm.beat("n1").action is NodeAction.SHUTDOWN


def test_between_two_heartbeats_a_new_decommissioning_goes_on_from_the_first_one(rm: RM) -> None:
    """DecommissioningNodesWatcher.update: only a heartbeat or the poll shows it that the node was recommissioned."""
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1", timeout_s=60)
    rm.beat("n1")
    rm.now_ms += 3 * BEAT_MS
    refresh(rm, kind=DecommissionType.GRACEFUL)
    assert state(rm) is NodeState.RUNNING
    exclude_gracefully(rm, "n1", timeout_s=5)
    rm.now_ms += 2 * BEAT_MS
    assert rm.beat("n1").action is NodeAction.SHUTDOWN


def test_a_decommissioning_node_that_gets_nothing_still_counts_opportunities(rm: RM) -> None:
    """Hadoop visits it at its heartbeats, and refuses what it finds at the commit (CapacityScheduler.nodeUpdate)."""
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1")
    far = ResourceRequest(1, "far", Resource(1024, 1), 2), ResourceRequest(1, "/far", Resource(1024, 1), 2)
    rm.allocate(app, [*far, resource_request(2)])
    attempt = rm.core.scheduler.attempt_of(app)
    before = sum(attempt.opportunities.values())
    rm.beat("n1")
    assert sum(attempt.opportunities.values()) == before + 1


def test_what_ends_on_a_decommissioning_node_makes_no_room_for_more(rm: RM) -> None:
    """FiCaSchedulerApp.accept: nothing is booked on a node that is not RUNNING, from the first heartbeat on."""
    app = rm.submit()
    rm.run_am(app, "n2")
    tasks = rm.get(app, 3, "n1")
    exclude_gracefully(rm, "n1")
    rm.allocate(app, [resource_request(5)])
    for task in tasks[:2]:
        rm.beat("n1", [done(task.id)])
        assert rm.allocate(app).allocated == ()
    assert report(rm, N1).capability == Resource(1024, 1)
    refresh(rm)
    rm.beat("n1")
    assert len(rm.allocate(app).allocated) == 5


def test_no_reservation_is_made_on_a_decommissioning_node(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1")
    rm.allocate(app, [resource_request(1, 8192)])
    rm.beat("n1")
    assert rm.core.scheduler.nodes[N1].reserved_container is None


def test_a_reservation_on_a_decommissioning_node_is_not_filled_and_goes_when_it_shrinks(rm: RM) -> None:
    """A node whose size changes leaves its partition and joins it again (CapacityScheduler.updateLabelsOnNode)."""
    app = rm.submit()
    rm.run_am(app, "n2")
    (task,) = rm.get(app, 1, "n1")
    rm.allocate(app, [resource_request(1, 8192)])
    rm.beat("n1")
    assert rm.core.scheduler.nodes[N1].reserved_container is not None
    exclude_gracefully(rm, "n1")
    rm.beat("n1", [done(task.id)])
    assert rm.core.scheduler.nodes[N1].reserved_container is None
    assert rm.allocate(app).allocated == ()
    refresh(rm)
    rm.beat("n1")
    assert len(rm.allocate(app).allocated) == 1


def test_the_first_heartbeat_after_a_node_is_decommissioned_again_places_nothing(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1")
    rm.beat("n1")
    rm.beat("n1")
    refresh(rm, kind=DecommissionType.GRACEFUL)
    exclude_gracefully(rm, "n1")
    rm.allocate(app, [resource_request(1)])
    rm.beat("n1")
    assert rm.allocate(app).allocated == ()


@pytest.mark.parametrize("unheard", ["unhealthy", "sent again"])
def test_the_first_heartbeat_that_reaches_the_scheduler_shrinks_the_node(rm: RM, unheard: str) -> None:
    """That of an unhealthy node, or a repeated one, does not reach it; the audit of I-16 must not count it."""
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1")
    if unheard == "unhealthy":
        rm.beat("n1", healthy=False)
    else:
        rm.send(NodeHeartbeat(rm.call(), NodeHeartbeatRequest(N1, rm.nodes["n1"].response_id - 1)))
    rm.allocate(app, [resource_request(1)])
    assert report(rm, N1).capability == Resource(8192, 8)
    rm.beat("n1")
    assert rm.allocate(app).allocated == ()
    assert report(rm, N1).capability == Resource(1024, 1)


def test_a_decommissioning_node_that_is_resized_gets_no_containers_either(rm: RM) -> None:
    """Its next heartbeat shrinks it again."""
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1")
    rm.beat("n1")
    rm.send(UpdateNodeResource(rm.call(), ((N1, ResourceOption(Resource(4096, 4))),)))
    rm.allocate(app, [resource_request(1)])
    assert report(rm, N1).capability == Resource(4096, 4)
    rm.beat("n1")
    assert rm.allocate(app).allocated == ()
    assert report(rm, N1).capability == Resource(1024, 1)


def test_a_hosts_own_timeout_overrides_that_of_the_request(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    hosts = HostLists(excluded=(("n1", 3),))
    rm.send(RefreshNodes(rm.call(), hosts, DecommissionType.GRACEFUL, 60))
    assert report(rm, N1).decommissioning_timeout_s == 3


def test_force_decommissions_only_nodes_that_are_decommissioning(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1")
    refresh(rm, kind=DecommissionType.FORCEFUL)
    assert state(rm) is NodeState.DECOMMISSIONED
    assert state(rm, N2) is NodeState.RUNNING
    assert register(rm, "n1")[0] is NodeAction.SHUTDOWN, "the host lists are not read again: n1 stays excluded"


def test_an_unhealthy_decommissioning_node_stays_decommissioning(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1")
    rm.beat("n1", healthy=False)
    assert state(rm) is NodeState.DECOMMISSIONING


def test_an_unhealthy_node_can_be_decommissioned(rm: RM) -> None:
    """The node runs nothing in the scheduler, so it is decommissioned at once."""
    rm.beat("n1", healthy=False)
    exclude_gracefully(rm, "n1")
    rm.beat("n1")
    assert state(rm) is NodeState.DECOMMISSIONED


def test_a_signal_for_a_decommissioning_node_is_dropped(rm: RM) -> None:
    """RMNodeImpl has no row for SIGNAL_CONTAINER in this state."""
    app = rm.submit()
    rm.run_am(app, "n2")
    (task,) = rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1")
    rm.send(SignalContainer(rm.call(), task.id, SignalContainerCommand.GRACEFUL_SHUTDOWN))
    assert rm.beat("n1").containers_to_signal == ()


def test_a_restarted_nm_without_containers_is_decommissioned_at_once(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1")
    assert register(rm, "n1")[0] is NodeAction.NORMAL
    assert state(rm) is NodeState.DECOMMISSIONED


def test_a_node_that_left_is_watched_until_the_next_poll(rm: RM) -> None:
    """If it comes back and is decommissioned again, its new timeout counts from then (PollTimerTask.run)."""
    app = rm.submit()
    rm.run_am(app, "n2")
    rm.get(app, 1, "n1")
    exclude_gracefully(rm, "n1", timeout_s=-1)
    rm.beat("n1")
    rm.send(UnregisterNode(rm.call(), N1))
    rm.wait(20 * BEAT_MS)
    refresh(rm)
    rm.node("n1")
    again = RegisterNodeManagerRequest(N1, 8042, Resource(8192, 8), running_applications=(app,))
    rm.send(RegisterNode(rm.call(), again, "/default-rack"))
    exclude_gracefully(rm, "n1", timeout_s=5)
    assert rm.beat("n1").action is NodeAction.NORMAL
    rm.now_ms += 5 * BEAT_MS
    assert rm.beat("n1").action is NodeAction.SHUTDOWN
