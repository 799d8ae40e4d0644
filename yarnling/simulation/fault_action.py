"""The base of every fault of a simulated cluster: its target, how it is injected, and how it is undone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable

from yarn.ids import ContainerId
from yarnling.faults.faults import NoTarget
from yarnling.faults.history import Role
from yarnling.faults.plan import Scope
from yarnling.faults.schedule import FaultInjection
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.state_store import StateStore


class Target:
    """The cluster, and how many faults pause each of its processes."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.paused: Counter[int] = Counter()


class FaultAction(ABC):
    """Carries out one fault injection.

    `inject` returns a name of the target, for people, and raises NoTarget if there is none. `recover` undoes it.
    """

    def __init__(self, target: Target, injection: FaultInjection) -> None:
        self.target = target
        self.cluster = target.cluster
        self.injection = injection

    @abstractmethod
    def inject(self) -> str: ...

    def recover(self) -> None:  # noqa: B027  two kills have nothing to undo
        """Does nothing by default."""

    def check_rm_is_up(self) -> None:
        """Raises NoTarget if the ResourceManager is down."""
        if not self.cluster.rm.is_up:
            raise NoTarget("the ResourceManager is already down")

    def store(self) -> StateStore:
        assert self.cluster.rm.store is not None, "chaos plans enable recovery"
        return self.cluster.rm.store

    def running_nodes(self) -> list[int]:
        """Those of the fault's nodes that are up. Raises NoTarget if none is."""
        running = [number for number in self.injection.nodes if self.cluster.machine(number).nm.is_up]
        if not running:
            raise NoTarget(f"{names(self.injection.nodes)} is already down")
        return running


def picked(cluster: SimulatedCluster, injection: FaultInjection) -> tuple[ContainerId, int]:
    """The running AM or container that `pick` selects, and its node. Raises NoTarget."""
    is_master = injection.kind.scope is Scope.MASTER
    alive = cluster.recorder.running(*((Role.MASTER,) if is_master else (Role.CONTAINER, Role.TASK)))
    if not alive:
        raise NoTarget(f"no {'ApplicationMaster' if is_master else 'container'} is running")
    span = alive[min(int(injection.pick * len(alive)), len(alive) - 1)]
    return span.container_id, span.node


def names(numbers: Iterable[int]) -> str:
    return " ".join(f"nm-{number}" for number in numbers)
