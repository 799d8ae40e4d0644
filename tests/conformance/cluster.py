"""Steps of a recording as the events that the ResourceManager's services would send.

There is no scheduling here: a step becomes one event or a few, the core's effects become the reply. The core is driven
through `handle` alone; its state is read where the recordings' driver reads Hadoop's (which containers run on a node,
the picks).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rm.core.events import (
    AddClusterNodeLabels,
    Allocate,
    AMLaunched,
    FinishApplicationMaster,
    GetNewApplication,
    KillApplication,
    MoveApplication,
    NodeHeartbeat,
    RefreshQueues,
    RegisterApplicationMaster,
    RegisterNode,
    RemoveClusterNodeLabels,
    ReplaceLabelsOnNodes,
    SubmitApplication,
    UnregisterNode,
    UpdateApplicationPriority,
    UpdateNodeResource,
)
from rm.core.lifecycle_events import (
    ContainerExpired,
    RMAppAttemptExpire,
    RMNodeDecommission,
    RMNodeGracefulDecommission,
    RMNodeRecommission,
)
from rm.core.resource_manager import ResourceManagerCore
from rm.core.states import RMAppAttemptState, RMAppState
from rm.scheduler.model.rm_container import RMContainer, RMContainerState
from rm.scheduler.placement.walk import Draw, first_of
from tests.conformance.nodes import RecordedNode
from tests.conformance.recorded_rm import ADMINISTRATOR, EPOCH_MS, RecordedRM, Refused, error_class
from tests.conformance.recording import Json
from tests.conformance.replies import container_name, show, show_allocate
from yarn.applications import DEFAULT_QUEUE, ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.containers import ANY, ResourceRequest, UpdateContainerRequest
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.machine import Tick
from yarn.nodes import NodeLabel
from yarn.protocols.admin import ResourceOption
from yarn.protocols.client import GetNewApplicationResponse
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterRequest,
    FinishApplicationMasterResponse,
    RegisterApplicationMasterRequest,
    RegisterApplicationMasterResponse,
)
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerResponse
from yarn.resource import MEMORY_MB, Resource
from yarn.states import ContainerUpdateType, ExecutionType, FinalApplicationStatus, NodeAction, NodeState

DECOMMISSIONING_TIMEOUT_S = 100_000
"""The time a node that is decommissioned gracefully may stay, if the step does not say: longer than any recording."""

CALLS_OF_UNREGISTER = 3
"""An AM repeats its call until it is unregistered; the driver's AM stops after this many calls."""

_COMPLETED = frozenset(
    {
        RMAppState.FINAL_SAVING,
        RMAppState.FINISHING,
        RMAppState.FINISHED,
        RMAppState.FAILED,
        RMAppState.KILLING,
        RMAppState.KILLED,
    }
)
"""States in which RMAppImpl.isAppInCompletedStates returns true."""

_LAUNCHED = frozenset({RMAppAttemptState.LAUNCHED, RMAppAttemptState.RUNNING})
"""States of attempts whose AM runs on its node."""

_REGISTERING = frozenset({RMAppAttemptState.ALLOCATED, RMAppAttemptState.LAUNCHED})
"""States of attempts whose AM registers next. A recovered attempt is LAUNCHED, and may have registered before."""

_OF_AN_ADMINISTRATOR = UpdateNodeResource(0, ())
"""A call of an administrator that changes nothing itself: what was sent before is handled in its step."""


class Unsupported(Exception):
    """The core has no event for this step yet."""


@dataclass(slots=True)
class RecordedApp:
    """An application with its AM. `attempt_id`: the last attempt that registered, or was about to."""

    application_id: ApplicationId
    attempt_id: ApplicationAttemptId | None = None
    response_id: int = 0
    registered: bool = False


