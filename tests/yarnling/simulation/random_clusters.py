"""Small simulated clusters with random work and faults, and all that they decide.

Queues with guarantees and labels, users, preemption, large and small requests with and without places, priorities,
withdrawn requests and released containers; nodes, links and the ResourceManager fail.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from am.core.actions import Action, Finish, Launch, ReleaseContainer, RequestContainer, WithdrawRequest
from am.core.application import ApplicationCore
from am.core.events import (
    ContainersAllocated,
    ContainersCompleted,
    ContainersFromPreviousAttempts,
    ContainerStartFailed,
    Event,
    HeartbeatDone,
    Registered,
)
from am.core.requests import ContainerRequest
from nm.core.emulation import EmulationStage, EmulationTable, Match, Rule
from nm.core.node_manager import NodeManagerCore
from nm.core.status_updater import HeartbeatDue
from rm.core.effects import Preempted
from rm.core.events import (
    AddClusterNodeLabels,
    GetNewApplication,
    KillApplication,
    ReplaceLabelsOnNodes,
    SubmitApplication,
)
from rm.core.resource_manager import ResourceManagerCore
from rm.scheduler.model.leaf_queue import LeafQueue
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerLaunchContext
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.machine import Reply, StateChanged
from yarn.nodes import NodeLabel
from yarn.protocols.client import GetNewApplicationResponse
from yarn.protocols.master import AllocateResponse
from yarn.resource import Resource
from yarn.settings.preemption import UNDERUTILIZED
from yarn.states import FinalApplicationStatus
from yarnling.cluster.configuration import composed, node_sizes
from yarnling.cluster.network import NetworkFault
from yarnling.faults.history import History
from yarnling.faults.plan import WorkPlan
from yarnling.run.trace import Trace
from yarnling.simulation.cluster import ClusterShape, SimulatedCluster
from yarnling.simulation.conditions import STEADY
from yarnling.simulation.engine import Engine, Rank
from yarnling.simulation.process import run
from yarnling.simulation.workload import AM_RULE, RunningWork, SimulatedSpool

NODE = Resource(4096, 8)
DURATIONS_S = (1, 3, 8, 20)
SIZES_MB = (256, 512, 1024, 2048, 3072)
LABEL = "x"
SETTINGS = {
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
    "yarn.resourcemanager.recovery.enabled": "true",
    "yarn.nm.liveness-monitor.expiry-interval-ms": "15000",
    "yarn.am.liveness-monitor.expiry-interval-ms": "15000",
    "yarn.scheduler.capacity.root.queues": "a,b",
    "yarn.scheduler.capacity.root.a.capacity": "40",
    "yarn.scheduler.capacity.root.b.capacity": "60",
    "yarn.scheduler.capacity.root.b.queues": "b1,b2",
    "yarn.scheduler.capacity.root.b.b1.capacity": "50",
    "yarn.scheduler.capacity.root.b.b2.capacity": "50",
    "yarn.scheduler.capacity.root.a.user-limit-factor": "3",
    "yarn.scheduler.capacity.root.b.b1.user-limit-factor": "2",
}
LABELS = {
    "yarn.node-labels.enabled": "true",
    "yarn.node-labels.fs-store.root-dir": "/tmp/labels",
    **{
        f"yarn.scheduler.capacity.root{queue}.accessible-node-labels{key}": value
        for queue, share in (("", "100"), (".a", "50"), (".b", "50"), (".b.b1", "100"), (".b.b2", "0"))
        for key, value in (("", LABEL), (f".{LABEL}.capacity", share))
    },
}
PREEMPTION = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval": "2500",
    "yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill": "4000",
    "yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round": "0.5",
    "yarn.resourcemanager.monitor.capacity.preemption.natural_termination_factor": "1",
}
_CAPACITY, _PREEMPTION = "yarn.scheduler.capacity.", "yarn.resourcemanager.monitor.capacity.preemption."
MOVED_RESERVATIONS = {
    **PREEMPTION,
    f"{UNDERUTILIZED}enabled": "true",
    f"{UNDERUTILIZED}reserved-container-delay-ms": "0",
    f"{UNDERUTILIZED}allow-move-reservation": "true",
    f"{_CAPACITY}root.ordering-policy": "priority-utilization",
    f"{_CAPACITY}root.b.ordering-policy": "priority-utilization",
    f"{_CAPACITY}root.a.priority": "5",
    f"{_CAPACITY}root.b.b1.priority": "3",
    f"{_CAPACITY}reservations-continue-look-all-nodes": "false",
}
"""Rounds of preemption move reservations of queues of higher priority to other nodes."""
_FAIR = {f"{_CAPACITY}root.a.ordering-policy": "fair", f"{_CAPACITY}root.b.b1.ordering-policy": "fair"}
_INTRA_QUEUE = {**PREEMPTION, f"{_PREEMPTION}intra-queue-preemption.enabled": "true"}
_FEATURES: tuple[dict[str, str], ...] = (
    _FAIR,
    {**_FAIR, f"{_CAPACITY}root.a.ordering-policy.fair.enable-size-based-weight": "true"},
    {**PREEMPTION, f"{_CAPACITY}lazy-preemption-enabled": "true"},
    _INTRA_QUEUE,
    {**_INTRA_QUEUE, f"{_PREEMPTION}intra-queue-preemption.preemption-order-policy": "userlimit_first"},
    {**PREEMPTION, f"{_PREEMPTION}select_based_on_reserved_containers": "true"},
    {**PREEMPTION, f"{_PREEMPTION}preemption-to-balance-queue-after-satisfied.enabled": "true"},
    {**PREEMPTION, f"{_CAPACITY}root.a.disable_preemption": "true"},
    MOVED_RESERVATIONS,
    {f"{_CAPACITY}resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"},
    {f"{_CAPACITY}reservations-continue-look-all-nodes": "false"},
    {f"{_CAPACITY}max-parallel-apps": "3"},
    {f"{_CAPACITY}root.a.max-parallel-apps": "1"},
    {f"{_CAPACITY}root.ordering-policy": "priority-utilization", f"{_CAPACITY}root.a.priority": "4"},
    {f"{_CAPACITY}per-node-heartbeat.multiple-assignments-enabled": "false"},
    {f"{_CAPACITY}per-node-heartbeat.maximum-offswitch-assignments": "3"},
    {f"{_CAPACITY}node-locality-delay": "5", f"{_CAPACITY}rack-locality-additional-delay": "3"},
    {
        f"{_CAPACITY}root.a.minimum-user-limit-percent": "25",
        f"{_CAPACITY}root.a.user-settings.ann.weight": "2",
    },
    {f"{_CAPACITY}maximum-am-resource-percent": "0.1"},
    {f"{_CAPACITY}root.a.maximum-capacity": "50", f"{_CAPACITY}root.b.b2.maximum-capacity": "60"},
    {f"{_CAPACITY}root.b.b1.default-application-lifetime": "20"},
    {f"{_CAPACITY}root.b.b2.state": "STOPPED"},
    {"yarn.resourcemanager.rm.container-allocation.expiry-interval-ms": "5000"},
    {f"{_CAPACITY}schedule-asynchronously.enable": "true"},
)


def random_features(seed: int) -> dict[str, str]:
    """The settings of some features of the scheduler together."""
    draw = random.Random(f"features/{seed}")
    chosen = draw.sample(_FEATURES, draw.randint(2, 5))
    return {key: value for feature in chosen for key, value in feature.items()}


class RandomApplication(ApplicationCore[Event, Action]):
    """Requests containers in waves; releases some, and withdraws some requests."""

    def __init__(self, attempt_id: ApplicationAttemptId, seed: int, nodes: int, *, labels: bool) -> None:
        super().__init__(check_invariants=False)
        self._draw = random.Random(f"{seed}/{attempt_id.application_id.id}/{attempt_id.attempt}")
        self._nodes = nodes
        self._labels = labels
        self._wanted = self._ended = 0
        self._waves = self._draw.randint(1, 3)
        self._requests = 0
        on = self._dispatcher.on
        on(Registered, lambda _: self._next_wave())
        on(ContainersAllocated, self._allocated)
        on(ContainersCompleted, self._completed)
        on(ContainersFromPreviousAttempts, lambda _: None)
        on(ContainerStartFailed, lambda event: self._dispatcher.emit(ReleaseContainer(event.container_id)))

    def progress(self) -> float:
        return self._ended / self._wanted if self._wanted else 0.0

    def _next_wave(self) -> None:
        draw = self._draw
        self._waves -= 1
        count = draw.choice((1, 3, 8, 25))
        request = self._request()
        for number in range(count):
            if number % 5 == 4:
                request = self._request()
            self._dispatcher.emit(RequestContainer(request))
        self._wanted += count
        if draw.random() < 0.2:
            self._dispatcher.emit(WithdrawRequest(request))
            self._wanted -= 1

    def _request(self) -> ContainerRequest:
        draw = self._draw
        size, priority = Resource(draw.choice(SIZES_MB), draw.choice((1, 1, 2))), draw.randint(0, 2)
        self._requests += 1
        kind, number = draw.random(), self._requests
        if kind < 0.3:
            host = f"n{draw.randint(1, self._nodes):05}"
            return ContainerRequest(
                size, priority, (host,), relax_locality=draw.random() < 0.8, allocation_request_id=number
            )
        if kind < 0.45:
            return ContainerRequest(size, priority, (), (f"/rack-{draw.randint(1, 2)}",), allocation_request_id=number)
        if kind < 0.6 and self._labels:
            return ContainerRequest(size, priority + 10, label=LABEL, allocation_request_id=number)
        return ContainerRequest(size, priority + 20, allocation_request_id=number)

    def _allocated(self, event: ContainersAllocated) -> None:
        for allocation in event.allocations:
            if self._draw.random() < 0.1:
                self._dispatcher.emit(ReleaseContainer(allocation.container.id))
            else:
                seconds = self._draw.choice(DURATIONS_S)
                self._dispatcher.emit(Launch(allocation.container, ContainerLaunchContext((f"s{seconds}",))))

    def _completed(self, event: ContainersCompleted) -> None:
        self._ended += len(event.statuses)
        if self._ended >= self._wanted:
            if self._waves:
                self._next_wave()
            else:
                self._end(Finish(FinalApplicationStatus.SUCCEEDED))


class RandomWork(RunningWork, frozen=True):
    """`random`: (seed, number of nodes, whether there are labels)."""

    random: tuple[int, int, bool] = (0, 0, False)

    def application(
        self, attempt_id: ApplicationAttemptId, now_ms: int, *, check_invariants: bool
    ) -> RandomApplication:
        seed, nodes, labels = self.random
        return RandomApplication(attempt_id, seed, nodes, labels=labels)


class Decisions(Trace):
    """The decisions of each host: state changes, allocations, preemption; not which heartbeats led to it."""

    def __init__(self) -> None:
        super().__init__()
        self.of: dict[str, list[str]] = {}
        self.heartbeats = 0

    def note(self, now_ms: int, host: str, event: object, effects: Sequence[object]) -> None:
        if host.startswith("am ") and not isinstance(event, HeartbeatDone):
            self._add(now_ms, host, (event, *effects))
        for effect in effects:
            match effect:
                case StateChanged() | Preempted():
                    self._add(now_ms, host, effect)
                case Reply(_, AllocateResponse() as value) if value.allocated or value.completed or value.preemption:
                    self._add(now_ms, host, replace(value, response_id=0, nm_tokens=()))
                case _:
                    pass

    def _add(self, now_ms: int, host: str, what: object) -> None:
        self.of.setdefault(host, []).append(f"{now_ms - 1_700_000_000_000} {what}")


@dataclass
class RandomRun:
    """A run of a seed; `differences(other)` compares two runs of the same seed.

    `settings` replace those of the seed.
    """

    seed: int
    all_heartbeats: bool
    settings: dict[str, str] = field(default_factory=dict)
    duration_ms: int = 90_000
    decisions: Decisions = field(default_factory=Decisions)

    def __post_init__(self) -> None:
        draw = self.draw = random.Random(self.seed)
        self.nodes = draw.randint(2, 12)
        self.labels = draw.random() < 0.5
        settings = dict(SETTINGS)
        settings |= LABELS if self.labels else {}
        settings |= PREEMPTION if draw.random() < 0.6 else {}
        if draw.random() < 0.3:
            settings["yarn.scheduler.capacity.node-locality-delay"] = "3"
        if draw.random() < 0.2:
            settings["yarn.scheduler.capacity.per-node-heartbeat.maximum-container-assignments"] = "2"
        self.engine = Engine(self.seed)
        stages = [Rule(f"s{s}", Match(command=f"^s{s}$"), (EmulationStage(1000 * s, 20),)) for s in DURATIONS_S]
        self.cluster = SimulatedCluster(
            self.engine,
            composed(None, settings | self.settings, node_sizes(NODE.memory_mb, NODE.vcores)),
            ClusterShape(self.nodes, 2, NODE).machines(),
            EmulationTable((Rule(AM_RULE, Match(is_master=True), (EmulationStage(None),)), *stages), self.seed),
            History(),
            directory=Path(),
            conditions=STEADY,
            encode=False,
            all_heartbeats=self.all_heartbeats,
            trace=self.decisions,
        )
        self.cluster.start()
        if self.labels:
            self._later(1500, self._label_nodes)
        for _ in range(draw.randint(2, 9)):
            self._later(draw.randint(1500, 50_000), partial(self._submit, draw.random(), draw.random()))
        for _ in range(draw.choice((0, 0, 1, 3))):
            self._plan_fault(draw.randint(3000, 60_000), draw.randint(1, self.nodes), draw.randint(500, 12_000))

    def go(self) -> RandomRun:
        self.engine.run(self.engine.now_ms + self.duration_ms)
        if self.cluster.quiet_heartbeats is not None:
            self.cluster.quiet_heartbeats.resume_all()
        return self

    # Work

    def _later(self, after_ms: int, action: Callable[[], None]) -> None:
        self.engine.at(self.engine.now_ms + after_ms, Rank.CLIENT, 0, action)

    def _label_nodes(self) -> None:
        rm, label = self.cluster.rm, (NodeLabel(LABEL, exclusive=self.seed % 2 == 0),)
        run(rm.ask(lambda call: AddClusterNodeLabels(call, label)), _ignore)
        nodes = tuple((NodeId(f"n{number:05}", 0), (LABEL,)) for number in range(1, self.nodes // 2 + 1))
        run(rm.ask(lambda call: ReplaceLabelsOnNodes(call, nodes)), _ignore)

    def _submit(self, which: float, kill: float) -> None:
        rm = self.cluster.rm

        def got(response: object) -> None:
            if isinstance(response, GetNewApplicationResponse):
                self._submit_as(response.application_id, which, kill)

        if rm.is_up and not rm.is_paused:
            run(rm.ask(GetNewApplication), got)

    def _submit_as(self, application_id: ApplicationId, which: float, kill: float) -> None:
        work = RandomWork(0, WorkPlan(), SimulatedSpool(), random=(self.seed, self.nodes, self.labels))
        self.cluster.works[application_id] = work
        context = ApplicationSubmissionContext(
            application_id,
            ContainerLaunchContext((AM_RULE,)),
            Resource(256, 1),
            queue=("a", "b1", "b2")[int(which * 3)],
        )
        user, rm = ("ann", "bob")[int(which * 100) % 2], self.cluster.rm
        run(rm.ask(lambda call: SubmitApplication(call, user, context)), _ignore)
        if kill < 0.15:
            self._later(round(kill * 100_000), partial(self._kill, application_id, user))

    def _kill(self, application_id: ApplicationId, user: str) -> None:
        rm = self.cluster.rm
        if rm.is_up and not rm.is_paused:
            run(rm.ask(lambda call: KillApplication(call, application_id, user)), _ignore)

    # Faults

    def _plan_fault(self, at_ms: int, number: int, for_ms: int) -> None:
        cluster, machine = self.cluster, self.cluster.machine(number)
        link = cluster.network.link(f"tracker-{number}")
        begin, end = self.draw.choice(
            (
                (partial(machine.kill, containers=True), partial(cluster.start_node, number)),
                (partial(machine.kill, containers=False), partial(cluster.start_node, number)),
                (machine.stop, partial(cluster.start_node, number)),
                (machine.nm.pause, machine.nm.resume),
                (cluster.kill_rm, cluster.start_rm),
                (cluster.pause_rm, cluster.resume_rm),
                (partial(self._leave, number), _nothing),
                (partial(link.inject, 1, NetworkFault(requests=True)), partial(link.remove, 1)),
                (partial(link.inject, 1, NetworkFault(delay_s=0.3)), partial(link.remove, 1)),
            )
        )
        for delay_ms, action in ((at_ms, begin), (at_ms + for_ms, end)):
            self.engine.at(self.engine.now_ms + delay_ms, Rank.FAULT, number, action)

    def _leave(self, number: int) -> None:
        self.cluster.leaving.add(number)
        if self.cluster.rm.is_up:
            self.cluster.refresh_leaving(10)

    # The end

    def final_state(self) -> dict[str, object]:
        """The state that the heartbeats leave behind in the cores."""
        rm = self.cluster.rm
        if not rm.is_up or rm.is_paused:
            return {}
        state = rm_state(rm.core)
        for machine in self.cluster.machines:
            if machine.nm.is_up and not machine.nm.is_paused:
                status = machine.nm.core.status
                state[machine.nm.name] = (status.state, status._response_id, _next_deadline_ms(machine.nm.core))
        return state

    def differences(self, other: RandomRun) -> list[str]:
        found: list[str] = []
        for host in dict.fromkeys((*self.decisions.of, *other.decisions.of)):
            one, two = self.decisions.of.get(host, []), other.decisions.of.get(host, [])
            if one != two:
                index = next(
                    (i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two))
                )
                found.append(f"{host} [{index}]: {one[index : index + 1]} != {two[index : index + 1]}")
        mine, others = self.final_state(), other.final_state()
        found += [
            f"{key}: {mine.get(key)} != {others.get(key)}" for key in mine | others if mine.get(key) != others.get(key)
        ]
        return found


def rm_state(core: ResourceManagerCore) -> dict[str, object]:
    """The state that heartbeats leave behind in the ResourceManager."""
    state: dict[str, object] = {}
    for node_id, node in core.context.nodes.items():
        state[f"rm {node_id}"] = (node.state, node.last_response, node.launched, node.completed, node.has_orders)
    state["nodes"] = dict(core.context.node_liveness._pings)
    state["AMs"] = dict(core.context.am_liveness._pings)
    for attempt_id, session in core.context.sessions.items():
        state[f"rm {attempt_id}"] = _without_headroom(session.response)
        attempt = core.scheduler.attempt_of(attempt_id.application_id)
        if attempt is not None:
            counts = (attempt.opportunities, attempt.missed_non_partitioned, attempt.re_reservations)
            state[f"counts of {attempt_id}"] = tuple(map(dict, counts))
    for leaf in (queue for queue in core.scheduler.queues.values() if isinstance(queue, LeafQueue)):
        stored = {name: user.limit for name, user in leaf.users.users.items()}
        state[f"limits in {leaf.path}"] = (leaf.users.version, dict(leaf.users.limits), stored)
    return state


def _ignore(outcome: object) -> None:
    assert outcome is None or not isinstance(outcome, YarnException) or outcome, outcome


def _without_headroom(response: AllocateResponse | None) -> AllocateResponse | None:
    """The reply without what nobody reads in one to a heartbeat that is left out, and which is not kept up to date."""
    return None if response is None else replace(response, headroom=Resource(0, 0), cluster_nodes=0)


def _nothing() -> None:
    pass


def _next_deadline_ms(core: NodeManagerCore) -> int:
    """The next deadline of a NodeManager, without timers of heartbeats after which others were sent."""
    number = core.status._heartbeat_number
    timers = core._dispatcher._timers
    return min(at_ms for at_ms, _, event in timers if not isinstance(event, HeartbeatDue) or event.number == number)
