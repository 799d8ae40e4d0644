"""Faults of containers and ApplicationMasters: killed, paused, failing with a status, above a limit; rare requests."""

from __future__ import annotations

from functools import partial

from nm.core.events import LimitExceeded
from yarn.ids import ApplicationId
from yarn.resource import Resource
from yarn.states import ContainerExitStatus
from yarnling.faults.faults import NoTarget
from yarnling.simulation.fault_action import FaultAction, picked
from yarnling.simulation.master_requests import MasterRequests


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


class RequestingMaster(FaultAction):
    """Has an ApplicationMaster request something, and at the end the contrary, if it still runs."""

    def requests_of(self, application_id: ApplicationId) -> MasterRequests | None:
        """Of its latest ApplicationMaster; None if none runs."""
        of_attempts = {
            container_id.attempt_id: master
            for container_id, master in self.cluster.masters.items()
            if container_id.application_id == application_id
        }
        return of_attempts[max(of_attempts)].requests if of_attempts else None


class ResizeContainer(RequestingMaster):
    """A container gets twice its memory, if there is room, and at the end its first size again."""

    def inject(self) -> str:
        self.container_id, _ = picked(self.cluster, self.injection)
        requests = self.requests_of(self.container_id.application_id)
        size = None if requests is None else requests.size_of(self.container_id)
        if requests is None or size is None:
            raise NoTarget(f"no ApplicationMaster has {self.container_id}")
        self.size = size
        requests.resize(self.container_id, size + Resource(size.memory_mb, 0))
        return str(self.container_id)

    def recover(self) -> None:
        requests = self.requests_of(self.container_id.application_id)
        if requests is not None:
            requests.resize(self.container_id, self.size)


class AvoidNode(RequestingMaster):
    """An ApplicationMaster wants no containers on the host that it runs on, and at the end takes them again."""

    def inject(self) -> str:
        container_id, node = picked(self.cluster, self.injection)
        self.application_id, self.host = container_id.application_id, self.cluster.machine(node).host
        requests = self.requests_of(self.application_id)
        if requests is None:
            raise NoTarget(f"{container_id} has not registered yet")
        requests.change_blacklist(additions=(self.host,))
        return str(container_id)

    def recover(self) -> None:
        requests = self.requests_of(self.application_id)
        if requests is not None:
            requests.change_blacklist(removals=(self.host,))
