"""The kinds of faults: each is injected into a cluster, and undone."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

import psutil

from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarnling.cluster.containers import processes_of
from yarnling.cluster.processes import kill
from yarnling.faults.history import Role
from yarnling.faults.link_faults import LINKS, link_names, network_fault
from yarnling.faults.plan import Scope
from yarnling.faults.schedule import FaultInjection
from yarnling.faults.target import RM, TargetCluster

TARGET_WAIT_S = 10.0
"""The time a fault waits for its target (a running ApplicationMaster, container or
ResourceManager), unless optional."""
POLL_S = 0.05

T = TypeVar("T")


class NoTarget(YarnException):
    """The fault has no target: for example, no ApplicationMaster runs, or the node is already down."""


class FaultAction(ABC):
    """Carries out one fault injection.

    `inject` returns the name of the target for people, and raises NoTarget if there is none. `recover` undoes the
    fault.
    """

    def __init__(self, target: TargetCluster, injection: FaultInjection) -> None:
        self.target = target
        self.injection = injection

    @abstractmethod
    async def inject(self) -> str: ...

    async def recover(self) -> None:  # noqa: B027  most faults override it; two kills have nothing to undo
        """Undo the fault. By default there is nothing to undo."""

    def running_nodes(self) -> list[int]:
        """The nodes of the fault that are up. Raises NoTarget if none is."""
        running = [number for number in self.injection.nodes if self.target.is_up(number)]
        if not running:
            raise NoTarget(f"{_names(self.injection.nodes)} is already down")
        return running


class NodeDown(FaultAction):
    """A NodeManager exits, and is restarted when the fault ends."""

    @abstractmethod
    async def take_down(self, number: int) -> None: ...

    async def inject(self) -> str:
        running = self.running_nodes()
        for number in running:
            self.target.expect_exit(number)
        await _all(self.take_down(number) for number in running)
        return _names(running)

    async def recover(self) -> None:
        await _all(self.target.restart(number) for number in self.injection.nodes)


class KillNode(NodeDown):
    async def take_down(self, number: int) -> None:
        containers = bool(self.injection.options.get("containers", True))
        await self.target.cluster.kill_node(number, containers=containers)


class StopNode(NodeDown):
    async def take_down(self, number: int) -> None:
        await self.target.cluster.remove_node(number)


class DecommissionNode(FaultAction):
    async def inject(self) -> str:
        running = self.running_nodes()
        for number in running:
            self.target.expect_exit(number)
        self.target.leaving |= set(running)
        timeout_s = self.injection.options.get("timeout", 30)
        assert isinstance(timeout_s, int)
        await self.target.refresh_leaving(timeout_s)
        return _names(running)

    async def recover(self) -> None:
        self.target.leaving -= set(self.injection.nodes)
        await self.target.refresh_leaving(0)
        await _all(self.target.restart(number) for number in self.injection.nodes)


class PauseNode(FaultAction):
    def __init__(self, target: TargetCluster, injection: FaultInjection) -> None:
        super().__init__(target, injection)
        self._paused: list[int] = []

    async def inject(self) -> str:
        self._paused = self.running_nodes()
        for number in self._paused:
            self.target.pause(number)
        return _names(self._paused)

    async def recover(self) -> None:
        for number in self._paused:
            self.target.resume(number)


class KillResourceManager(FaultAction):
    """The ResourceManager is killed, even if it is still starting."""

    async def inject(self) -> str:
        await _wait_for_rm(self.target, self.injection)
        self.target.expect_exit(RM)
        await self.target.cluster.kill_rm()
        return "rm"

    async def recover(self) -> None:
        await self.target.restart(RM)


class PauseResourceManager(FaultAction):
    async def inject(self) -> str:
        await _wait_for_rm(self.target, self.injection)
        self.target.pause(RM)
        return "rm"

    async def recover(self) -> None:
        self.target.resume(RM)


class FullDisk(FaultAction):
    async def inject(self) -> str:
        for number in self.injection.nodes:
            await asyncio.to_thread(self.target.disks[number].fill)
        return _names(self.injection.nodes)

    async def recover(self) -> None:
        for number in self.injection.nodes:
            self.target.disks[number].empty()


class FullStore(FaultAction):
    """The disk of the state store is full.

    The ResourceManager must not accept what it cannot store: it refuses new applications, and running ones continue.
    """

    async def inject(self) -> str:
        await asyncio.to_thread(self.target.disks[RM].fill)
        return "the state store"

    async def recover(self) -> None:
        self.target.disks[RM].empty()


class KillProcesses(FaultAction):
    """A running container or ApplicationMaster gets SIGKILL; its NodeManager reports exit status 137."""

    async def inject(self) -> str:
        container_id, processes = await _find_container(self.target, self.injection)
        for process in processes:
            kill(process)
        return str(container_id)


class PauseMaster(FaultAction):
    def __init__(self, target: TargetCluster, injection: FaultInjection) -> None:
        super().__init__(target, injection)
        self._stopped: list[psutil.Process] = []

    async def inject(self) -> str:
        container_id, self._stopped = await _find_container(self.target, self.injection)
        for process in self._stopped:
            _signal(process, signal.SIGSTOP)
        return str(container_id)

    async def recover(self) -> None:
        for process in self._stopped:
            _signal(process, signal.SIGCONT)


class LinkFault(FaultAction):
    """Puts a network fault on some links of the network (yarnling.faults.link_faults)."""

    async def inject(self) -> str:
        assert self.target.network is not None, "the plan of such a fault has a network"
        self.target.network.inject(self.injection.number, link_names(self.injection), network_fault(self.injection))
        return _names(self.injection.nodes) if self.injection.nodes else "clients"

    async def recover(self) -> None:
        assert self.target.network is not None
        self.target.network.remove(self.injection.number)


ACTIONS: dict[str, type[FaultAction]] = {
    "kill-node": KillNode,
    "stop-node": StopNode,
    "pause-node": PauseNode,
    "decommission-node": DecommissionNode,
    "full-disk": FullDisk,
    "kill-rm": KillResourceManager,
    "pause-rm": PauseResourceManager,
    "full-store": FullStore,
    "kill-master": KillProcesses,
    "pause-master": PauseMaster,
    "kill-container": KillProcesses,
    **dict.fromkeys(LINKS, LinkFault),
}
"""The class that carries out each kind of fault, for all of KINDS."""


async def _all(steps: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all steps concurrently."""
    async with asyncio.TaskGroup() as tasks:
        for step in steps:
            tasks.create_task(step)


