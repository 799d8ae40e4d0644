"""How each fault is injected into a simulated cluster, and undone (yarnling.chaos.faults for real processes)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping

from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarnling.chaos.faults import NoTarget
from yarnling.chaos.history import Role
from yarnling.chaos.link_faults import LINKS, link_names, network_fault
from yarnling.chaos.plan import Plan, Scope
from yarnling.chaos.schedule import FaultInjection
from yarnling.simulation.cluster import SimulatedCluster


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

    def running_nodes(self) -> list[int]:
        """Those of the fault's nodes that are up. Raises NoTarget if none is."""
        running = [number for number in self.injection.nodes if self.cluster.machine(number).nm.is_up]
        if not running:
            raise NoTarget(f"{_names(self.injection.nodes)} is already down")
        return running


class KillNode(FaultAction):
    def inject(self) -> str:
        running = self.running_nodes()
        for number in running:
            self.cluster.machine(number).kill(containers=bool(self.injection.options.get("containers", True)))
        return _names(running)

    def recover(self) -> None:
        for number in self.injection.nodes:
            self.cluster.start_node(number)


class StopNode(FaultAction):
    def inject(self) -> str:
        running = self.running_nodes()
        for number in running:
            self.cluster.machine(number).stop()
        return _names(running)

    def recover(self) -> None:
        for number in self.injection.nodes:
            self.cluster.start_node(number)


class DecommissionNode(FaultAction):
    def inject(self) -> str:
        running = self.running_nodes()
        for number in running:
            self.cluster.machine(number).is_exit_expected = True
        self.cluster.leaving |= set(running)
        timeout_s = self.injection.options.get("timeout", 30)
        assert isinstance(timeout_s, int)
        self.cluster.refresh_leaving(timeout_s)
        return _names(running)

    def recover(self) -> None:
        self.cluster.leaving -= set(self.injection.nodes)
        self.cluster.refresh_leaving(0)
        for number in self.injection.nodes:
            self.cluster.start_node(number)


class PauseNode(FaultAction):
    def inject(self) -> str:
        self.nodes = self.running_nodes()
        for number in self.nodes:
            self.target.paused[number] += 1
            self.cluster.machine(number).nm.pause()
        return _names(self.nodes)

    def recover(self) -> None:
        for number in self.nodes:
            self.target.paused[number] -= 1
            if self.target.paused[number] <= 0:
                self.cluster.machine(number).nm.resume()


class KillResourceManager(FaultAction):
    def inject(self) -> str:
        if not self.cluster.rm.is_up:
            raise NoTarget("the ResourceManager is already down")
        self.cluster.kill_rm()
        return "rm"

    def recover(self) -> None:
        self.cluster.start_rm()


class PauseResourceManager(FaultAction):
    def inject(self) -> str:
        if not self.cluster.rm.is_up:
            raise NoTarget("the ResourceManager is already down")
        self.target.paused[0] += 1
        self.cluster.pause_rm()
        return "rm"

    def recover(self) -> None:
        self.target.paused[0] -= 1
        if self.target.paused[0] <= 0:
            self.cluster.resume_rm()


class FullStore(FaultAction):
    """What cannot be stored must not be promised: new applications are refused, those that run continue."""

    def inject(self) -> str:
        self._set(is_full=True)
        return "the state store"

    def recover(self) -> None:
        self._set(is_full=False)

    def _set(self, *, is_full: bool) -> None:
        assert self.cluster.rm.store is not None, "chaos plans enable recovery"
        self.cluster.rm.store.is_full = is_full


class KillProcesses(FaultAction):
    """SIGKILL to a running container or ApplicationMaster: its NodeManager sees exit status 137."""

    def inject(self) -> str:
        container_id, node = picked(self.cluster, self.injection)
        self.cluster.machine(node).kill_container(container_id)
        return str(container_id)


class PauseMaster(FaultAction):
    def inject(self) -> str:
        container_id, _ = picked(self.cluster, self.injection)
        self.master = self.cluster.masters[container_id]
        self.master.pause()
        return str(container_id)

    def recover(self) -> None:
        self.master.resume()


class LinkFault(FaultAction):
    """Puts a network fault on some links of the network."""

    def inject(self) -> str:
        for name in link_names(self.injection):
            self.cluster.network.link(name).inject(self.injection.number, network_fault(self.injection))
        return _names(self.injection.nodes) if self.injection.nodes else "clients"

    def recover(self) -> None:
        for name in link_names(self.injection):
            self.cluster.network.link(name).remove(self.injection.number)


ACTIONS: Mapping[str, type[FaultAction]] = {
    "kill-node": KillNode,
    "stop-node": StopNode,
    "pause-node": PauseNode,
    "decommission-node": DecommissionNode,
    "kill-rm": KillResourceManager,
    "pause-rm": PauseResourceManager,
    "full-store": FullStore,
    "kill-master": KillProcesses,
    "pause-master": PauseMaster,
    "kill-container": KillProcesses,
    **dict.fromkeys(LINKS, LinkFault),
}
"""{name of the fault: how it is carried out}, for those of yarnling.chaos.plan.KINDS that are modelled."""


def check_modelled(plan: Plan) -> None:
    """Raises YarnException if a fault of the plan is not modelled."""
    others = dict.fromkeys(fault.kind.name for fault in plan.faults if fault.kind.name not in ACTIONS)
    if others:
        raise YarnException(
            f"the fault {', '.join(others)} is not modelled by the simulation, which has {', '.join(ACTIONS)}: "
            f"leave it out of the plan, or run the plan with real processes (yarnling chaos)"
        )


def picked(cluster: SimulatedCluster, injection: FaultInjection) -> tuple[ContainerId, int]:
    """The running AM or container that `pick` selects, and its node. Raises NoTarget."""
    is_master = injection.kind.scope is Scope.MASTER
    alive = cluster.recorder.running(*((Role.MASTER,) if is_master else (Role.CONTAINER, Role.TASK)))
    if not alive:
        raise NoTarget(f"no {'ApplicationMaster' if is_master else 'container'} is running")
    span = alive[min(int(injection.pick * len(alive)), len(alive) - 1)]
    return span.container_id, span.node


def _names(numbers: Iterable[int]) -> str:
    return " ".join(f"nm-{number}" for number in numbers)