class RecordedCluster:
    """The core with the NodeManagers and AMs of one recording."""

    def __init__(self, configuration: dict[str, str], *, draw: Draw = first_of) -> None:
        """Raises ConfigurationException if the core refuses the configuration. `draw`: for asynchronous scheduling."""
        self.rm = RecordedRM(configuration, draw=draw)
        self.nodes: dict[str, RecordedNode] = {}
        self.apps: dict[str, RecordedApp] = {}
        self.names: dict[ApplicationId, str] = {}
        self._racks: dict[str, str] = {}
        self._preemption_clock_ms = EPOCH_MS

    @property
    def core(self) -> ResourceManagerCore:
        """The running core, which a restart replaces."""
        return self.rm.core

    def step(self, action: Json) -> Json:
        """Execute one step and return its reply. Raises Unsupported if the core has no event for it."""
        self.rm.now_ms += 1
        operation: Callable[[Json, Json], None] | None = getattr(self, f"_{action['op']}", None)
        if operation is None:
            raise Unsupported(f"unsupported op {action['op']}")
        reply: Json = {}
        try:
            operation(action, reply)
        except Refused as refused:
            reply["error"] = {"class": error_class(refused.error), "message": str(refused)}
        return reply

    # Nodes

    def _register_node(self, action: Json, reply: Json) -> None:
        host = action["node"]
        if "rack" in action:
            self._racks[host] = action["rack"]
        node = RecordedNode(host, self._racks.get(host, "/default-rack"), _resource(action["resource"]))
        response = self.rm.call(RegisterNode(0, node.registration(healthy=action.get("healthy", True)), node.rack))
        assert isinstance(response, RegisterNodeManagerResponse)
        reply["action"] = response.action.name
        self.nodes[host] = node

    def _heartbeat(self, action: Json, reply: Json) -> None:
        node = self.nodes[action["node"]]
        if node.lost:
            reply["skipped"] = "node is lost"
            return
        self._start(node, _LAUNCHED)
        response = self.rm.call(NodeHeartbeat(0, node.heartbeat(healthy=action.get("healthy", True))))
        assert isinstance(response, NodeHeartbeatResponse)
        node.obey(response)
        if response.action is not NodeAction.NORMAL:
            reply["action"] = response.action.name

    def _resync(self, action: Json, reply: Json) -> None:
        """Let a node register again with what it has; without work-preserving recovery it ends that before."""
        node = self.nodes[action["node"]]
        if node.lost:
            reply["skipped"] = "node is lost"
            return
        self._start(node, _LAUNCHED)
        if not self.core.context.settings.work_preserving:
            node.end_all()
        response = self.rm.call(RegisterNode(0, node.registration_again(), node.rack))
        assert isinstance(response, RegisterNodeManagerResponse)
        reply["action"] = response.action.name

    def _start(self, node: RecordedNode, launched: frozenset[RMAppAttemptState]) -> None:
        """Start what applications acquired on the node, and the masters of attempts in these states."""
        known = self.core.scheduler.nodes.get(node.node_id)
        on_node = () if known is None else tuple(known.containers.values())
        node.know(on_node)
        node.start(container.id for container in on_node if self._started(container, launched))

    def _started(self, container: RMContainer, launched: frozenset[RMAppAttemptState]) -> bool:
        if not container.is_am:
            return container.state is RMContainerState.ACQUIRED
        attempt = self.core.context.attempt(container.id.attempt_id)
        return attempt is not None and attempt.state in launched

    def _lose_node(self, action: Json, _: Json) -> None:
        """In Hadoop the node expires. Here the clock stands still, so it unregisters, with the same effect."""
        node = self.nodes[action["node"]]
        if not node.lost:
            self.rm.call(UnregisterNode(0, node.node_id))
        node.lose()

    def _resize_node(self, action: Json, _: Json) -> None:
        node_id = self.nodes[action["node"]].node_id
        if node_id in self.core.context.nodes:
            self.rm.call(UpdateNodeResource(0, ((node_id, ResourceOption(_resource(action["resource"]))),)))

    def _decommission(self, action: Json, _: Json) -> None:
        """Send what NodesListManager sends when a host is excluded; a node that is out of use gets nothing."""
        node_id = self.nodes[action["node"]].node_id
        graceful = RMNodeGracefulDecommission(node_id, action.get("timeout", DECOMMISSIONING_TIMEOUT_S))
        self.core.context.send(graceful if action.get("graceful", True) else RMNodeDecommission(node_id))
        self.rm.call(_OF_AN_ADMINISTRATOR)

    def _recommission(self, action: Json, _: Json) -> None:
        """Send what NodesListManager sends for a decommissioning node when its host is included again."""
        node_id = self.nodes[action["node"]].node_id
        known = self.core.context.nodes.get(node_id)
        if known is not None and known.state is NodeState.DECOMMISSIONING:
            self.core.context.send(RMNodeRecommission(node_id))
            self.rm.call(_OF_AN_ADMINISTRATOR)

    def _add_labels(self, action: Json, _: Json) -> None:
        labels = tuple(NodeLabel(label["name"], label.get("exclusive", True)) for label in action["labels"])
        self.rm.call(AddClusterNodeLabels(0, labels))

    def _label_nodes(self, action: Json, _: Json) -> None:
        """The node of a host, also if it is not registered."""
        labels = tuple((NodeId(host, 0), (label,) if label else ()) for host, label in action["nodes"].items())
        self.rm.call(ReplaceLabelsOnNodes(0, labels))

    def _remove_labels(self, action: Json, _: Json) -> None:
        self.rm.call(RemoveClusterNodeLabels(0, tuple(action["labels"])))

    # The ResourceManager

    def _restart_rm(self, action: Json, _: Json) -> None:
        """Kill the core and start another one. The last that it does is to launch its masters."""
        changed = self.rm.changed(action["properties"]) if "properties" in action else self.rm.configuration
        for node in self.nodes.values():
            if not node.lost:
                self._start(node, _LAUNCHED | {RMAppAttemptState.ALLOCATED})
        self.rm.restart({**changed, **action.get("conf", {})})

    def _end_wait(self, _: Json, __: Json) -> None:
        self.rm.end_wait()

    # Calls of clients

    def _submit(self, action: Json, reply: Json) -> None:
        fresh = self.rm.call(GetNewApplication(0))
        assert isinstance(fresh, GetNewApplicationResponse)
        app = RecordedApp(fresh.application_id)
        self.names[app.application_id] = action["app"]
        self.apps[action["app"]] = app
        groups = tuple(action["groups"].split(",")) if "groups" in action else ()
        self.rm.call(SubmitApplication(0, action["user"], _submission(app.application_id, action), groups))
        known = self.core.context.apps.get(app.application_id)
        reply["state"] = "null" if known is None else known.state.name
        if known is not None and known.state is RMAppState.FAILED:
            reply["diagnostics"] = known.diagnostics.strip()
        if known is not None and known.lifetime_s:
            reply["lifetime"] = known.lifetime_s

    def _kill_app(self, action: Json, _: Json) -> None:
        app = self.apps[action["app"]]
        app.registered = False
        diagnostics = f"Application {app.application_id} was killed by user"
        self.rm.call(KillApplication(0, app.application_id, diagnostics, ADMINISTRATOR))

    def _move(self, action: Json, _: Json) -> None:
        self.rm.call(MoveApplication(0, ADMINISTRATOR, self.apps[action["app"]].application_id, action["queue"]))

    def _set_priority(self, action: Json, _: Json) -> None:
        application_id = self.apps[action["app"]].application_id
        self.rm.call(UpdateApplicationPriority(0, application_id, action["priority"], ADMINISTRATOR))

    def _expire_lifetime(self, action: Json, reply: Json) -> None:
        """Let the lifetime expire: the next check of the monitor kills the application."""
        app = self.apps[action["app"]]
        known = self.core.context.apps.get(app.application_id)
        if known is None or not known.lifetime_s or known.state in _COMPLETED:
            reply["skipped"] = "no application" if known is None else "no lifetime runs"
            return
        app.registered = False
        self.core.context.lifetimes.register(app.application_id, EPOCH_MS)
        self.rm.send(Tick())

    def _refresh_queues(self, action: Json, _: Json) -> None:
        changed = self.rm.changed(action["properties"])
        self.rm.call(RefreshQueues(0, Configuration.of(changed)))
        self.rm.configuration = changed

    def _remove_idle_queues(self, _: Json, __: Json) -> None:
        """A round of the policy, after the wait that follows a queue's last submission."""
        scheduler, now_ms = self.core.scheduler, self.rm.now_ms
        for queue in scheduler.queues.values():
            if queue.is_dynamic:
                queue.last_submitted_ms = EPOCH_MS
        scheduler.policies.remove_idle_queues(now_ms)

    def _manage_queues(self, _: Json, __: Json) -> None:
        self.core.scheduler.policies.entitle_leaves(self.rm.now_ms)

    def _preempt(self, action: Json, reply: Json) -> None:
        """Advance the policy's clock only; rounds that heartbeats would run are not due."""
        self._preemption_clock_ms += action.get("advance", 0)
        monitor = self.core.scheduler.monitor
        monitor.run(self._preemption_clock_ms)
        failure = monitor.policy.last_failure
        if failure is not None:
            reply["error"] = {"class": failure.java_class.rpartition(".")[2], "message": str(failure)}
        self.rm.send(Tick())

    # Calls of ApplicationMasters

    def _register(self, action: Json, reply: Json) -> None:
        app = self.apps[action["app"]]
        known = self.core.context.apps.get(app.application_id)
        attempt = None if known is None else known.current_attempt
        if attempt is None or attempt.state not in _REGISTERING:
            reply["skipped"] = "no attempt" if attempt is None else f"attempt is {attempt.state.name}"
            return
        app.attempt_id = attempt.attempt_id
        if attempt.state is RMAppAttemptState.ALLOCATED:
            self.rm.send(AMLaunched(app.attempt_id))
        app.response_id = 0
        request = RegisterApplicationMasterRequest(rpc_port=1)
        response = self.rm.call(RegisterApplicationMaster(0, app.attempt_id, request))
        assert isinstance(response, RegisterApplicationMasterResponse)
        app.registered = True
        reply["maximum"] = show(response.maximum_capability)
        reply["queue"] = response.queue
        if response.containers_from_previous_attempts:
            previous = sorted(container.id for container in response.containers_from_previous_attempts)
            reply["previous"] = [container_name(self.names, container_id) for container_id in previous]

    def _allocate(self, action: Json, reply: Json) -> None:
        app = self.apps[action["app"]]
        if not app.registered:
            reply["skipped"] = "not registered"
            return
        picked = [self._pick(app, number, master=False) for number in action.get("release", [])]
        releases = tuple(dict.fromkeys(container.id for container in picked if container is not None))
        blacklist = action.get("blacklist", {})
        request = AllocateRequest(
            app.response_id,
            asks=tuple(_ask(ask) for ask in action.get("asks", [])),
            releases=releases,
            blacklist_additions=tuple(blacklist.get("add", [])),
            blacklist_removals=tuple(blacklist.get("remove", [])),
            updates=tuple(self._updates(app, action)),
        )
        if releases:
            reply["released"] = [container_name(self.names, container_id) for container_id in releases]
        answers = [self._heartbeat_of(app, request)]
        for _ in range(action.get("again", 1 if releases else 0)):
            answers.append(self._heartbeat_of(app, AllocateRequest(app.response_id)))
        reply.update(show_allocate(self.names, answers))

    def _heartbeat_of(self, app: RecordedApp, request: AllocateRequest) -> AllocateResponse:
        assert app.attempt_id is not None
        response = self.rm.call(Allocate(0, app.attempt_id, request))
        assert isinstance(response, AllocateResponse)
        app.response_id = response.response_id
        return response

    def _updates(self, app: RecordedApp, action: Json) -> list[UpdateContainerRequest]:
        updates = []
        for update in action.get("updates", []):
            container = self._pick(app, update["pick"], master=False)
            if container is not None:
                kind = ContainerUpdateType[update["type"]]
                version = container.container.version
                size = _resource(update["resource"]) if "resource" in update else None
                execution = ExecutionType[update["execution"]] if "execution" in update else None
                updates.append(UpdateContainerRequest(container.id, version, kind, size, execution))
        return updates

    def _unregister(self, action: Json, reply: Json) -> None:
        app = self.apps[action["app"]]
        if not app.registered:
            reply["skipped"] = "not registered"
            return
        assert app.attempt_id is not None
        master = self._pick(app, 0, master=True)
        request = FinishApplicationMasterRequest(FinalApplicationStatus.SUCCEEDED)
        for _ in range(CALLS_OF_UNREGISTER):
            response = self.rm.call(FinishApplicationMaster(0, app.attempt_id, request))
            assert isinstance(response, FinishApplicationMasterResponse)
            if response.is_unregistered:
                break
        app.registered = False
        if master is not None:
            self._complete(master, 0)

    # Events on nodes

    def _finish(self, action: Json, reply: Json) -> None:
        container = self._pick(self.apps[action["app"]], action["pick"], master=False)
        if container is None or container.state is RMContainerState.ALLOCATED:
            reply["skipped"] = "none live" if container is None else "not acquired"
            return
        self._complete(container, action.get("exit", 0))
        reply["container"] = container_name(self.names, container.id)

    def _fail_am(self, action: Json, reply: Json) -> None:
        app = self.apps[action["app"]]
        master = self._pick(app, 0, master=True)
        if not app.registered or master is None:
            reply["skipped"] = "no master"
            return
        self._complete(master, 1)
        app.registered = False
        reply["container"] = container_name(self.names, master.id)

    # Events of the monitors, which are sent for them because the clock stands still

    def _expire_container(self, action: Json, reply: Json) -> None:
        """The container was acquired, and no node has reported it."""
        container = self._pick(self.apps[action["app"]], action["pick"], master=False)
        if container is None or container.state is not RMContainerState.ACQUIRED:
            reply["skipped"] = "none live" if container is None else f"container is {container.state.name}"
            return
        self.core.context.send(ContainerExpired(container.id))
        self.rm.send(Tick())
        reply["container"] = container_name(self.names, container.id)

    def _expire_master(self, action: Json, reply: Json) -> None:
        """The AM stops calling; the ResourceManager does not know whether its process ended."""
        app = self.apps[action["app"]]
        known = self.core.context.apps.get(app.application_id)
        attempt = None if known is None else known.current_attempt
        if not app.registered:
            if attempt is None or attempt.state is not RMAppAttemptState.LAUNCHED:
                reply["skipped"] = "not registered"
                return
            app.attempt_id = attempt.attempt_id
        assert app.attempt_id is not None
        app.registered = False
        self.core.context.send(RMAppAttemptExpire(app.attempt_id))
        self.rm.send(Tick())

    def _complete(self, container: RMContainer, exit_status: int) -> None:
        for node in self.nodes.values():
            if not node.lost and node.node_id == container.node_id:
                node.complete(container.id, exit_status)
                return

    def _pick(self, app: RecordedApp, number: int, *, master: bool) -> RMContainer | None:
        """The application's live container with index `number`, modulo their count, in the order of ids."""
        if app.attempt_id is None:
            return None
        containers = self.core.scheduler.containers_of(app.application_id).values()
        live = sorted((c for c in containers if c.is_am == master), key=lambda container: container.id)
        return live[number % len(live)] if live else None


