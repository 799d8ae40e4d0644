"""Faults of containers and ApplicationMasters: killed, paused, failing with a status, above a limit."""

from __future__ import annotations

from functools import partial

from nm.core.events import LimitExceeded
from yarn.states import ContainerExitStatus
from yarnling.simulation.fault_action import FaultAction, picked


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


class FailContainer(FaultAction):
    """A container ends by itself with this status."""

    def inject(self) -> str:
        container_id, node = picked(self.cluster, self.injection)
        machine, status = self.cluster.machine(node), self.injection.options["exit"]
        assert isinstance(status, int)
        machine.program_ended(container_id, machine.containers.running[container_id].effect.launch, status)
        return str(container_id)


_LIMITS = {
    "exceed-memory": (ContainerExitStatus.KILLED_EXCEEDED_PMEM, "the container is running beyond its memory limit"),
    "exceed-logs": (ContainerExitStatus.KILLED_FOR_EXCESS_LOGS, "the container is logging beyond its limit"),
}
"""{fault: exit status and diagnostics of its container}"""


class ExceedLimit(FaultAction):
    """The NodeManager's monitor finds the container above its limit, and kills it."""

    def inject(self) -> str:
        container_id, node = picked(self.cluster, self.injection)
        machine = self.cluster.machine(node)
        launch = machine.containers.running[container_id].effect.launch
        exceeded = LimitExceeded(container_id, launch, *_LIMITS[self.injection.kind.name])
        machine.nm.deliver(machine.nm.starts, partial(machine.nm.step, exceeded))
        return str(container_id)
