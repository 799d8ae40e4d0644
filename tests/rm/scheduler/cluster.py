"""A scheduler with nodes and ApplicationMasters around it, without the ResourceManager's core and without a clock.

    cluster = Cluster({"root.queues": "a", "root.a.capacity": "100"})
    cluster.node("n1", 8192)
    cluster.submit("app1", queue="a")           requests a container for the AM
    cluster.heartbeat("n1")                     and places it: app1/1
    cluster.request("app1", count=3)
    assert cluster.heartbeat("n1") == ["app1/2 on n1 1024"]

AM containers are fetched at once, as the ResourceManager does; other containers when their application polls. At
its next heartbeat a node reports fetched containers as running, and finished or killed containers as completed.
Configuration keys without `yarn.` in front belong to capacity-scheduler.xml; keys that start with `preemption.`
belong to the preemption monitor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from rm.scheduler.invariants.decisions import CommitWatch
from rm.scheduler.invariants.state import violations
from rm.scheduler.model.allocation import Allocation
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
from yarn.configuration import Configuration
from yarn.containers import ANY, ContainerStatus, ResourceRequest, UpdateContainerRequest
from yarn.faults import ConfigurationException, Fault
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeLabel
from yarn.resource import Resource
from yarn.states import ContainerState, ContainerUpdateType

START_MS = 1_700_000_000_000
SETTLED_MS = START_MS + 86_400_000
"""A time when all waits at the ResourceManager's start are over."""

KILLED_BY_APPMASTER = -105

GB = 1024

ONE_QUEUE = {"root.queues": "a", "root.a.capacity": "100", "maximum-am-resource-percent": "1"}
"""A leaf that may use the whole cluster, for tests that are not about sharing between queues."""


NO_SCHEDULED_ROUNDS = {"yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval": str(10**12)}
"""Keeps heartbeats from running rounds of preemption: only `Cluster.preempt` runs them."""


def configuration(conf: Mapping[str, str]) -> Configuration:
    """The configuration with its short keys expanded to Hadoop's full names."""
    return Configuration.of({_key(key): value for key, value in conf.items()}, origin="capacity-scheduler.xml")


def check_scheduler(configuration: Configuration) -> list[Fault]:
    """Every fault for which the scheduler refuses the configuration, or else its warnings."""
    try:
        return list(CapacitySchedulerConfiguration.read(configuration).warnings)
    except ConfigurationException as refusal:
        return list(refusal.faults)


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
    """A row of a resource request."""
    size = Resource(memory_mb, vcores)
    return ResourceRequest(priority, name, size, count, relax, label, allocation_request_id=request_id)


