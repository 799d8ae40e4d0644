"""A whole simulated cluster whose applications a test drives step by step.

    cluster = CaseCluster({"root.queues": "a", "root.a.capacity": "100"}, nodes=(8192, 8192))
    cluster.launch("app1", user="ann", queue="a")
    cluster.ask("app1", 3)
    cluster.run(5)
    assert cluster.held("app1") == {"app1/1": "n1", "app1/2": "n1", "app1/3": "n2", "app1/4": "n1"}

All calls go through the services, tokens and codecs of the daemons, and containers run on their machines. Keys of the
configuration are short as in tests.rm.scheduler.cluster. Every AM is a core that does what the test orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from am.core.actions import (
    Action,
    Application,
    ChangeBlacklist,
    Finish,
    ReleaseContainer,
    RequestContainer,
    WithdrawRequest,
)
from am.core.requests import ContainerRequest
from nm.core.effects import LaunchContainer
from nm.core.emulation import EmulationStage, EmulationTable, Match, Rule
from rm.core.effects import Preempted
from rm.core.events import AddClusterNodeLabels, ReplaceLabelsOnNodes
from rm.core.events import Event as RMEvent
from rm.core.explain.application import explanation
from rm.core.explain.obstacles import obstacles
from rm.core.reports.applications import application_state
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue
from tests.rm.scheduler.cluster import GB, configuration
from tests.yarnling.simulation.driven_application import TASK_RULE, DrivenApplication, DrivenCore
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ANY, ContainerLaunchContext, ResourceRequest
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import StateChanged
from yarn.nodes import NodeLabel
from yarn.resource import Resource
from yarn.settings.yarnling import CHECK_INVARIANTS
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.cluster.configuration import composed
from yarnling.faults.history import History
from yarnling.simulation.client import Submitter
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.conditions import STEADY
from yarnling.simulation.cross_checks import running_twice
from yarnling.simulation.engine import START_MS, Engine
from yarnling.simulation.machine import Program, SimulatedMachine
from yarnling.simulation.process import run
from yarnling.simulation.workload import AM_RULE
from yarnling.workload.model import WorkloadNode

TABLE = EmulationTable(
    (Rule(AM_RULE, Match(is_master=True), (EmulationStage(None),)), Rule(TASK_RULE, stages=(EmulationStage(None),)))
)
LIMIT_S = 60.0
"""Virtual time in which a condition must come true."""

ALL_AT_ONCE = {
    "per-node-heartbeat.maximum-offswitch-assignments": "1000",
    "per-node-heartbeat.maximum-container-assignments": "-1",
}
"""A heartbeat of a node allocates all that fits."""
MONITORED = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "preemption.total_preemption_per_round": "1.0",
    "preemption.natural_termination_factor": "1.0",
    "preemption.max_ignored_over_capacity": "0.0",
}
"""Preemption as fast as it can be, with Hadoop's round each 3 s and kill after 15 s."""
DEFAULTS = {
    "maximum-am-resource-percent": "1",
    "yarn.scheduler.minimum-allocation-mb": str(GB),
    "yarn.scheduler.maximum-allocation-mb": str(64 * GB),
    "yarn.scheduler.maximum-allocation-vcores": "64",
    CHECK_INVARIANTS.key: "true",
}


class Preemption(NamedTuple):
    """A decision of the preemption policy. `step`: requested, killable or killed."""

    at_s: float
    container: str
    step: str
    reason: str


class UserUse(NamedTuple):
    """The amount that a user holds in a leaf queue, and its limit as last computed."""

    used_mb: int
    limit_mb: int