async def _find_container(target: TargetCluster, injection: FaultInjection) -> tuple[ContainerId, list[psutil.Process]]:
    """The running AM or container that `pick` selects, with its processes. Waits for one unless the fault is optional.

    Finding the processes takes a while on a busy machine. If the container has exited meanwhile, another one is
    selected.
    """
    is_master = injection.kind.scope is Scope.MASTER
    roles = (Role.MASTER,) if is_master else (Role.CONTAINER, Role.TASK)
    missing = f"no {'ApplicationMaster' if is_master else 'container'} is running"
    deadline_s = _deadline_s(injection)
    while True:
        alive = await _wait_for(lambda: target.notes.alive(*roles), injection, missing)
        container_id = alive[min(int(injection.pick * len(alive)), len(alive) - 1)].container_id
        # Search only among our own descendants: reading the environment of unrelated processes can block for seconds.
        if processes := await asyncio.to_thread(processes_of, container_id, os.getpid()):
            return container_id, processes
        if time.monotonic() >= deadline_s:
            raise NoTarget(missing)


async def _wait_for_rm(target: TargetCluster, injection: FaultInjection) -> None:
    """Wait until the ResourceManager is up: it may still be restarting after an earlier fault."""
    await _wait_for(lambda: target.is_up(RM), injection, "the ResourceManager is already down")


async def _wait_for(find: Callable[[], T], injection: FaultInjection, missing: str) -> T:
    """Call `find` until it returns a true value, and return that. Raises NoTarget after TARGET_WAIT_S.

    For an optional fault, NoTarget is raised at once.
    """
    deadline_s = _deadline_s(injection)
    while not (found := find()):
        if time.monotonic() >= deadline_s:
            raise NoTarget(missing)
        await asyncio.sleep(POLL_S)
    return found


def _deadline_s(injection: FaultInjection) -> float:
    return time.monotonic() + (0.0 if injection.optional else TARGET_WAIT_S)


def _signal(process: psutil.Process, number: int) -> None:
    try:
        if process.is_running():
            os.kill(process.pid, number)
    except (psutil.Error, OSError):
        return


def _names(numbers: tuple[int, ...] | list[int]) -> str:
    return " ".join(f"nm-{number}" for number in numbers)