class Cluster:
    """A scheduler under test. `story`: what happened since it was last read, one line per event."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        self.now_ms = SETTLED_MS
        self.story: list[str] = []
        self.scheduler = CapacityScheduler(
            configuration({**NO_SCHEDULED_ROUNDS, **conf}), cluster_timestamp=START_MS, notify=self._note
        )
        self.watch = CommitWatch(self.scheduler.context, self.scheduler.placement)
        self._apps: dict[str, ApplicationId] = {}
        self._temporaries: list[ContainerId] = []
        self._remapped: list[LabelChanges] = []
        self._placed_ams: list[ApplicationAttemptId] = []
        self._ended: dict[NodeId, list[ContainerStatus]] = {}
        self._reservations: dict[NodeId, RMContainer] = {}

    # Nodes

    def node(self, name: str, memory_mb: int, vcores: int | None = None, rack: str = "/r1") -> None:
        """Add a node, by default with one vcore per GB."""
        total = Resource(memory_mb, memory_mb // GB if vcores is None else vcores)
        self.scheduler.add_node(NodeId(name, 1), rack, total, self.now_ms)
        self._process_remapped_nodes()

    def heartbeat(self, name: str, times: int = 1) -> list[str]:
        """Send heartbeats of a node and return the story of them."""
        for _ in range(times):
            node_id = NodeId(name, 1)
            launched = [
                container.id for container in self.node_of(name).containers.values() if self._will_start(container)
            ]
            completed = self._ended.pop(node_id, [])
            self.scheduler.node_update(node_id, launched, completed, self.now_ms)
            self._fetch_am_containers()
        return self.read_story()

    def label(self, name: str, label: str = "") -> None:
        """Label a host, registered or not, as an administrator does. An unknown label is created, exclusive."""
        if not self.scheduler.labels.has(label):
            self.scheduler.labels.add([NodeLabel(label)])
        self.scheduler.replace_node_labels({NodeId(name, 0): (label,) if label else ()}, self.now_ms)
        self._process_remapped_nodes()

    def lose(self, name: str) -> list[str]:
        """Remove the node with all its containers."""
        self._ended.pop(NodeId(name, 1), None)
        self.scheduler.remove_node(NodeId(name, 1), self.now_ms)
        self._process_remapped_nodes()
        return self.read_story()

    def resize(self, name: str, memory_mb: int, vcores: int | None = None) -> list[str]:
        """Change the node's total, as an administrator does."""
        total = Resource(memory_mb, memory_mb // GB if vcores is None else vcores)
        self.scheduler.update_node_resource(NodeId(name, 1), total, self.now_ms)
        self._process_remapped_nodes()
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
        """Submit an application. Once accepted, its first attempt requests an AM container unless it is unmanaged.

        `placed`: the queue that the placement rules chose. `am_label` is the label of the AM's request, `label` that of
        the application; `send` and `request` do not apply it to the application's other requests.
        """
        application_id = self._apps.setdefault(app, ApplicationId(START_MS, len(self._apps) + 1))
        self.scheduler.add_application(application_id, queue, user, priority, self.now_ms, placed=placed)
        if application_id in self.scheduler.applications:
            am_rows = [] if unmanaged else [ResourceRequest(0, ANY, Resource(am_mb, 1), 1, label=am_label)]
            am_requests = self.scheduler.master_requests(queue, am_rows)
            self._add_attempt(ApplicationAttemptId(application_id, 1), am_requests, transfer=False, label=label)
        return self.read_story()

    def run(self, app: str, node: str, user: str = "user", queue: str = "a", am_mb: int = GB) -> None:
        """Submit an application and send a heartbeat of `node`, which must place its AM."""
        self.submit(app, user, queue, am_mb)
        self.heartbeat(node)
        assert self.attempt(app).has_master, f"{app} has no AM container after a heartbeat of {node}"

    def request(self, app: str, count: int, memory_mb: int = GB, *, priority: int = 1, name: str = ANY) -> list[str]:
        """Send a request with one row."""
        return self.send(app, [row(count, memory_mb, priority=priority, name=name)])

    def send(self, app: str, rows: Iterable[ResourceRequest]) -> list[str]:
        """Send rows in one call, checked as the ResourceManager does, without fetching what was placed.

        Raises InvalidResourceRequestException, with nothing applied.
        """
        attempt = self.attempt(app)
        self._call(attempt.attempt_id, self.scheduler.check_asks(attempt.leaf.path, rows))
        return self.read_story()

    def poll(self, app: str, rows: Iterable[ResourceRequest] = ()) -> Allocation:
        """Send the AM's heartbeat, which fetches what was placed."""
        return self._call(self.attempt(app).attempt_id, list(rows))

    def resize_container(self, app: str, number: int, memory_mb: int) -> Allocation:
        """Request another size of a container, larger or smaller; returns the response to the same call.

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

    def blacklist(self, app: str, *places: str) -> None:
        """Blacklist hosts or racks."""
        self.scheduler.allocate(self.attempt(app).attempt_id, [], [], places, [], [], self.now_ms)

    def remove_from_blacklist(self, app: str, *places: str) -> None:
        """Remove hosts or racks from the blacklist."""
        self.scheduler.allocate(self.attempt(app).attempt_id, [], [], [], places, [], self.now_ms)

    def release(self, app: str, number: int) -> list[str]:
        """Release a container, as its AM does."""
        attempt = self.attempt(app)
        released = ContainerId(attempt.attempt_id, number)
        self.scheduler.allocate(attempt.attempt_id, [], [released], [], [], [], self.now_ms)
        return self.read_story()

    def expire(self, app: str, number: int) -> list[str]:
        """Expire a container that was fetched and not started in time."""
        self.scheduler.expire_container(ContainerId(self.attempt(app).attempt_id, number), self.now_ms)
        return self.read_story()

    def finish(self, app: str, *numbers: int, attempt: int | None = None, exit_status: int = 0) -> None:
        """Complete containers on their nodes, which report it at their next heartbeat.

        `attempt`: the number of the attempt that owns the containers, the current one by default.
        """
        current = self.attempt(app)
        attempt_id = current.attempt_id
        if attempt is not None:
            attempt_id = ApplicationAttemptId(attempt_id.application_id, attempt)
        for number in numbers:
            container = current.live_containers[ContainerId(attempt_id, number)]
            self._end(container.node_id, container.id, exit_status)

    def end(self, app: str) -> list[str]:
        """Remove the attempt, then the application."""
        attempt_id = self.attempt(app).attempt_id
        self.scheduler.remove_attempt(
            attempt_id, keep_containers=False, final_state_name="FINISHED", now_ms=self.now_ms
        )
        self.scheduler.remove_application(attempt_id.application_id, "FINISHED")
        return self.read_story()

    def move(self, app: str, queue: str) -> None:
        """Move the application, as a client does. Raises YarnException."""
        self.scheduler.move_application(self._apps[app], queue, self.now_ms)

    def prioritize(self, app: str, priority: int) -> None:
        """Change the application's priority, as a client does."""
        self.scheduler.update_priority(self._apps[app], priority, self.now_ms)

    def retry(self, app: str, *, keep_containers: bool = False) -> list[str]:
        """Fail the attempt; the next one requests its AM container."""
        previous = self.attempt(app)
        self.scheduler.remove_attempt(
            previous.attempt_id, keep_containers=keep_containers, final_state_name="FAILED", now_ms=self.now_ms
        )
        following = ApplicationAttemptId(previous.attempt_id.application_id, previous.attempt_id.attempt + 1)
        am_rows = [] if previous.unmanaged else [ResourceRequest(0, ANY, previous.am_resource, 1)]
        am_requests = self.scheduler.master_requests(previous.leaf.path, am_rows)
        self._add_attempt(following, am_requests, transfer=keep_containers, label=previous.label)
        return self.read_story()

    def remove_idle_queues(self, after_ms: int = 0) -> None:
        """Advance the clock and run a round of the policy that removes idle dynamic queues."""
        self.now_ms += after_ms
        self.scheduler.policies.remove_idle_queues(self.now_ms)

    def refresh(self, conf: Mapping[str, str]) -> None:
        """Refresh the queues. Raises ConfigurationException."""
        self.scheduler.reinitialize(configuration({**NO_SCHEDULED_ROUNDS, **conf}), self.now_ms)

    def preempt(self, advance_ms: int = 3000) -> list[str]:
        """Advance the clock and run a round of preemption, whether it is due or not."""
        self.now_ms += advance_ms
        self.scheduler.context.now_ms = self.now_ms
        self.scheduler.monitor.run(self.now_ms)
        return self.read_story()

    # Queries

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
        """MB in use in a queue, including reservations."""
        found = self.scheduler.queue(queue)
        assert found is not None
        return found.usage.used("").memory_mb

    def held(self, app: str) -> int:
        """MB that the application's containers use, including its AM."""
        return self.attempt(app).usage.used("").memory_mb

    def name_of(self, container_id: ContainerId) -> str:
        """`app1/3`; `app1.2/3` for the third container of its second attempt."""
        app = next(name for name, known in self._apps.items() if known == container_id.application_id)
        attempt = container_id.attempt_id.attempt
        return f"{app}/{container_id.number}" if attempt == 1 else f"{app}.{attempt}/{container_id.number}"

    def read_story(self) -> list[str]:
        """The events since the last call."""
        self._note_reservations()
        story, self.story = self.story, []
        return story

    # Helpers

    def _add_attempt(
        self,
        attempt_id: ApplicationAttemptId,
        am_requests: tuple[ResourceRequest, ...],
        *,
        transfer: bool,
        label: str | None,
    ) -> None:
        self.scheduler.add_attempt(
            attempt_id,
            transfer=transfer,
            am_resource=am_requests[0].capability if am_requests else None,
            am_label=am_requests[0].label if am_requests else None,
            label=label,
            now_ms=self.now_ms,
        )
        if am_requests:
            self._call(attempt_id, am_requests)

    def _call(self, attempt_id: ApplicationAttemptId, rows: Sequence[ResourceRequest]) -> Allocation:
        allocation = self.scheduler.allocate(attempt_id, rows, [], [], [], [], self.now_ms)
        self._release_temporaries()
        return allocation

    def _process_remapped_nodes(self) -> None:
        while self._remapped:
            self.scheduler.nodes_remapped(self._remapped.pop(0), self.now_ms)

    def _release_temporaries(self) -> None:
        while self._temporaries:
            self.scheduler.release_temporary(self._temporaries.pop(0), self.now_ms)

    def _fetch_am_containers(self) -> None:
        """Fetch the AM containers that were placed."""
        for attempt_id in self._placed_ams:
            placed = self._call(attempt_id, []).containers
            self.scheduler.mark_am_container(placed[0].id)
        self._placed_ams = []

    def _will_start(self, container: RMContainer) -> bool:
        return container.state is RMContainerState.ACQUIRED

    def _end(self, node_id: NodeId, container_id: ContainerId, exit_status: int) -> None:
        status = ContainerStatus(container_id, ContainerState.COMPLETE, exit_status)
        self._ended.setdefault(node_id, []).append(status)

    def violations(self, exempt: Collection[str] = ()) -> list[str]:
        """Invariants violated now, or by a booking since the last call."""
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
                if node is not None and container_id in node._launched:
                    self._end(node_id, container_id, KILLED_BY_APPMASTER)
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
        am_suffix = ""
        if attempt.is_waiting_for_master:
            self._placed_ams.append(attempt_id)
            am_suffix = " master"
        place = f"{container.node_id.host} {container.resource.memory_mb}"
        self.story.append(f"{self.name_of(container_id)} on {place}{am_suffix}")

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
