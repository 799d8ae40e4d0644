"""What runs after all, once the RM has restarted: the NodeManagers are asked. Pure.

    reconciliation.handle(event, now_ms) -> [Effect]
    reconciliation.next_deadline_ms() -> int | None

A restarted RM knows what NMs tell it. A container that ended together with its node, before its AM heard of it, is
known to nobody then, and its AM waits for ever (Hadoop's do). So from a resync on the containers of before it are asked
after, until each has ended, whoever tells it: once is not enough, for a node may go after it has answered here and
before it has registered with the new RM.

What its NM does not have has ended like a container of a lost node (-100). An NM that is silent for as long as the RM
would wait for it (NM expiry) counts as lost. It may live, and the RM may reach it: so what it had is given back too,
and stopped should the NM answer one day.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec import Struct

from am.core.events import (
    ContainersAllocated,
    ContainersCompleted,
    ContainersFromPreviousAttempts,
    ContainerStarted,
    ContainerStartFailed,
    Event,
    Resynced,
)
from yarn.containers import ContainerStatus
from yarn.ids import ContainerId, NodeId
from yarn.states import ContainerExitStatus, ContainerState

ASKS_AN_EXPIRY = 4
"""So often a NM is asked while it may be silent; what ends unheard is found that much sooner than with its node."""
SILENT_ASKS_MIN = 2
"""An AM that was stopped itself for a while finds the question unanswered that was under way: no NM is to blame."""


class NodeAnswered(Struct, frozen=True):
    """A NM has told how those containers do: those it has, that is."""

    node_id: NodeId
    asked: tuple[ContainerId, ...]
    statuses: tuple[ContainerStatus, ...]


class NodeSilent(Struct, frozen=True):
    """A NM could not be asked."""

    node_id: NodeId


class Tick(Struct, frozen=True):
    """It is later."""


class AskNode(Struct, frozen=True):
    """Ask a NM after containers; NodeAnswered or NodeSilent follows."""

    node_id: NodeId
    container_ids: tuple[ContainerId, ...]


class TakeAsEnded(Struct, frozen=True):
    """Ends that the RM may never tell. `give_back`: they may run on all the same."""

    statuses: tuple[ContainerStatus, ...]
    give_back: bool = False


class StopStray(Struct, frozen=True):
    """One that was taken as ended runs, on a NM that can be reached again."""

    container_id: ContainerId
    node_id: NodeId


News: TypeAlias = Event | NodeAnswered | NodeSilent | Tick
Effect: TypeAlias = AskNode | TakeAsEnded | StopStray


@dataclass(slots=True)
class _Container:
    """`is_old`: the RM that gave it has gone. `is_given_up`: taken as ended, though nobody knows."""

    node_id: NodeId
    is_started: bool
    is_old: bool = False
    is_given_up: bool = False


@dataclass(slots=True)
class _Node:
    """One that is asked after `containers`. `heard_ms`: its last answer, or since when it is asked."""

    heard_ms: int
    due_ms: int
    containers: dict[ContainerId, None] = field(default_factory=dict)
    is_asked: bool = False
    silent_asks: int = 0


class Reconciliation:
    """The containers of one attempt. `expiry_ms`: how long a NM may be silent before it counts as lost."""

    def __init__(self, expiry_ms: int) -> None:
        self._expiry_ms = expiry_ms
        self._interval_ms = max(1, expiry_ms // ASKS_AN_EXPIRY)
        self._containers: dict[ContainerId, _Container] = {}
        self._nodes: dict[NodeId, _Node] = {}

    def handle(self, news: News, now_ms: int) -> list[Effect]:
        """What is to be done after one thing that happened."""
        return [*self._note(news, now_ms), *self._ask(now_ms)]

    def next_deadline_ms(self) -> int | None:
        """When a Tick is due, if at all."""
        return min((node.due_ms for node in self._nodes.values() if not node.is_asked), default=None)

    def _note(self, news: News, now_ms: int) -> list[Effect]:
        match news:
            case ContainersAllocated(allocations):
                for allocation in allocations:
                    container = allocation.container
                    self._containers[container.id] = _Container(container.node_id, is_started=False)
            case ContainersFromPreviousAttempts(containers):
                for container in containers:
                    self._containers.setdefault(container.id, _Container(container.node_id, is_started=True))
            case ContainerStarted(container_id) if container_id in self._containers:
                self._containers[container_id].is_started = True
                self._watch(container_id, now_ms)
            case ContainerStartFailed(container_id, _):
                self._forget(container_id)
            case ContainersCompleted(statuses):
                for status in statuses:
                    self._forget(status.container_id)
            case Resynced():
                self._doubt_all(now_ms)
            case NodeAnswered():
                return self._compare(news, now_ms)
            case NodeSilent(node_id) if node_id in self._nodes:
                return self._note_silence(node_id, now_ms)
        return []

    def _doubt_all(self, now_ms: int) -> None:
        """All were given by an RM that has gone. A NM's silence counts from now."""
        for node in self._nodes.values():
            node.heard_ms, node.due_ms, node.silent_asks = now_ms, now_ms, 0
        for container_id, container in self._containers.items():
            container.is_old = True
            self._watch(container_id, now_ms)

    def _watch(self, container_id: ContainerId, now_ms: int) -> None:
        """Ask after it, if it is to be asked after: one whose start is under way its NM need not have yet."""
        container = self._containers[container_id]
        if container.is_old and container.is_started:
            node = self._nodes.setdefault(container.node_id, _Node(now_ms, now_ms))
            node.containers[container_id] = None

    def _forget(self, container_id: ContainerId) -> None:
        container = self._containers.pop(container_id, None)
        node = None if container is None else self._nodes.get(container.node_id)
        if container is not None and node is not None:
            node.containers.pop(container_id, None)
            if not node.containers:
                del self._nodes[container.node_id]

    def _ask(self, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        for node_id, node in self._nodes.items():
            if not node.is_asked and node.due_ms <= now_ms:
                node.is_asked = True
                node.due_ms = now_ms + self._interval_ms
                effects.append(AskNode(node_id, tuple(node.containers)))
        return effects

    def _compare(self, answer: NodeAnswered, now_ms: int) -> list[Effect]:
        """Hold what a NM has against what is believed to run there."""
        if node := self._nodes.get(answer.node_id):
            node.heard_ms, node.is_asked, node.silent_asks = now_ms, False, 0
        told = {status.container_id: status for status in answer.statuses}
        ended: list[ContainerStatus] = []
        strays: list[Effect] = []
        for container_id in answer.asked:
            container = self._containers.get(container_id)
            if container is None:
                continue
            status = told.get(container_id)
            if status is None or status.state is ContainerState.COMPLETE:
                self._forget(container_id)
                if not container.is_given_up:
                    ended.append(status or _lost(container_id, f"{answer.node_id} does not have it any more"))
            elif container.is_given_up:
                strays.append(StopStray(container_id, answer.node_id))
        return [*strays, *([TakeAsEnded(tuple(ended))] if ended else [])]

    def _note_silence(self, node_id: NodeId, now_ms: int) -> list[Effect]:
        node = self._nodes[node_id]
        node.is_asked = False
        node.silent_asks += 1
        silent_ms = now_ms - node.heard_ms
        if silent_ms < self._expiry_ms or node.silent_asks < SILENT_ASKS_MIN:
            return []
        lost = [one for one in node.containers if not self._containers[one].is_given_up]
        for container_id in lost:
            self._containers[container_id].is_given_up = True
        why = f"{node_id} is silent for {silent_ms} ms"
        return [TakeAsEnded(tuple(_lost(one, why) for one in lost), give_back=True)] if lost else []


def _lost(container_id: ContainerId, why: str) -> ContainerStatus:
    """The end of a container of a lost node (SchedulerUtils.createAbnormalContainerStatus)."""
    return ContainerStatus(container_id, ContainerState.COMPLETE, ContainerExitStatus.ABORTED, f"Lost: {why}")
