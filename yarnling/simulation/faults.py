"""The faults of a simulated cluster: each is injected, and undone (yarnling.faults.faults for real processes)."""

from __future__ import annotations

from collections.abc import Mapping

from yarnling.faults.link_faults import LINKS, link_names, network_fault
from yarnling.simulation.admin_faults import MoveRunningApplication, RefreshQueues, ResizeNode, RollKeys
from yarnling.simulation.container_faults import (
    AvoidNode,
    ExceedLimit,
    FailContainer,
    KillProcesses,
    PauseMaster,
    ResizeContainer,
)
from yarnling.simulation.fault_action import FaultAction, names
from yarnling.simulation.node_faults import DriftingClock, FullDisk, LateHeartbeat, LoseNodeDisk, OldNode, WrongClock
from yarnling.simulation.store_faults import FullStore, KillAtWrite, LoseStore, SlowStore


class KillNode(FaultAction):
    def inject(self) -> str:
        running = self.running_nodes()
        for number in running:
            self.cluster.machine(number).kill(containers=bool(self.injection.options.get("containers", True)))
        return names(running)

    def recover(self) -> None:
        for number in self.injection.nodes:
            self.cluster.start_node(number)


class StopNode(FaultAction):
    def inject(self) -> str:
        running = self.running_nodes()
        for number in running:
            self.cluster.machine(number).stop()
        return names(running)

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
        return names(running)

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
        return names(self.nodes)

    def recover(self) -> None:
        for number in self.nodes:
            self.target.paused[number] -= 1
            if self.target.paused[number] <= 0:
                self.cluster.machine(number).nm.resume()


class KillResourceManager(FaultAction):
    def inject(self) -> str:
        self.check_rm_is_up()
        self.cluster.kill_rm()
        return "rm"

    def recover(self) -> None:
        self.cluster.start_rm()


class PauseResourceManager(FaultAction):
    def inject(self) -> str:
        self.check_rm_is_up()
        self.target.paused[0] += 1
        self.cluster.pause_rm()
        return "rm"

    def recover(self) -> None:
        self.target.paused[0] -= 1
        if self.target.paused[0] <= 0:
            self.cluster.resume_rm()


class LinkFault(FaultAction):
    """Puts a network fault on some links of the network."""

    def inject(self) -> str:
        for name in link_names(self.injection):
            self.cluster.network.link(name).inject(self.injection.number, network_fault(self.injection))
        return names(self.injection.nodes) if self.injection.nodes else "clients"

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
    "full-disk": FullDisk,
    "lose-store": LoseStore,
    "kill-rm-at-write": KillAtWrite,
    "slow-store": SlowStore,
    "lose-node-disk": LoseNodeDisk,
    "late-heartbeat": LateHeartbeat,
    "wrong-clock": WrongClock,
    "drifting-clock": DriftingClock,
    "old-node": OldNode,
    "fail-container": FailContainer,
    "exceed-memory": ExceedLimit,
    "exceed-logs": ExceedLimit,
    "resize-container": ResizeContainer,
    "avoid-node": AvoidNode,
    "roll-keys": RollKeys,
    "refresh-queues": RefreshQueues,
    "move-application": MoveRunningApplication,
    "resize-node": ResizeNode,
    **dict.fromkeys(LINKS, LinkFault),
}
"""{name of the fault: how it is carried out}, for all of yarnling.faults.plan.KINDS."""
