"""A scheduler with nodes and masters around it, in the words of its domain; no core, no time that passes.

    cluster = Cluster({"root.queues": "a", "root.a.capacity": "100"})
    cluster.node("n1", 8192)
    cluster.submit("app1", queue="a")           its master is asked for
    cluster.beat("n1")                          and placed: app1/1
    cluster.ask("app1", count=3)
    assert cluster.beat("n1") == ["app1/2 on n1 1024"]

Masters are fetched at once, as the ResourceManager does; other containers when their application polls. A node
reports what was fetched as running, and the end of what finished or was to be killed, at its next beat. Keys of the
configuration without `yarn.` in front are those of capacity-scheduler.xml, `preemption.` begins those of preemption.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rm.scheduler.allocate import Allocation
from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.node_labels import LabelChanges
from rm.scheduler.model.notices import (
    ApplicationRejected,
    CleanUpContainer,
    ContainerAllocated,
    ContainerFinished,
    NodesRemapped,
    Notice,
    PreemptionDecided,
    ReleaseTemporary,
)
from rm.scheduler.model.rm_container import RMContainer, RMContainerState
from rm.scheduler.placement.commit_watch import CommitWatch
from rm.scheduler.view.invariants import violations
from yarn.asks import ANY, ResourceRequest, UpdateContainerRequest
from yarn.configuration import Configuration
from yarn.containers import ContainerStatus
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeLabel
from yarn.resource import Resource
from yarn.states import ContainerState, ContainerUpdateType

START_MS = 1_700_000_000_000
SETTLED_MS = START_MS + 86_400_000
"""All waits at a ResourceManager's start are over."""

KILLED_BY_ORDER = -105

GB = 1024

ONE_QUEUE = {"root.queues": "a", "root.a.capacity": "100", "maximum-am-resource-percent": "1"}
"""One leaf that may use all, for tests that are not about sharing between queues."""


ROUNDS_BY_HAND = {"yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval": str(10**12)}
"""With this no heartbeat runs a round of preemption: `Cluster.preempt` does."""


def configuration(conf: Mapping[str, str]) -> Configuration:
    """The configuration of short keys."""
    return Configuration.of({_key(key): value for key, value in conf.items()}, origin="capacity-scheduler.xml")


def row(
    count: int,
    memory_mb: int = GB,
    vcores: int = 1,
    *,
    priority: int = 1,
    name: str = ANY,
    relax: bool = True,
    request_id: int = -1,
    label: str | None = None,
) -> ResourceRequest:
    """A row of an ask."""
    size = Resource(memory_mb, vcores)
    return ResourceRequest(priority, name, size, count, relax, label, allocation_request_id=request_id)


