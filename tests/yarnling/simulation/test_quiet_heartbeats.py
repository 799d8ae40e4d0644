"""Leaving out heartbeats that would change nothing changes nothing: the same decisions, at the same times.

Random clusters run with all heartbeats and with those that matter, with synchronous and asynchronous scheduling; wrong
rules are noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from am.core.actions import Application
from am.core.am_rm_client_core import AMRMClientCore
from am.core.am_rm_client_state import AMRMClientState
from am.programs.distributed_shell.core import DistributedShellCore, Width
from am.programs.elastic.application_master import ElasticApplicationMaster
from nm.core.emulation import EmulationTable
from rm.core.applications import FinishedContainers
from rm.core.lifecycle_events import NodeUpdate
from rm.core.quiet_masters import QuietMasters
from rm.core.quiet_nodes import QuietNodes
from rm.core.resource_manager import ResourceManagerCore
from rm.core.rm_node import RMNode
from rm.scheduler.capacity import limits
from rm.scheduler.capacity.limits import HeadroomLookup
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.users import UsersManager
from rm.scheduler.placement.memo import VisitMemo
from rm.scheduler.placement.visit import Placement
from rm.scheduler.placement.walk import NodeWalks
from rm.scheduler.preemption import queue_priority_container_candidate_selector as selector
from rm.scheduler.preemption.preemption_round import PreemptionRound
from tests.compiled import only_interpreted
from tests.yarnling.simulation.random_clusters import MOVED_RESERVATIONS, RandomRun, random_features
from yarn.containers import ContainerLaunchContext
from yarn.errors import InternalError, YarnException
from yarn.ids import NodeId
from yarn.resource import Resource
from yarnling.cluster.configuration import composed
from yarnling.faults.history import History
from yarnling.simulation.cluster import ClusterShape, SimulatedCluster
from yarnling.simulation.conditions import STEADY, USUAL
from yarnling.simulation.engine import Engine
from yarnling.simulation.quiet_heartbeats import QuietHeartbeats

WORKLOADS = (1, 2, 3, 4, 5)
MORE_WORKLOADS = (*range(6, 18), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(18, 66)))
IDLE_NODES = 12


ASYNCHRONOUS = {"yarn.scheduler.capacity.schedule-asynchronously.enable": "true"}
SHORT_SILENCE = {**ASYNCHRONOUS, "yarn.scheduler.skip.node.multiplier": "1"}
"""Walks skip a node for a moment before each of its heartbeats."""


def compare(seed: int, settings: dict[str, str] | None = None) -> tuple[list[str], QuietHeartbeats]:
    """The differences without the quiet heartbeats."""
    settings = settings or {}
    every = RandomRun(seed, all_heartbeats=True, settings=settings).go()
    quiet = RandomRun(seed, all_heartbeats=False, settings=settings).go()
    assert quiet.cluster.quiet_heartbeats is not None
    return every.differences(quiet), quiet.cluster.quiet_heartbeats


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_same_is_decided(workload: int) -> None:
    differences, quiet = compare(workload)
    assert not differences
    assert quiet.left_out
    assert quiet.of_masters.left_out


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("workload", MORE_WORKLOADS)
def test_the_same_is_decided_in_more_workloads(workload: int) -> None:
    assert not compare(workload)[0]


@pytest.mark.slow
@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_same_is_decided_with_asynchronous_scheduling(workload: int) -> None:
    differences, quiet = compare(workload, ASYNCHRONOUS)
    assert not differences
    assert quiet.left_out
    assert quiet.of_masters.left_out


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("workload", MORE_WORKLOADS)
def test_the_same_is_decided_with_asynchronous_scheduling_in_more_workloads(workload: int) -> None:
    assert not compare(workload, ASYNCHRONOUS)[0]


@pytest.mark.slow
@pytest.mark.parametrize("workload", [14, 16, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(17, 60))])
def test_the_same_is_decided_if_reservations_are_moved(workload: int) -> None:
    assert not compare(workload, MOVED_RESERVATIONS)[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "workload", [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 100))]
)
def test_the_same_is_decided_with_any_features(workload: int) -> None:
    assert not compare(workload, random_features(workload))[0]


@pytest.mark.slow
def test_all_heartbeats_are_sent_if_walks_skip_nodes_between_two_of_them() -> None:
    differences, quiet = compare(2, SHORT_SILENCE)
    assert not differences
    assert not quiet.left_out


def _without_orders(patch: pytest.MonkeyPatch) -> None:
    """Orders for a node do not matter."""
    rule = QuietNodes._is_at_rest

    def wrong(self: QuietNodes, node: RMNode, now_ms: int) -> bool:
        orders, node.to_clean_up = node.to_clean_up, set()
        apps, node.apps_to_clean_up = node.apps_to_clean_up, {}
        try:
            return rule(self, node, now_ms)
        finally:
            node.to_clean_up, node.apps_to_clean_up = orders, apps

    patch.setattr(QuietNodes, "_is_at_rest", wrong)


def _without_requests(patch: pytest.MonkeyPatch) -> None:
    """Requests do not matter to a node with free capacity."""
    patch.setattr(Placement, "is_known", lambda _, node: node.reserved_container is None)


def _without_visits(patch: pytest.MonkeyPatch) -> None:
    """The scheduler need not visit a node that has nothing to report and to which nothing is to be sent."""
    patch.setattr(QuietNodes, "heartbeat", lambda nodes, event: nodes.skip(event.node_id, 1))


def _without_response_ids(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat for which the scheduler only visits the node has no reply."""
    patch.setattr(QuietNodes, "heartbeat", lambda nodes, event: nodes._context.send(NodeUpdate(event.node_id)))