class _Cluster(SimulatedCluster):
    """Runs the applications of a CaseCluster."""

    case: CaseCluster

    def started(self, machine: SimulatedMachine, launch: LaunchContainer) -> Program | None:
        return self.start_master(machine, launch) if launch.emulation == AM_RULE else None

    def ended(self, container_id: ContainerId, exit_code: int | None) -> None:
        self.masters.pop(container_id, None)

    def lasts_ms(self, launch: LaunchContainer) -> int | None:
        if launch.emulation == AM_RULE:
            return None
        application = self.case.application_of(launch.container_id.application_id)
        request = application.requests.get(launch.container_id)
        return None if request is None else application.lasts_ms.get(request.priority)

    def application(self, attempt_id: ApplicationAttemptId) -> Application:
        application = self.case.application_of(attempt_id.application_id)
        application.is_registered = False
        return DrivenCore(application, self.case.name_of)

    def preempted(self, preemption: Preempted) -> None:
        name = self.case.name_of(preemption.container_id)
        at_s = self.engine.elapsed_s
        self.case.preemptions.append(Preemption(at_s, name, preemption.step, preemption.reason))

    def changed(self, change: StateChanged) -> None:
        """Reports are read from the core when a test asks for them."""


class CaseCluster:
    """`nodes`: the size of each machine, one vcore per GB if it is only memory in MB. They are n1, n2 and so on.

    `racks`: that of each machine. `labels`: {node: label}; `shared`: the labels that are not exclusive.
    """

    def __init__(
        self,
        conf: Mapping[str, str],
        nodes: Sequence[int | Resource],
        *,
        racks: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        shared: Sequence[str] = (),
    ) -> None:
        self.engine = Engine(1)
        self.preemptions: list[Preemption] = []
        self._conf = {**DEFAULTS, **conf}
        self._applications: dict[str, DrivenApplication] = {}
        self._names: dict[ApplicationId, str] = {}
        sizes = [size if isinstance(size, Resource) else Resource(size, size // GB) for size in nodes]
        places = racks or ["/r1"] * len(sizes)
        machines = [
            WorkloadNode(f"n{number}", size, rack)
            for number, (size, rack) in enumerate(zip(sizes, places, strict=True), 1)
        ]
        self.cluster = _Cluster(
            self.engine,
            composed(None, full_keys(self._conf), {}),
            machines,
            TABLE,
            History(),
            directory=Path(),
            conditions=STEADY,
        )
        self.cluster.case = self
        self.cluster.rm.after_step = self._compare_hosts
        self.cluster.start_rm()
        self.run(0.5)
        if labels:
            self._label(labels, shared)
        self.cluster.start_machines()
        self._client = Submitter(self.cluster)
        self.until(lambda: len(self.scheduler.nodes) == len(machines), "all nodes are registered")

    # Time

    @property
    def now_s(self) -> float:
        return self.engine.elapsed_s

    def run(self, seconds: float) -> None:
        self.engine.run(self.engine.now_ms + round(1000 * seconds))

    def until(self, condition: Callable[[], bool], what: str = "", limit_s: float = LIMIT_S) -> None:
        """Run until the condition holds; fails if it has not come by `limit_s`."""
        self.engine.advance(self.engine.now_ms + round(1000 * limit_s), condition)
        assert condition(), f"not within {limit_s:g} s: {what}"

    def at(self, seconds: float) -> None:
        """Run until so many seconds after the start of the simulation."""
        self.engine.run(START_MS + round(1000 * seconds))

    # Applications

    def submit(self, app: str, user: str = "user", queue: str = "a", am_mb: int = GB, **context: Any) -> None:
        """Submit an application; other arguments are fields of its ApplicationSubmissionContext.

        `am_label`: the label of the AM's request.
        """
        application = self._applications[app] = DrivenApplication(app)
        am_label = context.pop("am_label", None)
        am_size = Resource(am_mb, 1)
        if am_label is not None:
            context["am_requests"] = (ResourceRequest(0, ANY, am_size, 1, label=am_label),)

        def context_of(application_id: ApplicationId) -> ApplicationSubmissionContext:
            application.application_id = application_id
            self._names[application_id] = app
            return ApplicationSubmissionContext(
                application_id, ContainerLaunchContext((AM_RULE,)), am_size, name=app, queue=queue, **context
            )

        def done(_: ApplicationId, refusal: YarnException | None) -> None:
            application.refusal = "" if refusal is None else refusal.message

        self._client.submit_after(0, user, context_of, done)
        self.until(lambda: not self._client.unfinished, f"{app} is submitted")

    def launch(self, app: str, user: str = "user", queue: str = "a", am_mb: int = GB, **context: Any) -> None:
        """Submit an application and run until its AM is registered."""
        self.submit(app, user, queue, am_mb, **context)
        self.until(lambda: self._applications[app].is_registered, f"the AM of {app} is registered")

    def ask(
        self,
        app: str,
        count: int,
        memory_mb: int = GB,
        vcores: int = 1,
        *,
        priority: int = 1,
        seconds: float | None = None,
        **places: Any,
    ) -> None:
        """The AM requests so many more containers. `places`: `nodes`, `racks`, `relax_locality`, `label`."""
        application = self._applications[app]
        if seconds is not None:
            application.lasts_ms[priority] = round(1000 * seconds)
        request = ContainerRequest(Resource(memory_mb, vcores), priority, **places)
        self._order(app, *[RequestContainer(request)] * count)

    def withdraw(self, app: str, count: int, memory_mb: int = GB, vcores: int = 1, *, priority: int = 1) -> None:
        self._order(app, *[WithdrawRequest(ContainerRequest(Resource(memory_mb, vcores), priority))] * count)

    def release(self, *names: str) -> None:
        """The AMs give these containers back."""
        for name in names:
            self._order(name.partition("/")[0], ReleaseContainer(self.container_id(name)))

    def avoid(self, app: str, *hosts: str) -> None:
        self._order(app, ChangeBlacklist(additions=hosts))

    def readmit(self, app: str, *hosts: str) -> None:
        self._order(app, ChangeBlacklist(removals=hosts))

    def finish(self, app: str) -> None:
        """The AM unregisters."""
        self._order(app, Finish(FinalApplicationStatus.SUCCEEDED))

    def end(self, *names: str) -> None:
        """The processes of these containers exit by themselves, with status 0."""
        for name in names:
            container_id = self.container_id(name)
            for machine in self.cluster.machines:
                if (running := machine.containers.running.get(container_id)) is not None:
                    machine.program_ended(container_id, running.effect.launch, 0)
                    break
            else:
                raise AssertionError(f"{name} runs nowhere")

    def app(self, app: str) -> DrivenApplication:
        return self._applications[app]

    def state(self, app: str) -> YarnApplicationState:
        return application_state(self.cluster.rm.core.context.apps[self.id_of(app)])

    def diagnostics(self, app: str) -> str:
        return str(self.cluster.rm.core.context.apps[self.id_of(app)].diagnostics)

    def why(self, app: str) -> str:
        """The sentences of `yarnling explain`, one a line."""
        context = self.cluster.rm.core.context
        return "\n".join(each.sentence for each in explanation(context, self.id_of(app), self.engine.now_ms).verdicts)

    def obstacles(self, app: str) -> list[str]:
        """The scheduler's last refusals, in the order of the checks."""
        return [str(obstacle) for obstacle in obstacles(self.scheduler, self.id_of(app))]

    # Held amounts

    @property
    def scheduler(self) -> Any:
        return self.cluster.rm.core.context.scheduler

    def held(self, app: str) -> dict[str, str]:
        """{container: node} of the containers that the application holds, the AM's too; each runs on that machine."""
        containers = self.attempt(app).live_containers.values()
        return {self.name_of(each.id): each.node_id.host for each in sorted(containers, key=lambda one: one.id)}

    def count(self, *apps: str) -> tuple[int, ...]:
        """The number of containers that each of the applications holds, the AMs included."""
        return tuple(len(self.attempt(app).live_containers) for app in apps)

    def running(self) -> Counter[str]:
        """{application: containers} that really run on the machines."""
        running = [each for machine in self.cluster.machines for each in machine.containers.running]
        return Counter(self._names[each.application_id] for each in running)

    def assert_settled(self, *apps: str) -> None:
        """The containers that the ResourceManager has allocated run on the machines, and nothing else."""
        assert [self.running()[app] for app in apps] == list(self.count(*apps))

    def attempt(self, app: str) -> FiCaSchedulerApp:
        attempt = self.scheduler.attempt_of(self.id_of(app))
        assert isinstance(attempt, FiCaSchedulerApp), f"{app} does not run"
        return attempt

    def reserved(self) -> dict[str, str]:
        """{node: container} of all reservations."""
        nodes = sorted(self.scheduler.nodes.values(), key=lambda node: node.node_id)
        reserved = [(node.node_id.host, node.reserved_container) for node in nodes]
        return {host: self.name_of(container.id) for host, container in reserved if container is not None}

    def node(self, host: str) -> SchedulerNode:
        (found,) = [node for node in self.scheduler.nodes.values() if node.node_id.host == host]
        assert isinstance(found, SchedulerNode)
        return found

    def free_mb(self, *hosts: str) -> tuple[int, ...]:
        return tuple(self.node(host).unallocated.memory_mb for host in hosts)

    def queue(self, path: str) -> CSQueue:
        queue = self.scheduler.queue(path)
        assert isinstance(queue, CSQueue), path
        return queue

    def used_mb(self, *paths: str, label: str = "") -> tuple[int, ...]:
        return tuple(self.queue(path).usage.used(label).memory_mb for path in paths)

    def users(self, path: str) -> dict[str, UserUse]:
        """{user: what it holds and its limit} of a leaf."""
        leaf = self.queue(path)
        assert isinstance(leaf, LeafQueue), path
        return {
            name: UserUse(user.usage.default.used.memory_mb, user.limit.memory_mb)
            for name, user in leaf.users.users.items()
        }

    def headroom_mb(self, app: str) -> int:
        """The headroom of the last heartbeat that the AM has had an answer to."""
        return self._applications[app].headroom.memory_mb

    def steps(self, step: str) -> list[str]:
        """The containers that preemption has "requested", made "killable" or "killed", in order."""
        return [each.container for each in self.preemptions if each.step == step]

    # Administration

    def admin(self, event_of: Callable[[int], RMEvent]) -> object:
        """An administrator's call; its reply, or the error that it was refused with."""
        outcome: list[object] = []
        run(self.cluster.rm.ask(event_of), outcome.append)
        return outcome[0]

    def refresh(self, changes: Mapping[str, str]) -> object:
        """Read the queues again with these changes; the error if they are refused."""
        conf = {**self._conf, **changes}
        outcome: list[object] = []
        self.cluster.rm.refresh_queues(configuration(conf), outcome.append)
        if not isinstance(outcome[0], YarnException):
            self._conf = conf
        return outcome[0]

    # Names

    def name_of(self, container_id: ContainerId) -> str:
        """`app1/2`: the second container of app1's attempt."""
        return f"{self._names[container_id.application_id]}/{container_id.number}"

    def container_id(self, name: str) -> ContainerId:
        app, _, number = name.partition("/")
        return ContainerId(self.attempt(app).attempt_id, int(number))

    def application_of(self, application_id: ApplicationId) -> DrivenApplication:
        return self._applications[self._names[application_id]]

    def id_of(self, app: str) -> ApplicationId:
        application_id = self._applications[app].application_id
        assert application_id is not None, f"{app} was not submitted"
        return application_id

    # Within

    def _order(self, app: str, *actions: Action) -> None:
        application = self._applications[app]
        application.orders += actions
        if application.is_registered:
            (master,) = [
                each for each in self.cluster.masters.values() if each.attempt_id.application_id == self.id_of(app)
            ]
            master.wake()

    def _label(self, labels: Mapping[str, str], shared: Sequence[str]) -> None:
        added = tuple(NodeLabel(label, label not in shared) for label in dict.fromkeys(labels.values()))
        of_nodes = tuple((NodeId(host, 0), (label,)) for host, label in labels.items())
        for outcome in (
            self.admin(lambda call: AddClusterNodeLabels(call, added)),
            self.admin(lambda call: ReplaceLabelsOnNodes(call, of_nodes)),
        ):
            assert not isinstance(outcome, YarnException), outcome

    def _compare_hosts(self) -> None:
        violations = list(running_twice(self.cluster))
        assert not violations, violations


def full_keys(conf: Mapping[str, str]) -> dict[str, str]:
    """Short keys with Hadoop's full names."""
    full = configuration(conf)
    return {key: full.get(key) or "" for key in full}