class Cluster:
    """A scheduler under test. `story`: what happened since it was last read, a line each."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        self.now_ms = SETTLED_MS
        self.story: list[str] = []
        self.scheduler = CapacityScheduler(
            configuration({**ROUNDS_BY_HAND, **conf}), cluster_timestamp=START_MS, notify=self._note
        )
        self.watch = CommitWatch(self.scheduler.context, self.scheduler.placement)
        self._apps: dict[str, ApplicationId] = {}
        self._temporaries: list[ContainerId] = []
        self._remapped: list[LabelChanges] = []
        self._masters: list[ApplicationAttemptId] = []
        self._ended: dict[NodeId, list[ContainerStatus]] = {}
        self._reservations: dict[NodeId, RMContainer] = {}

    # Nodes

    def node(self, name: str, memory_mb: int, vcores: int | None = None, rack: str = "/r1") -> None:
        """A node joins; as many vcores as GB unless told."""
        total = Resource(memory_mb, memory_mb // GB if vcores is None else vcores)
        self.scheduler.add_node(NodeId(name, 1), rack, total, self.now_ms)
        self._look_again()

    def beat(self, name: str, times: int = 1) -> list[str]:
        """Heartbeats of a node; returns the story of them."""
        for _ in range(times):
            node_id = NodeId(name, 1)
            launched = [container.id for container in self.node_of(name).containers.values() if self._starts(container)]
            completed = self._ended.pop(node_id, [])
            self.scheduler.node_update(node_id, launched, completed, self.now_ms)
            self._settle()
        return self.read_story()

    def label(self, name: str, label: str = "") -> None:
        """An administrator labels a host, whether it is there or not; a label that there is not is made, exclusive."""
        if not self.scheduler.labels.has(label):
            self.scheduler.labels.add([NodeLabel(label)])
        self.scheduler.replace_node_labels({NodeId(name, 0): (label,) if label else ()}, self.now_ms)
        self._look_again()

    def lose(self, name: str) -> list[str]:
        """The node is gone with all that was on it."""
        self._ended.pop(NodeId(name, 1), None)
        self.scheduler.remove_node(NodeId(name, 1), self.now_ms)
        self._look_again()
        return self.read_story()

    def resize(self, name: str, memory_mb: int, vcores: int | None = None) -> list[str]:
        """An administrator changes the node's total."""
        total = Resource(memory_mb, memory_mb // GB if vcores is None else vcores)
        self.scheduler.update_node_resource(NodeId(name, 1), total, self.now_ms)
        self._look_again()
        return self.read_story()

    # Applications

    def submit(
        self,
        app: str,
        user: str = "user",
        queue: str = "a",
        am_mb: int = GB,
        *,
        priority: int = 0,
        unmanaged: bool = False,
        placed: str | None = None,
        am_label: str | None = None,
        label: str | None = None,
    ) -> list[str]:
        """Submit; if a queue takes it, its first attempt asks for the master, unless that runs elsewhere.

        `placed`: by rules, where. `am_label` is that of the master's ask, `label` the application's, which its other
        asks do not get here.
        """
        application_id = self._apps.setdefault(app, ApplicationId(START_MS, len(self._apps) + 1))
        self.scheduler.add_application(application_id, queue, user, priority, self.now_ms, placed=placed)
        if application_id in self.scheduler.applications:
            asked = [] if unmanaged else [ResourceRequest(0, ANY, Resource(am_mb, 1), 1, label=am_label)]
            masters = self.scheduler.master_requests(queue, asked)
            self._add_attempt(ApplicationAttemptId(application_id, 1), masters, transfer=False, label=label)
        return self.read_story()

    def run(self, app: str, node: str, user: str = "user", queue: str = "a", am_mb: int = GB) -> None:
        """Submit it and let `node` beat, which must place its master."""
        self.submit(app, user, queue, am_mb)
        self.beat(node)
        assert self.attempt(app).has_master, f"{app} has no master after a beat of {node}"

    def ask(self, app: str, count: int, memory_mb: int = GB, *, priority: int = 1, name: str = ANY) -> list[str]:
        """One row."""
        return self.send(app, [row(count, memory_mb, priority=priority, name=name)])

    def send(self, app: str, rows: Iterable[ResourceRequest]) -> list[str]:
        """Rows in one call, checked as the ResourceManager does; what was placed stays where it is.

        Raises InvalidResourceRequestException, with nothing applied.
        """
        attempt = self.attempt(app)
        self._call(attempt.attempt_id, self.scheduler.check_asks(attempt.leaf.path, rows))
        return self.read_story()

    def poll(self, app: str, rows: Iterable[ResourceRequest] = ()) -> Allocation:
        """The AM's heartbeat: fetches what was placed."""
        return self._call(self.attempt(app).attempt_id, list(rows))

    def resize_container(self, app: str, number: int, memory_mb: int) -> Allocation:
        """The AM asks for another size of a container, larger or smaller; what it hears in the same call.

        The temporary containers of the changes are released after the call, as the ResourceManager does.
        """
        attempt = self.attempt(app)
        container = attempt.live_containers[ContainerId(attempt.attempt_id, number)]
        grows = memory_mb > container.resource.memory_mb
        kind = ContainerUpdateType.INCREASE_RESOURCE if grows else ContainerUpdateType.DECREASE_RESOURCE
        wanted = Resource(memory_mb, container.resource.vcores)
        request = UpdateContainerRequest(container.id, container.container.version, kind, wanted)
        accepted, errors = self.scheduler.check_updates(attempt.leaf.path, [request])
        assert errors == []
        allocation = self.scheduler.allocate(attempt.attempt_id, [], [], [], [], accepted, self.now_ms)
        self._release_temporaries()
        return allocation

    def avoid(self, app: str, *places: str) -> None:
        """Blacklist hosts or racks."""
        self.scheduler.allocate(self.attempt(app).attempt_id, [], [], places, [], [], self.now_ms)

    def readmit(self, app: str, *places: str) -> None:
        """Take hosts or racks off the blacklist."""
        self.scheduler.allocate(self.attempt(app).attempt_id, [], [], [], places, [], self.now_ms)

    def release(self, app: str, number: int) -> list[str]:
        """The AM gives a container back."""
        attempt = self.attempt(app)
        released = ContainerId(attempt.attempt_id, number)
        self.scheduler.allocate(attempt.attempt_id, [], [released], [], [], [], self.now_ms)
        return self.read_story()

    def expire(self, app: str, number: int) -> list[str]:
        """A container that was fetched and not started for too long."""
        self.scheduler.expire_container(ContainerId(self.attempt(app).attempt_id, number), self.now_ms)
        return self.read_story()

    def finish(self, app: str, *numbers: int, attempt: int | None = None, exit_status: int = 0) -> None:
        """Containers end on their nodes, which tell it at their next beat; of the present attempt unless told."""
        current = self.attempt(app)
        attempt_id = current.attempt_id
        if attempt is not None:
            attempt_id = ApplicationAttemptId(attempt_id.application_id, attempt)
        for number in numbers:
            container = current.live_containers[ContainerId(attempt_id, number)]
            self._end(container.node_id, container.id, exit_status)

    def end(self, app: str) -> list[str]:
        """The application is over: its attempt, then itself."""
        attempt_id = self.attempt(app).attempt_id
        self.scheduler.remove_attempt(
            attempt_id, keep_containers=False, final_state_name="FINISHED", now_ms=self.now_ms
        )
        self.scheduler.remove_application(attempt_id.application_id, "FINISHED")
        return self.read_story()

    def move(self, app: str, queue: str) -> None:
        """A client moves it. Raises YarnException."""
        self.scheduler.move_application(self._apps[app], queue, self.now_ms)

    def prioritize(self, app: str, priority: int) -> None:
        """A client gives it another priority."""
        self.scheduler.update_priority(self._apps[app], priority, self.now_ms)

    def retry(self, app: str, *, keep_containers: bool = False) -> list[str]:
        """The attempt fails and the next one asks for its master."""
        previous = self.attempt(app)
        self.scheduler.remove_attempt(
            previous.attempt_id, keep_containers=keep_containers, final_state_name="FAILED", now_ms=self.now_ms
        )
        following = ApplicationAttemptId(previous.attempt_id.application_id, previous.attempt_id.attempt + 1)
        asked = [] if previous.unmanaged else [ResourceRequest(0, ANY, previous.am_resource, 1)]
        masters = self.scheduler.master_requests(previous.leaf.path, asked)
        self._add_attempt(following, masters, transfer=keep_containers, label=previous.label)
        return self.read_story()

    def remove_idle_queues(self, after_ms: int = 0) -> None:
        """A round of the policy that removes them, so much later."""
        self.now_ms += after_ms
        self.scheduler.policies.remove_idle_queues(self.now_ms)

    def refresh(self, conf: Mapping[str, str]) -> None:
        """refreshQueues. Raises ConfigurationException."""
        self.scheduler.reinitialize(configuration({**ROUNDS_BY_HAND, **conf}), self.now_ms)

    def preempt(self, advance_ms: int = 3000) -> list[str]:
        """Time goes on, and a round of preemption runs, whenever the next one is due."""
        self.now_ms += advance_ms
        self.scheduler.context.now_ms = self.now_ms
        self.scheduler.monitor.run(self.now_ms)
        return self.read_story()

    # Looking

    def attempt(self, app: str) -> FiCaSchedulerApp:
        attempt = self.scheduler.applications[self._apps[app]].current_attempt
        assert attempt is not None
        return attempt

    def node_of(self, name: str) -> SchedulerNode:
        return self.scheduler.nodes[NodeId(name, 1)]

    def leaf(self, name: str = "a") -> LeafQueue:
        queue = self.scheduler.queue(name)
        assert isinstance(queue, LeafQueue)
        return queue

    def used(self, queue: str = "a") -> int:
        """MB in use in a queue, reservations counted."""
        found = self.scheduler.queue(queue)
        assert found is not None
        return found.usage.used("").memory_mb

    def held(self, app: str) -> int:
        """MB that the application's containers use, its master's too."""
        return self.attempt(app).usage.used("").memory_mb

    def name_of(self, container_id: ContainerId) -> str:
        """`app1/3`; `app1.2/3` for the third container of its second attempt."""
        app = next(name for name, known in self._apps.items() if known == container_id.application_id)
        attempt = container_id.attempt_id.attempt
        return f"{app}/{container_id.number}" if attempt == 1 else f"{app}.{attempt}/{container_id.number}"

    def read_story(self) -> list[str]:
        """What happened since the last reading."""
        self._note_reservations()
        story, self.story = self.story, []
        return story

    # Helpers

    def _add_attempt(
        self,
        attempt_id: ApplicationAttemptId,
        masters: tuple[ResourceRequest, ...],
        *,
        transfer: bool,
        label: str | None,
    ) -> None:
        self.scheduler.add_attempt(
            attempt_id,
            transfer=transfer,
            am_resource=masters[0].capability if masters else None,
            am_label=masters[0].label if masters else None,
            label=label,
            now_ms=self.now_ms,
        )
        if masters:
            self._call(attempt_id, masters)

    def _call(self, attempt_id: ApplicationAttemptId, rows: Sequence[ResourceRequest]) -> Allocation:
        allocation = self.scheduler.allocate(attempt_id, rows, [], [], [], [], self.now_ms)
        self._release_temporaries()
        return allocation

    def _look_again(self) -> None:
        while self._remapped:
            self.scheduler.nodes_remapped(self._remapped.pop(0), self.now_ms)

    def _release_temporaries(self) -> None:
        while self._temporaries:
            self.scheduler.release_temporary(self._temporaries.pop(0), self.now_ms)

    def _settle(self) -> None:
        """Fetch the masters that were placed."""
        for attempt_id in self._masters:
            placed = self._call(attempt_id, []).containers
            self.scheduler.mark_am_container(placed[0].id)
        self._masters = []

    def _starts(self, container: RMContainer) -> bool:
        return container.state is RMContainerState.ACQUIRED

    def _end(self, node_id: NodeId, container_id: ContainerId, exit_status: int) -> None:
        status = ContainerStatus(container_id, ContainerState.COMPLETE, exit_status)
        self._ended.setdefault(node_id, []).append(status)

    def violations(self, exempt: Collection[str] = ()) -> list[str]:
        """What is broken now, or was in a booking since the last call."""
        booked = [text for text in self.watch.take() if text.split(":")[0] not in exempt]
        return booked + violations(self.scheduler, exempt)

    def _note(self, notice: Notice) -> None:
        self.watch.look_at_notice(notice)
        match notice:
            case ContainerAllocated(attempt_id, container_id):
                self._note_placement(attempt_id, container_id)
            case ContainerFinished(_, _, status):
                text = f": {status.diagnostics}" if status.diagnostics else ""
                self.story.append(f"{self.name_of(status.container_id)} ended {int(status.exit_status)}{text}")
            case CleanUpContainer(node_id, container_id):
                node = self.scheduler.nodes.get(node_id)
                if node is not None and node.is_launched(container_id):
                    self._end(node_id, container_id, KILLED_BY_ORDER)
            case PreemptionDecided(container_id, _, step, reason, serves):
                self.story.append(f"{self.name_of(container_id)} {step} for {serves or 'nobody'} ({reason})")
            case NodesRemapped(changes):
                self._remapped.append(changes)
            case ReleaseTemporary(container_id):
                self._temporaries.append(container_id)
            case ApplicationRejected(_, diagnostics):
                self.story.append(f"refused: {diagnostics}")
            case _:
                pass

    def _note_placement(self, attempt_id: ApplicationAttemptId, container_id: ContainerId) -> None:
        attempt = self.scheduler.applications[attempt_id.application_id].current_attempt
        assert attempt is not None
        container = attempt.live_containers[container_id]
        self._note_reservations()
        master = ""
        if attempt.is_waiting_for_master:
            self._masters.append(attempt_id)
            master = " master"
        place = f"{container.node_id.host} {container.resource.memory_mb}"
        self.story.append(f"{self.name_of(container_id)} on {place}{master}")

    def _note_reservations(self) -> None:
        now = {
            node_id: node.reserved_container
            for node_id, node in self.scheduler.nodes.items()
            if node.reserved_container is not None
        }
        for node_id, container in self._reservations.items():
            if now.get(node_id) is not container:
                self.story.append(f"{self.name_of(container.id)} not reserved on {node_id.host} any more")
        for node_id, container in now.items():
            if self._reservations.get(node_id) is not container:
                size = container.resource.memory_mb
                self.story.append(f"{self.name_of(container.id)} reserved on {node_id.host} {size}")
        self._reservations = now


def _key(key: str) -> str:
    if key.startswith("preemption."):
        return f"yarn.resourcemanager.monitor.capacity.{key}"
    return key if key.startswith("yarn.") else f"yarn.scheduler.capacity.{key}"