def _with_visits_only(patch: pytest.MonkeyPatch) -> None:
    """All that a heartbeat without news could do is to have the scheduler visit the node."""
    patch.setattr(QuietNodes, "needs_only_a_visit", lambda nodes, node_id, _: node_id in nodes._context.nodes)


def _without_idle_nodes(patch: pytest.MonkeyPatch) -> None:
    """Requests that come later do not matter to idle nodes."""
    patch.setattr(QuietNodes, "idle_due", lambda _: [])


def _with_lasting_refusals(patch: pytest.MonkeyPatch) -> None:
    """Queues that are satisfied or at their limits stay so."""
    patch.setattr(VisitMemo, "refuses_all", lambda memo, partition: partition in memo._refusing)


def _without_rounds(patch: pytest.MonkeyPatch) -> None:
    """No heartbeat is needed to run a round of preemption."""
    patch.setattr(QuietHeartbeats, "_call_for_round", lambda _: None)


def _without_ended_containers(patch: pytest.MonkeyPatch) -> None:
    """An AM need not learn of ended containers."""
    patch.setattr(FinishedContainers, "is_empty", property(lambda _: True))


def _without_requests_of_the_am(patch: pytest.MonkeyPatch) -> None:
    """The requests that an AM has to send do not matter."""
    patch.setattr(AMRMClientState, "has_nothing_to_send", property(lambda state: state._in_flight is None))
    patch.setattr(
        AMRMClientCore, "_progress_sent", property(lambda core: core._progress(), lambda *_: None), raising=False
    )


def _without_user_limits(patch: pytest.MonkeyPatch) -> None:
    """Looking up the headroom stores nothing that matters."""
    patch.setattr(HeadroomLookup, "would_store", lambda _: False)


def _with_lasting_limits(patch: pytest.MonkeyPatch) -> None:
    """Looking up the headroom stores nothing after the first time."""
    patch.setattr(UsersManager, "_note_lookups", lambda _: None)


def _with_one_look_at_limits(patch: pytest.MonkeyPatch) -> None:
    """A look after a change of the limits in a leaf stores those of all users."""
    patch.setattr(limits, "present_limit", lambda users, name, *_: users.users[name].limit)


