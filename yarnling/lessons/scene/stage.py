"""The stage of a lesson: a small simulated cluster, to which a lesson submits applications and does harm.

    stage = Stage(nodes=2, settings={...})
    ann = stage.submit(2.0, "ann", (Wanted(4, Resource(1024, 1)),))
    stage.run(10)

Time is in seconds since the start. Nothing is drawn: the same lesson is always the same run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from nm.core.emulation import EmulationStage, EmulationTable, Match, Rule
from rm.core.events import Event, GetNewApplication, SubmitApplication
from rm.view import ApplicationSnapshot, ContainerSnapshot, NodeSnapshot, QueueSnapshot, RMView, UseSnapshot
from wire.protocols.client import ApplicationClientProtocol
from wire.rpc import Rpc
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerLaunchContext
from yarn.ids import ApplicationId, NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.client import GetNewApplicationResponse
from yarn.resource import Resource
from yarnling.cluster.configuration import composed, node_sizes
from yarnling.faults.history import History
from yarnling.faults.plan import WorkPlan
from yarnling.lessons.scene.application import FOREVER, LENGTHS_S, LessonWork, Wanted
from yarnling.run.names import CLIENT, RM, RM_LIFELINE, Names, am, host, nm, node_lifeline
from yarnling.run.records import RecordedFault
from yarnling.run.trace import Trace
from yarnling.simulation.account import Account, Told
from yarnling.simulation.cluster import ClusterShape, SimulatedCluster
from yarnling.simulation.conditions import STEADY
from yarnling.simulation.engine import START_MS, Engine, Rank
from yarnling.simulation.process import run
from yarnling.simulation.trace_file import RunTrace
from yarnling.simulation.workload import AM_RULE, SimulatedSpool

SETTINGS = {
    "yarn.scheduler.minimum-allocation-mb": "1024",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}
SEED = 1
AM_SIZE = Resource(1024, 1)
NODE = Resource(8192, 8)
NODE_PREFIX = nm("n")
RESERVED = "RESERVED"
LENGTH_RULES = (
    Rule(FOREVER, Match(command=f"^{FOREVER}$"), (EmulationStage(None),)),
    *(Rule(f"s{each}", Match(command=f"^s{each}$"), (EmulationStage(1000 * each),)) for each in LENGTHS_S),
)
"""The work of the containers of a lesson's applications."""
_HOST = re.compile(r"\bn\d{5}\b")


class TimedSubmission(NamedTuple):
    """An application that is submitted `at_s`, by the user of its name if no other is given."""

    at_s: float
    name: str
    wanted: tuple[Wanted, ...]
    queue: str
    user: str = ""
    am_size: Resource = AM_SIZE


class Stage:
    """A cluster of `nodes` equal machines, or of machines with these `sizes`. `settings` are added to SETTINGS.

    `trace`: gets the whole run, in addition to the `account` for the story.
    """

    def __init__(
        self,
        *,
        nodes: int = 2,
        resource: Resource = NODE,
        racks: int = 1,
        settings: Mapping[str, str] | None = None,
        sizes: Sequence[Resource] = (),
        encode: bool = True,
        trace: RunTrace | None = None,
    ) -> None:
        self.engine = Engine(SEED)
        self.names = Names()
        self.trace = Trace(None if trace is None else trace.line, hashed=False)
        self._run_trace = trace
        self.applications: dict[str, ApplicationId] = {}
        conf = composed(None, {**SETTINGS, **(settings or {})}, node_sizes(resource.memory_mb, resource.vcores))
        machines = ClusterShape(len(sizes) or nodes, racks, resource).machines()
        if sizes:
            machines = tuple(replace(each, resource=size) for each, size in zip(machines, sizes, strict=True))
        self.cluster = SimulatedCluster(
            self.engine,
            conf,
            machines,
            _table(),
            History(),
            directory=Path(),
            conditions=STEADY,
            encode=encode,
            trace=self.trace,
        )
        self.account = Account(self.cluster, self.trace, self.names)
        if trace is not None:
            trace.observe(self.cluster, self.trace)
        self.cluster.start()

    def at(self, seconds: float, action: Callable[[], None]) -> None:
        self.engine.at(START_MS + round(1000 * seconds), Rank.CLIENT, 0, action)

    def submit(
        self,
        seconds: float,
        name: str,
        wanted: tuple[Wanted, ...],
        *,
        user: str = "",
        queue: str = "default",
        am_size: Resource = AM_SIZE,
        attempts: int = 0,
        priority: int | None = None,
        label: str | None = None,
        groups: tuple[str, ...] = (),
    ) -> None:
        """Submit an application of that name, by the user of the same name if no other is given.

        `label`: of the partition for all its requests, the AM's too. `groups`: the user's, the primary one first.
        """
        context = ApplicationSubmissionContext(
            ApplicationId(0, 0),
            ContainerLaunchContext((AM_RULE,)),
            am_size,
            name=name,
            queue=queue,
            max_app_attempts=attempts,
            priority=priority,
            node_label_expression=label,
        )
        self.at(seconds, partial(self._submit, context, user or name, wanted, groups))

    def happening(self, seconds: float, place: str, text: str, action: Callable[[], None]) -> None:
        """Carry out an action on the cluster, and add this text about it to the story."""

        def happen() -> None:
            self.account.told.append(Told(self.now_ms, place, text, is_happening=True))
            if self._run_trace is not None:
                self._run_trace.fault(RecordedFault(text, self.engine.now_ms, self.engine.now_ms, _lifelines(place)))
            action()

        self.at(seconds, happen)

    def label(self, name: str, *nodes: int, exclusive: bool = True, seconds: float = 1.0) -> None:
        """Add a label to the cluster, and put the nodes with these numbers into its partition."""

        of_hosts = {self.cluster.machine(number).host: name for number in nodes}
        self.at(seconds, lambda: self.cluster.label_nodes((NodeLabel(name, exclusive),), of_hosts))

    def run(self, until_s: float) -> None:
        self.engine.run(START_MS + round(1000 * until_s))

    def run_until(self, is_over: Callable[[], bool], limit_s: float) -> bool:
        """Run until the condition holds; False if it does not hold by `limit_s`."""
        self.engine.advance(START_MS + round(1000 * limit_s), is_over)
        return is_over()

    @property
    def now_ms(self) -> int:
        return self.engine.now_ms - START_MS

    @property
    def view(self) -> RMView:
        """The state of the ResourceManager."""
        return RMView(self.cluster.rm.core)

    def nodes(self) -> list[NodeSnapshot]:
        """The nodes of the scheduler."""
        found = map(self.view.node, self.view.node_ids())
        return [each for each in found if each is not None]

    def node(self, number: int) -> NodeSnapshot:
        """Node `number`, from 1."""
        found = self.view.node(self.node_id(number))
        assert found is not None, f"n{number} is not in use"
        return found

    def node_id(self, number: int) -> NodeId:
        return self.cluster.machine(number).nm.node_id

    def queue(self, name: str, label: str = "") -> QueueSnapshot:
        """A queue by its path or name, in the partition of that label."""
        queue = self.view.queue(name, label)
        assert queue is not None, name
        return queue

    def use(self, name: str) -> UseSnapshot:
        """The use of an application that runs."""
        use = self.view.use(self.applications[name])
        assert use is not None, f"{name} does not run"
        return use

    def held(self, name: str) -> tuple[ContainerSnapshot, ...]:
        """The containers and reservations of an application; none before its submission, and after its end."""
        application_id = self.applications.get(name)
        return () if application_id is None else self.view.containers_of(application_id) or ()

    def containers(self, name: str) -> list[ContainerSnapshot]:
        """The containers that an application holds, without its AM and without reservations."""
        return [each for each in self.held(name) if not each.is_am and each.state != RESERVED]

    def application(self, name: str) -> ApplicationSnapshot:
        found = self.view.application(self.applications[name])
        assert found is not None, name
        return found

    def verdict(self, name: str) -> str:
        """The reason why an application waits, as `yarnling explain` says it, with the lesson's names; "" if nothing
        waits.
        """
        _, sentences = self.view.waits(self.applications[name], self.engine.now_ms)
        sentence = _HOST.sub(lambda match: host(match[0]), sentences[0]) if sentences else ""
        for other, application_id in self.applications.items():
            sentence = sentence.replace(str(application_id), other)
        return sentence

    def _submit(
        self, context: ApplicationSubmissionContext, user: str, wanted: tuple[Wanted, ...], groups: tuple[str, ...]
    ) -> None:
        def named(application_id: ApplicationId) -> None:
            self.applications[context.name] = application_id
            self.names.applications[application_id] = context.name

        submit_now(self.cluster, context, user, wanted, named, groups)


