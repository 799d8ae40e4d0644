"""Runs one workload in two ways, and compares all that the ResourceManager's core and the AMs' cores get and decide.

The ways differ in what they leave out or shorten, and must not differ in anything else: the same inputs with news, in
the same order and in the same virtual millisecond, the same state changes, replies and preemption, the same state in
the end, and the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from itertools import zip_longest
from typing import NamedTuple

import pytest
from msgspec import Struct
from msgspec.structs import fields, replace

from am.core.actions import Launch
from am.core.application_master import AbandonLaunch
from am.core.events import ContainersAllocated, ContainerStarted, HeartbeatDone
from rm.core.events import Allocate, NodeHeartbeat, PlayedHeartbeat, QuietHeartbeat
from tests.yarnling.simulation.random_clusters import rm_state
from tests.yarnling.simulation.random_workloads import UNTIL_MS, RandomWorkload
from yarn.containers import ContainerStatus
from yarn.ids import ContainerId, NodeId
from yarn.machine import Refuse, Reply, StateChanged, Tick
from yarn.protocols.master import AllocateRequest, AllocateResponse
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse
from yarn.resource import NONE
from yarnling.run.trace import Trace
from yarnling.simulation.engine import START_MS
from yarnling.simulation.workload_cluster import WorkloadCluster
from yarnling.whatif import run as whatif
from yarnling.whatif.result import WhatIfResult
from yarnling.workload.model import NodeSchedule

CONTEXT_STEPS = 3
"""Steps that are shown before the first difference."""
SHOWN_CHARS_MAX = 600
COSTS = ("events", "wall_s")
"""The fields of a result that say what the run cost."""
EXPLANATIONS = ("longest_waits", "wait_reasons")
"""The fields of a result with sentences of `explain`: their ages are those at the last event of the scheduler."""


class Way(Enum):
    """The ways to simulate the messages of a workload run. The value holds the arguments of WorkloadCluster."""

    EVERY_HEARTBEAT = (("all_heartbeats", True),)
    QUIET_LEFT_OUT = (("all_heartbeats", False),)
    PLAYED = (("all_heartbeats", False), ("played", True))


class CoreStep(NamedTuple):
    """A step of a core with news. `event` and `effects` are without the numbers of calls, which count left-out ones."""

    at_ms: int
    host: str
    event: str
    effects: tuple[str, ...]

    def __str__(self) -> str:
        lines = (f"{self.at_ms} ms {self.host}: {self.event}", *self.effects)
        return "\n      ".join(
            line if len(line) <= SHOWN_CHARS_MAX else f"{line[:SHOWN_CHARS_MAX]}..." for line in lines
        )


class Steps(Trace):
    """Notes the steps with news, in order.

    Containers that are played have no tokens, and their AM does not learn when they have started: neither matters to
    what it does.

    A heartbeat of a node has news if there is anything in it that was not in the last one, or if it has effects; one of
    an AM if there is anything but the progress in it, or anything but the headroom in its reply. Of a node's heartbeat
    only the news are compared, as a node that is played sends nothing else.
    """

    def __init__(self) -> None:
        super().__init__(hashed=False)
        self.found: list[CoreStep] = []
        self.changes: Counter[str] = Counter()
        self._reports: dict[NodeId, NodeHeartbeatRequest] = {}
        self._statuses: dict[ContainerId, ContainerStatus] = {}

    def note(self, now_ms: int, host: str, event: object, effects: Sequence[object]) -> None:
        if host == "rm":
            changes = (effect for effect in effects if isinstance(effect, StateChanged) and effect.kind == "RMNode")
            self.changes.update(change.target for change in changes if change.target != change.source)
            self._add(now_ms, host, self._input_of_rm(event), effects)
        elif host.startswith("am ") and not isinstance(event, HeartbeatDone | ContainerStarted):
            self._add(now_ms, host, _input_of_am(event), effects)

    def _add(self, now_ms: int, host: str, event: str, effects: Sequence[object]) -> None:
        shown = tuple(text for text in map(_effect, effects) if text)
        if shown or not event.endswith(QUIET):
            self.found.append(CoreStep(now_ms - START_MS, host, event, shown))

    def _input_of_rm(self, event: object) -> str:
        match event:
            case Tick():
                return f"Tick{QUIET}"
            case QuietHeartbeat(node_id):
                return f"NodeHeartbeat {node_id}{QUIET}"
            case NodeHeartbeat(_, request):
                other = replace(request, response_id=0, containers=())
                is_changed = replace(other, refused_starts=()) != self._reports.get(request.node_id)
                self._reports[request.node_id] = replace(other, refused_starts=())
                shown = _with_values(other) if is_changed or request.refused_starts else ""
                return self._heartbeat(request.node_id, request.containers, shown)
            case PlayedHeartbeat(_, node_id, news):
                return self._heartbeat(node_id, news)
            case Allocate(_, attempt_id, request):
                if replace(request, response_id=0, progress=0.0) == AllocateRequest(0):
                    return f"Allocate {attempt_id}{QUIET}"
                return f"Allocate {attempt_id} {_with_values(request)}"
            case Struct():
                return repr(replace(event, call=0) if hasattr(event, "call") else event)
            case _:
                return repr(event)

    def _heartbeat(self, node_id: NodeId, statuses: Iterable[ContainerStatus], other: str = "") -> str:
        """A node's heartbeat, with the statuses that were not in an earlier one, and what else it reports."""
        news = [status for status in statuses if self._statuses.get(status.container_id) != status]
        self._statuses.update((status.container_id, status) for status in news)
        return f"NodeHeartbeat {node_id} {other} {news}" if other or news else f"NodeHeartbeat {node_id}{QUIET}"


