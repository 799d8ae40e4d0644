"""The parts that the state machines of a ResourceManager share: dispatcher, scheduler, store and liveness monitors.

A state machine knows other state machines only by their ids, and sends them events. RMContext adds the applications and
nodes themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rm.core.effects import Effect
from rm.core.liveness import DeadlineMonitor, LivenessMonitor
from rm.core.settings import RMSettings
from rm.core.state_store import PersistentStateStore, StateStore
from rm.scheduler.capacity_scheduler import CapacityScheduler
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import Dispatcher, Warn
from yarn.protocols.master import AllocateResponse

RESPONSE_ID_MAX = 0x7FFFFFFF
NOT_REGISTERED = -1
"""The response id before the AM registered."""


def next_response_id(response_id: int) -> int:
    """The id that follows `response_id`; after the largest 32-bit integer comes 0
    (AMRMClientUtils.getNextResponseId).
    """
    return (response_id + 1) & RESPONSE_ID_MAX


@dataclass(slots=True)
class AMSession:
    """The state of the calls of one attempt's AM.

    `token_nodes`: nodes for which the AM has received an NM token, in that order.
    """

    response_id: int = NOT_REGISTERED
    response: AllocateResponse | None = None
    token_nodes: dict[NodeId, None] = field(default_factory=dict[NodeId, None])


class RMServiceContext:
    """The parts of one ResourceManager that its state machines use.

    `sessions` {attempt whose AM may call: the state of its calls}.
    """

    scheduler: CapacityScheduler

    def __init__(self, settings: RMSettings, *, cluster_timestamp: int, strict: bool) -> None:
        self.settings = settings
        self.cluster_timestamp = cluster_timestamp
        self.dispatcher: Dispatcher[Effect] = Dispatcher(cluster_timestamp, strict=strict)
        store = PersistentStateStore if settings.recovery_enabled else StateStore
        self.store: StateStore = store(self.dispatcher)
        self.sessions: dict[ApplicationAttemptId, AMSession] = {}
        start = cluster_timestamp
        self.node_liveness: LivenessMonitor[NodeId] = LivenessMonitor(settings.node_expiry_ms, start)
        self.am_liveness: LivenessMonitor[ApplicationAttemptId] = LivenessMonitor(settings.am_expiry_ms, start)
        self.am_finishing: LivenessMonitor[ApplicationAttemptId] = LivenessMonitor(settings.am_expiry_ms, start)
        self.allocation_expiry: LivenessMonitor[ContainerId] = LivenessMonitor(settings.allocation_expiry_ms, start)
        self.increase_expiry: LivenessMonitor[ContainerId] = LivenessMonitor(settings.allocation_expiry_ms, start)
        self.lifetimes: DeadlineMonitor[ApplicationId] = DeadlineMonitor(settings.lifetime_check_interval_ms, start)

    @property
    def now_ms(self) -> int:
        """The time of the step under way, wall-clock ms."""
        return self.dispatcher.now_ms

    def send(self, event: object) -> None:
        """Deliver `event` in this step, after everything that was sent before."""
        self.dispatcher.send(event)

    def emit(self, effect: Effect) -> None:
        """Return `effect` from this step; the shell carries it out after the step."""
        self.dispatcher.emit(effect)

    def warn(self, text: str) -> None:
        """Emit a warning for the operator's log."""
        self.dispatcher.emit(Warn(text))

    def forget_node_tokens(self, node_id: NodeId) -> None:
        """Forget that AMs have NM tokens for a node whose NM is a new one: its tokens differ
        (NMTokenSecretManagerInRM).
        """
        for session in self.sessions.values():
            session.token_nodes.pop(node_id, None)

    def stop_expiry(self, container_id: ContainerId) -> None:
        """Stop the expiry of a container that runs or has ended, and of its increase."""
        self.allocation_expiry.unregister(container_id)
        self.increase_expiry.unregister(container_id)