def _without_news_of_the_scheduler(patch: pytest.MonkeyPatch) -> None:
    """An AM need not learn of what the scheduler decides."""
    patch.setattr(FiCaSchedulerApp, "note_news", lambda _: None)


def _without_news_of_the_attempt(patch: pytest.MonkeyPatch) -> None:
    """An AM need not learn of what happens to its attempt and application."""
    patch.setattr(QuietMasters, "note", lambda *_: None)


WRONG_RULES = (
    (_without_orders, 3),
    (_without_requests, 2),
    (_without_visits, 2),
    (_without_response_ids, 2),
    (_with_visits_only, 3),
    (_without_idle_nodes, 3),
    (_with_lasting_refusals, 1),
    (_without_ended_containers, 2),
    (_without_requests_of_the_am, 2),
    (_without_rounds, 28),
    (_without_user_limits, 2),
    (_with_lasting_limits, 8),
    (_with_one_look_at_limits, 2),
    (_without_news_of_the_scheduler, 6),
    (_without_news_of_the_attempt, 1),
)


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize(("wrong", "workload"), WRONG_RULES)
def test_a_wrong_rule_is_noticed(
    wrong: Callable[[pytest.MonkeyPatch], None], workload: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong(monkeypatch)
    assert compare(workload)[0]


def _with_silent_nodes(patch: pytest.MonkeyPatch) -> None:
    """Walks skip nodes whose heartbeats are left out."""
    patch.setattr(NodeWalks, "_is_silent", _was_not_heard)


def _was_not_heard(walks: NodeWalks, node: SchedulerNode) -> bool:
    return walks._context.now_ms - node.heard_ms > walks._context.settings.asynchronous.skip_after_ms


def _without_the_last_heartbeat(patch: pytest.MonkeyPatch) -> None:
    """A node whose heartbeats arrive again was last heard before they were left out."""
    rule = QuietNodes.resume

    def wrong(self: QuietNodes, node_id: NodeId, last_ms: int) -> None:
        place = self._context.scheduler.nodes.get(node_id)
        heard_ms = place.heard_ms if place is not None else 0
        rule(self, node_id, last_ms)
        if place is not None:
            place.heard_ms = heard_ms

    patch.setattr(QuietNodes, "resume", wrong)


def _without_walks_for_limits(patch: pytest.MonkeyPatch) -> None:
    """A user's limit that a left-out heartbeat of an AM stores does not cause a walk."""
    patch.setattr(ResourceManagerCore, "skip_am_heartbeat", lambda core, *args: core.quiet_masters.heartbeat(*args))


def _with_any_silence(patch: pytest.MonkeyPatch) -> None:
    """No walk finds a node silent between two heartbeats."""
    patch.setattr(QuietNodes, "may_suspend", lambda *_: True)


WRONG_RULES_OF_WALKS = (
    (_with_silent_nodes, 3, ASYNCHRONOUS),
    (_without_the_last_heartbeat, 9, ASYNCHRONOUS),
    (_with_any_silence, 2, SHORT_SILENCE),
    (_without_walks_for_limits, 2, ASYNCHRONOUS),
    (_without_orders, 1, ASYNCHRONOUS),
    (_without_rounds, 2, ASYNCHRONOUS),
)


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize(("wrong", "workload", "settings"), WRONG_RULES_OF_WALKS)
def test_a_wrong_rule_is_noticed_with_asynchronous_scheduling(
    wrong: Callable[[pytest.MonkeyPatch], None],
    workload: int,
    settings: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong(monkeypatch)
    assert compare(workload, settings)[0]


@only_interpreted
def test_a_node_that_is_not_visited_after_a_reservation_was_moved_to_it_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def move_unnoticed(reserved: RMContainer, target: SchedulerNode, the_round: PreemptionRound) -> bool:
        watch, target.watch = target.watch, None
        try:
            return move_reservation(reserved, target, the_round)
        finally:
            target.watch = watch

    move_reservation = selector.move_reservation
    monkeypatch.setattr(selector, "move_reservation", move_unnoticed)
    assert compare(16, MOVED_RESERVATIONS)[0]


def idle_cluster(*, all_heartbeats: bool, settings: dict[str, str] | None = None) -> SimulatedCluster:
    cluster = SimulatedCluster(
        Engine(1),
        composed(None, settings or {}, {}),
        ClusterShape(IDLE_NODES).machines(),
        EmulationTable((), 1),
        History(),
        directory=Path(),
        conditions=STEADY,
        encode=False,
        all_heartbeats=all_heartbeats,
    )
    cluster.start()
    cluster.engine.run(cluster.engine.now_ms + 5_000)
    return cluster


@pytest.mark.parametrize("settings", [{}, ASYNCHRONOUS])
def test_an_idle_cluster_costs_nothing(settings: dict[str, str]) -> None:
    """Nothing happens in a day but alarms that were set before."""
    cluster = idle_cluster(all_heartbeats=False, settings=settings)
    before = cluster.engine.events
    cluster.engine.run(cluster.engine.now_ms + 86_400_000)
    assert cluster.engine.events - before <= 5 * IDLE_NODES


def test_all_heartbeats_are_sent_after_a_refresh_that_lets_walks_skip_nodes_between_two_of_them() -> None:
    """refreshQueues may change how long a node may be silent, and walks look at that."""
    cluster = idle_cluster(all_heartbeats=False, settings=ASYNCHRONOUS)
    outcomes: list[object] = []
    cluster.rm.refresh_queues(composed(None, SHORT_SILENCE, {}), outcomes.append)
    heartbeats = 10
    cluster.engine.run(cluster.engine.now_ms + heartbeats * 1_000)
    assert [outcome for outcome in outcomes if isinstance(outcome, YarnException)] == []
    before = cluster.engine.events
    cluster.engine.run(cluster.engine.now_ms + heartbeats * 1_000)
    assert cluster.engine.events - before >= heartbeats * IDLE_NODES


def test_nodes_that_sent_no_heartbeats_do_not_expire() -> None:
    cluster = idle_cluster(all_heartbeats=False)
    cluster.engine.run(cluster.engine.now_ms + 3_600_000)
    assert len(cluster.rm.core.context.nodes) == IDLE_NODES


@pytest.mark.slow
def test_a_node_that_is_killed_expires_as_if_it_had_sent_all() -> None:
    lost: list[int] = []
    for all_heartbeats in (True, False):
        cluster = idle_cluster(all_heartbeats=all_heartbeats)
        engine, start_ms = cluster.engine, cluster.engine.now_ms
        engine.run(start_ms + 30_123)
        cluster.machine(7).kill(containers=True)
        nodes = cluster.rm.core.context.nodes
        engine.advance(None, lambda: len(nodes) < IDLE_NODES)  # noqa: B023
        lost.append(engine.now_ms - start_ms)
    assert lost[0] == lost[1] > 600_000


def test_heartbeats_are_left_out_of_steady_networks_only() -> None:
    with pytest.raises(InternalError, match="must be steady"):
        SimulatedCluster(
            Engine(1),
            composed(None, {}, {}),
            ClusterShape(1).machines(),
            EmulationTable((), 1),
            History(),
            directory=Path(),
            conditions=USUAL,
            all_heartbeats=False,
        )


def test_applications_declare_whether_they_heed_heartbeats() -> None:
    command = ContainerLaunchContext(("x",))
    distributed_shell: Application = DistributedShellCore(Width(1, Resource(1, 1)), lambda _: command)
    assert not distributed_shell.heeds_heartbeats
    assert ElasticApplicationMaster.heeds_heartbeats.fget is not None
