"""A model cluster that carries out the actions of a map-reduce core at once; it has nodes with slots.

The model keeps the resource requests as the RM would. It allocates containers and ends tasks when the test says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from am.core.actions import (
    Finish,
    Leave,
    ReleaseContainer,
    RequestContainer,
    StopContainer,
    WithdrawRequest,
)
from am.core.events import (
    AllocatedContainer,
    ContainersAllocated,
    HeartbeatDone,
    NodesUpdated,
    Registered,
)
from am.core.requests import ContainerRequest
from am.programs.mapreduce.core.job import MapReduceJob, SplitPart, TaskAttemptId, TaskId, TaskKind
from am.programs.mapreduce.core.map_reduce import (
    JobAction,
    JobEvent,
    MapReduce,
    PublishOutput,
    RunTask,
    TaskEnded,
    TaskReport,
)
from am.programs.mapreduce.core.tasks import AttemptRecord
from tests.am.builders import ATTEMPT, GB, container, ended, node_report
from yarn.containers import Container
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.resource import Resource
from yarn.states import NodeState


def job(maps: int = 4, reduces: int = 2) -> MapReduceJob:
    return MapReduceJob(
        name="words",
        splits=tuple((SplitPart(f"/in/{n}", 0, 10),) for n in range(maps)),
        output="/out",
        map_command="cat",
        reduce_command="cat",
        reduces=reduces,
        map_resource=GB,
        reduce_resource=GB,
    )


@dataclass
class Model:
    """An attempt of an AM in the model cluster; `actions` are all actions of the core."""

    core: MapReduce
    hosts: tuple[str, ...] = ("n1", "n2", "n3", "n4")
    slots_per_host: int = 2
    now_ms: int = 0
    wanted: list[ContainerRequest] = field(default_factory=list)
    running: dict[ContainerId, tuple[Container, TaskAttemptId]] = field(default_factory=dict)
    published: dict[int, TaskAttemptId] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    actions: list[JobAction] = field(default_factory=list)
    containers: int = 1

    @property
    def end(self) -> Finish | Leave | None:
        return next((action for action in self.actions if isinstance(action, Finish | Leave)), None)

    def deliver(self, event: JobEvent) -> list[JobAction]:
        actions = self.core.handle(event, self.now_ms)
        for action in actions:
            self.actions.append(action)
            self.carry_out(action)
        return actions

    def carry_out(self, action: JobAction) -> None:
        match action:
            case RequestContainer(request):
                self.wanted.append(request)
            case WithdrawRequest(request):
                self.wanted.remove(request)
            case RunTask(attempt_id, given):
                self.running[given.id] = (given, attempt_id)
            case ReleaseContainer(container_id) | StopContainer(container_id, _):
                self.running.pop(container_id, None)
                self.deliver(TaskEnded(ended(container_id.number, -100)))
            case PublishOutput(attempt_id, ""):
                assert self.published.pop(attempt_id.task_id.number) == attempt_id
            case PublishOutput(attempt_id, _):
                self.published[attempt_id.task_id.number] = attempt_id
            case _:
                pass

    # Actions of a test

    def register(self, maximum: Resource = GB) -> list[JobAction]:
        return self.deliver(Registered(maximum, "root.default"))

    def free_slots(self) -> dict[str, int]:
        used = [given.node_id.host for given, _ in self.running.values()]
        return {host: self.slots_per_host - used.count(host) for host in self.hosts if host not in self.lost}

    def beat(self, headroom: Resource | None = None) -> list[JobAction]:
        """Let a second pass, then deliver a reply that contains only the headroom."""
        self.now_ms += 1000
        room = Resource(sum(self.free_slots().values()) * 1024, 8) if headroom is None else headroom
        return self.deliver(HeartbeatDone(room, len(self.hosts) - len(self.lost)))

    def place(self, count: int | None = None) -> None:
        """Allocate the containers wanted now, lowest priority number first, while there are slots (at most `count`).

        Requests that the core makes in answer have to wait for the next heartbeat.
        """
        for _ in range(min(len(self.wanted), len(self.wanted) if count is None else count)):
            host = next((h for h, free in self.free_slots().items() if free), None)
            if host is None:
                return
            request = min(self.wanted, key=lambda wanted: wanted.priority)
            self.wanted.remove(request)
            self.give(host, request)

    def give(self, host: str, request: ContainerRequest | None, priority: int = 20) -> list[JobAction]:
        self.containers += 1
        given = container(self.containers, host, priority=request.priority if request else priority)
        return self.deliver(ContainersAllocated((AllocatedContainer(given, request),)))

    def running_ids(self, kind: TaskKind, host: str | None = None) -> list[ContainerId]:
        return [
            container_id
            for container_id, (given, attempt_id) in self.running.items()
            if attempt_id.task_id.kind is kind and host in (None, given.node_id.host)
        ]

    def finish(
        self, container_id: ContainerId, exit_status: int = 0, report: TaskReport | None = None
    ) -> list[JobAction]:
        _, attempt_id = self.running.pop(container_id)
        if exit_status == 0 and report is None:
            report = TaskReport(output=f"/local/{attempt_id}")
        return self.deliver(TaskEnded(ended(container_id.number, exit_status, "boom" if exit_status else ""), report))

    def finish_all(self, kind: TaskKind) -> None:
        for container_id in self.running_ids(kind):
            self.finish(container_id)

    def lose_node(self, host: str, state: NodeState = NodeState.LOST) -> None:
        """Lose a node as the RM reports it: the node and the ends of its containers are in one reply."""
        self.lost.add(host)
        gone = [container_id for container_id, (given, _) in self.running.items() if given.node_id.host == host]
        for container_id in gone:
            del self.running[container_id]
        self.deliver(NodesUpdated((node_report(host, state),)))
        for container_id in gone:
            self.deliver(TaskEnded(ended(container_id.number, -100, "Container released on a *lost* node")))

    def run(self, beats_max: int = 200) -> None:
        """Let everything that runs succeed until the job is over. A reduce ends once all outputs are published."""
        for _ in range(beats_max):
            if self.end is not None:
                return
            self.beat()
            self.place()
            self.finish_all(TaskKind.MAP)
            if len(self.published) == len(self.core.maps):
                self.finish_all(TaskKind.REDUCE)
        raise AssertionError(f"not over after {beats_max} heartbeats: {self.core.progress()}")


def started(
    maps: int = 4,
    reduces: int = 2,
    *,
    attempt: int = 1,
    recovered: Mapping[TaskId, tuple[AttemptRecord, ...]] = MappingProxyType({}),
) -> Model:
    am_attempt_id = ApplicationAttemptId(ATTEMPT.application_id, attempt)
    model = Model(MapReduce(job(maps, reduces), am_attempt_id, recovered, check_invariants=True))
    model.register()
    return model