def _resource(amounts: dict[str, int]) -> Resource:
    return Resource.of({MEMORY_MB if name == "memory" else name: amount for name, amount in amounts.items()})


def _submission(application_id: ApplicationId, action: Json) -> ApplicationSubmissionContext:
    capability = _resource(action["am"])
    ask = ResourceRequest(0, ANY, capability, 1, label=action.get("am_label"))
    return ApplicationSubmissionContext(
        application_id,
        name=action["app"],
        queue=DEFAULT_QUEUE if action.get("queue") is None else action["queue"],
        priority=action.get("priority"),
        resource=capability,
        am_requests=(ask,),
        tags=frozenset(action["tags"].lower().split(",") if "tags" in action else ()),
        max_app_attempts=action.get("max_attempts", 2),
        keep_containers_across_attempts=action.get("keep_containers", False),
        node_label_expression=action.get("label"),
        lifetime_s=action.get("lifetime"),
    )


def _ask(ask: Json) -> ResourceRequest:
    return ResourceRequest(
        ask.get("priority", 1),
        ask.get("name", ANY),
        _resource(ask["resource"]),
        ask["count"],
        relax_locality=ask.get("relax", True),
        label=ask.get("label"),
        allocation_request_id=ask.get("request_id", -1),
        enforce_execution_type=True,
    )
