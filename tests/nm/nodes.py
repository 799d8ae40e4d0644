"""A core for tests: a registered node, containers to start on it, and its effects by class."""

from __future__ import annotations

from typing import TypeVar

from msgspec import structs

from nm.core import NodeManagerCore
from nm.core.effects import Effect, SendHeartbeat, SendRegistration
from nm.core.events import (
    ContainerExited,
    ContainerLaunched,
    Event,
    NodeHeartbeatAnswered,
    NodeRegistered,
    Start,
    StartContainers,
    StopContainers,
    VerifiedStart,
)
from nm.core.settings import CoreSettings, NodeFacts
from yarn.containers import ContainerLaunchContext, ContainerTokenIdentifier, NMTokenIdentifier
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import InvariantsBroken, Reply
from yarn.protocols.container_management import StartContainersResponse
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerResponse
from yarn.resource import Resource
from yarn.states import NodeAction

E = TypeVar("E", bound=Effect)

NODE = NodeId("127.0.0.2", 45454)
RM = 1_700_000_000_000
NOW_MS = 1_700_000_100_000
APP = ApplicationId(RM, 1)
ATTEMPT = ApplicationAttemptId(APP, 1)
OTHER_ATTEMPT = ApplicationAttemptId(ApplicationId(RM, 2), 1)


def container_id(number: int, attempt: ApplicationAttemptId = ATTEMPT) -> ContainerId:
    return ContainerId(attempt, number)


def nm_token(attempt: ApplicationAttemptId = ATTEMPT) -> NMTokenIdentifier:
    return NMTokenIdentifier(attempt, NODE, "alice", 1)


def container_token(
    number: int,
    *,
    attempt: ApplicationAttemptId = ATTEMPT,
    expiry_ms: int = NOW_MS + 600_000,
    rm_identifier: int = RM,
    memory_mb: int = 128,
) -> ContainerTokenIdentifier:
    return ContainerTokenIdentifier(
        container_id(number, attempt), NODE, "alice", Resource(memory_mb, 1), expiry_ms, 1, rm_identifier, 1, NOW_MS
    )


class Node:
    """A core that remembers its time and the effects of its last step; `step` and `after` return these effects."""

    def __init__(self, settings: CoreSettings | None = None) -> None:
        facts = NodeFacts(Resource(2048, 4), Resource(8192, 2))
        self.core = NodeManagerCore(NODE, facts, structs.replace(settings or CoreSettings(), check_invariants=True))
        self.now_ms = NOW_MS
        self.effects: list[Effect] = []
        self.calls = 0
        self.response_id = 0

    def step(self, event: Event) -> list[Effect]:
        self.effects = self.core.handle(event, self.now_ms)
        assert self.of(InvariantsBroken) == []
        return self.effects

    def after(self, delay_ms: int, event: Event) -> list[Effect]:
        self.now_ms += delay_ms
        return self.step(event)

    def of(self, kind: type[E]) -> list[E]:
        """The effects of the last step that are of this class."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def one(self, kind: type[E]) -> E:
        (effect,) = self.of(kind)
        return effect

    def register(self, started_before: tuple[ContainerId, ...] = ()) -> Node:
        """Start, register and have the first heartbeat answered."""
        self.step(Start(started_before))
        self.one(SendRegistration)
        self.step(NodeRegistered(RegisterNodeManagerResponse(NodeAction.NORMAL, RM)))
        self.one(SendHeartbeat)
        self.answer()
        return self

    def answer(self, **orders: object) -> list[Effect]:
        """Answer the heartbeat in progress."""
        self.response_id += 1
        return self.step(NodeHeartbeatAnswered(NodeHeartbeatResponse(self.response_id, NodeAction.NORMAL, **orders)))  # type: ignore[arg-type]

    def start(
        self,
        *numbers: int,
        launch: ContainerLaunchContext | None = None,
        caller: NMTokenIdentifier | None = None,
        tokens: tuple[ContainerTokenIdentifier, ...] | None = None,
    ) -> StartContainersResponse:
        """Start containers of the application and return the answer."""
        self.calls += 1
        tokens = tokens or tuple(container_token(number) for number in numbers)
        requests = tuple(VerifiedStart(launch or ContainerLaunchContext(("sleep 1",)), token) for token in tokens)
        self.step(StartContainers(self.calls, caller or nm_token(), requests))
        value = self.one(Reply).value
        assert isinstance(value, StartContainersResponse)
        return value

    def state(self, number: int) -> str:
        return self.core.containers[container_id(number)].machine.state.name


def launched(node: Node, number: int, launch: ContainerLaunchContext | None = None) -> Node:
    node.start(number, launch=launch)
    node.step(ContainerLaunched(container_id(number), 1))
    return node


def stop(node: Node, number: int) -> None:
    node.calls += 1
    node.step(StopContainers(node.calls, nm_token(), (container_id(number),)))


def exited(number: int, code: int, launch: int = 1) -> ContainerExited:
    return ContainerExited(container_id(number), launch, code)