QUIET = " (no news)"


def _with_values(record: Struct) -> str:
    """The fields of a record that differ from their defaults."""
    values = ((field.name, getattr(record, field.name), field.default) for field in fields(record))
    return " ".join(f"{name}={value}" for name, value, default in values if value != default)


def _input_of_am(event: object) -> str:
    """The event as text, without the tokens of containers."""
    if isinstance(event, ContainersAllocated):
        return f"ContainersAllocated {[(one.container.id, one.request) for one in event.allocations]}"
    return repr(event)


def _effect(effect: object) -> str:
    """The effect as text; "" for a reply without news."""
    match effect:
        case Reply(_, NodeHeartbeatResponse() as value):
            return "" if value.is_quiet else f"Reply {_with_values(value)}"
        case Reply(_, AllocateResponse() as value):
            empty = AllocateResponse(0, NONE, 0)
            is_quiet = replace(value, response_id=0, headroom=NONE, cluster_nodes=0, application_priority=0) == empty
            return "" if is_quiet else f"Reply {_with_values(value)}"
        case AbandonLaunch():
            return ""
        case Launch(container):
            return f"Launch {container.id} {container.node_id}"
        case Reply(_, value) | Refuse(_, value):
            return f"{type(effect).__name__} {value!r}"
        case _:
            return repr(effect)


class WorkloadRun(NamedTuple):
    """All that one way of running a workload shows. `final_state`: of the ResourceManager's core, at the end.

    `changes` {state: how many nodes were in it}
    """

    steps: tuple[CoreStep, ...]
    final_state: dict[str, object]
    result: WhatIfResult
    changes: Counter[str]


def run_in(way: Way, of: RandomWorkload) -> WorkloadRun:
    """Run the workload in this way."""
    steps, clusters = Steps(), list[WorkloadCluster]()

    def cluster(engine: object, conf: object, nodes: object, **_: object) -> WorkloadCluster:
        clusters.append(WorkloadCluster(engine, conf, nodes, trace=steps, **dict(way.value)))  # type: ignore[arg-type]
        return clusters[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whatif, "WorkloadCluster", cluster)
        conf = whatif.what_if_configuration(None, of.settings).conf
        options = whatif.RunOptions(of.seed, UNTIL_MS)
        result = whatif.run_what_if(conf, of.workload, of.nodes, options, schedule=NodeSchedule(of.node_events))
    (made,) = clusters
    found = tuple(steps.found)
    if made.quiet_heartbeats is not None:
        made.quiet_heartbeats.resume_all()
    return WorkloadRun(found, rm_state(made.rm.core), result, steps.changes)


def first_difference(one: WorkloadRun, two: WorkloadRun, *, ignored: Collection[str] = ()) -> str:
    """The first difference between two runs, with what came before it; "" if there is none.

    `ignored`: the fields of the results that may differ.
    """
    ignored = (*COSTS, *ignored)
    return next(filter(None, (_of_steps(one, two), *_of_results(one, two, ignored), *_of_states(one, two))), "")


def _of_steps(one: WorkloadRun, two: WorkloadRun) -> str:
    if one.steps == two.steps:
        return ""
    pairs = zip(one.steps, two.steps, strict=False)
    shorter = min(len(one.steps), len(two.steps))
    index = next((index for index, (mine, others) in enumerate(pairs) if mine != others), shorter)
    before = "\n".join(f"    {step}" for step in one.steps[max(0, index - CONTEXT_STEPS) : index])
    mine, others = (str(run.steps[index]) if index < len(run.steps) else "no more steps" for run in (one, two))
    return (
        f"step {index} of {len(one.steps)} and {len(two.steps)} differs; before it\n{before}\none {mine}\ntwo {others}"
    )


def _of_results(one: WorkloadRun, two: WorkloadRun, ignored: Collection[str]) -> Iterator[str]:
    for field in fields(WhatIfResult):
        mine, others = getattr(one.result, field.name), getattr(two.result, field.name)
        if mine != others and field.name not in ignored:
            yield f"{field.name} of the results differ: {_first_of(mine, others)}"


def _first_of(mine: object, others: object) -> str:
    """The first elements that differ."""
    if not isinstance(mine, Iterable) or not isinstance(others, Iterable):
        return f"{mine} and {others}"
    pairs = zip_longest(mine, others)
    return next(f"number {number}: {a} and {b}" for number, (a, b) in enumerate(pairs) if a != b)


def _of_states(one: WorkloadRun, two: WorkloadRun) -> Iterator[str]:
    mine, others = one.final_state, two.final_state
    for key in mine | others:
        if mine.get(key) != others.get(key):
            yield f"{key} in the end: {mine.get(key)} and {others.get(key)}"
