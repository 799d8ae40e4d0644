"""Measures what a container costs its NodeManager while its application has ended more and more of them.

Both figures are microseconds of CPU time of the core. `us_container`: start, launch, exit, and the heartbeats that
report and forget the container, while the earlier ones ended so long ago that their time to be remembered is over.
`us_heartbeat`: a heartbeat while the ended containers wait for their AM to learn of them. Ideally, neither grows.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from benchmarks.core_driver import cpu_s
from nm.core import NodeManagerCore
from nm.core.events import (
    ContainerExited,
    ContainerLaunched,
    Event,
    NodeHeartbeatAnswered,
    NodeRegistered,
    Start,
    StartContainers,
    VerifiedStart,
)
from nm.core.settings import CoreSettings, NodeFacts
from yarn.containers import ContainerLaunchContext, ContainerTokenIdentifier, NMTokenIdentifier
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import Tick
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerResponse
from yarn.resource import Resource
from yarn.states import NodeAction

ENDED = (100, 1_000, 10_000, 50_000)
CONTAINERS = 50
HEARTBEATS = 50
_NODE = NodeId("127.0.0.2", 45454)
_RM = 1_700_000_000_000
_ATTEMPT = ApplicationAttemptId(ApplicationId(_RM, 1), 1)
_SIZE = Resource(128, 1)
_FOR_EVER_MS = _RM * 2


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"us_container_100_ended", ..., "us_heartbeat_100_waiting", ...: microseconds}."""
    figures: dict[str, float] = {}
    for count in ENDED:
        progress(f"{count} ended containers")
        node = _Node()
        node.run(count, forget=True)
        node.rest()
        gc.collect()
        used_s = cpu_s(lambda node=node: node.run(CONTAINERS, forget=True))  # type: ignore[misc]
        figures[f"us_container_{count}_ended"] = round(used_s / CONTAINERS * 1e6, 1)
        node = _Node()
        node.run(count, forget=False)
        node.rest()
        gc.collect()
        used_s = cpu_s(lambda node=node: node.beat(HEARTBEATS))  # type: ignore[misc]
        figures[f"us_heartbeat_{count}_waiting"] = round(used_s / HEARTBEATS * 1e6, 1)
    return figures


class _Node:
    """The core of a node on which one application runs."""

    def __init__(self) -> None:
        self.now_ms = _RM
        self._core = NodeManagerCore(_NODE, NodeFacts(Resource(8192, 8), Resource(8192, 8)), CoreSettings())
        self._response_id = 0
        self._started = 0
        self._step(Start(()))
        self._step(NodeRegistered(RegisterNodeManagerResponse(NodeAction.NORMAL, _RM)))
        self._answer()

    def run(self, count: int, *, forget: bool) -> None:
        """Run so many containers, one after the other; `forget`: the RM has the node forget each."""
        for _ in range(count):
            self._started += 1
            container_id = ContainerId(_ATTEMPT, self._started)
            token = ContainerTokenIdentifier(container_id, _NODE, "ann", _SIZE, _FOR_EVER_MS, 1, _RM, 1, self.now_ms)
            start = VerifiedStart(ContainerLaunchContext(("true",)), token)
            self._step(StartContainers(self._started, NMTokenIdentifier(_ATTEMPT, _NODE, "ann", 1), (start,)))
            self._step(ContainerLaunched(container_id, 1))
            self._step(ContainerExited(container_id, 1, 0))
            self._answer(*([container_id] if forget else []))

    def rest(self) -> None:
        """Pass the time for which a container is remembered, so that no timer of an ended one is left."""
        self.now_ms += CoreSettings().stopped_containers_kept_ms + 1
        self.run(1, forget=True)
        self.beat(1)

    def beat(self, count: int) -> None:
        for _ in range(count):
            self.now_ms += 1_000
            self._step(Tick())
            self._answer()

    def _answer(self, *forgotten: ContainerId) -> None:
        self._response_id += 1
        response = NodeHeartbeatResponse(self._response_id, NodeAction.NORMAL, containers_to_forget=forgotten)
        self._step(NodeHeartbeatAnswered(response))

    def _step(self, event: Event) -> None:
        self._core.handle(event, self.now_ms)