def submit_now(
    cluster: SimulatedCluster,
    context: ApplicationSubmissionContext,
    user: str,
    wanted: tuple[Wanted, ...],
    named: Callable[[ApplicationId], None],
    groups: tuple[str, ...] = (),
) -> None:
    """Submit an application to a ResourceManager that runs; `named` is called with its id before it is submitted.

    The cluster's table of emulated containers needs LENGTH_RULES.
    """

    def got(response: object) -> None:
        assert isinstance(response, GetNewApplicationResponse)
        application_id = response.application_id
        named(application_id)
        cluster.works[application_id] = LessonWork(0, WorkPlan(), SimulatedSpool(), wanted=wanted)
        submitted = _with_id(context, application_id)
        _call(
            cluster,
            ApplicationClientProtocol.submit_application,
            submitted,
            lambda call: SubmitApplication(call, user, submitted, groups),
            lambda _: None,
        )

    _call(cluster, ApplicationClientProtocol.get_new_application, None, GetNewApplication, got)


def _call(
    cluster: SimulatedCluster,
    rpc: Rpc[Any, Any],
    request: object,
    event: Callable[[int], Event],
    got: Callable[[object], None],
) -> None:
    """Make a client's call, which takes no time; observers of calls are notified."""
    observer, rm = cluster.network.observer, cluster.rm
    number = observer.called(CLIENT, "clients", rpc, request)
    observer.sent(number, rm.name)
    observer.arrived(number)

    def answered(reply: object) -> None:
        observer.replied(number)
        observer.over(number, reply)
        got(reply)

    run(rm.ask(event), answered)


def participants(stage: Stage, *applications: str, client: bool = False) -> tuple[str, ...]:
    """The lifelines of a diagram, from left to right."""
    nodes = tuple(f"NM n{machine.number}" for machine in stage.cluster.machines)
    return (*((CLIENT,) if client else ()), "RM", *nodes, *(am(name) for name in applications))


def _lifelines(place: str) -> tuple[str, ...]:
    """The lifelines in a timeline of a participant of the story; none for an AM, which has one for each attempt."""
    if place.startswith(NODE_PREFIX):
        return (node_lifeline(int(place.removeprefix(NODE_PREFIX))),)
    return (RM_LIFELINE,) if place == RM else ()


def _with_id(context: ApplicationSubmissionContext, application_id: ApplicationId) -> ApplicationSubmissionContext:
    return replace(context, application_id=application_id)


def _table() -> EmulationTable:
    """The work of containers: AMs and those that last forever run until they end themselves or are stopped."""
    return EmulationTable((Rule(AM_RULE, Match(is_master=True), (EmulationStage(None),)), *LENGTH_RULES), SEED)
