"""Each fault as it is done to a cluster: `start` does it, `heal` undoes it. What they share is in Site."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

import psutil

from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarnling.chaos.history import Role
from yarnling.chaos.plan import Scope
from yarnling.chaos.proxy import Harm
from yarnling.chaos.schedule import Blow
from yarnling.chaos.site import Site
from yarnling.cluster.containers import processes_of
from yarnling.cluster.processes import kill

SOMEBODY_S = 10.0
"""How long a fault waits for a master, container or ResourceManager to be done to, unless it is optional."""
LOOK_S = 0.05


T = TypeVar("T")


class NothingThere(YarnException):
    """What the fault is for is not there: no master runs, the node is down already."""


class Fault(ABC):
    """One blow. `start` returns whom it fell on, for people; it raises NothingThere if there is nobody."""

    def __init__(self, site: Site, blow: Blow) -> None:
        self.site = site
        self.blow = blow

    @abstractmethod
    async def start(self) -> str: ...

    async def heal(self) -> None:  # noqa: B027  most faults undo something, two kills do not
        """Nothing to undo, unless a fault says otherwise."""

    def living_nodes(self) -> list[int]:
        """The blow's nodes that are up. Raises NothingThere if none is."""
        living = [number for number in self.blow.nodes if self.site.is_up(number)]
        if not living:
            raise NothingThere(f"{_nodes(self.blow.nodes)} is down already")
        return living


class KillNode(Fault):
    async def start(self) -> str:
        living = self.living_nodes()
        containers = bool(self.blow.options.get("containers", True))
        for number in living:
            self.site.may_end(number)
        async with asyncio.TaskGroup() as tasks:
            for number in living:
                tasks.create_task(self.site.cluster.kill_node(number, containers=containers))
        return _nodes(living)

    async def heal(self) -> None:
        await _bring_back(self.site, self.blow.nodes)


class StopNode(Fault):
    async def start(self) -> str:
        living = self.living_nodes()
        for number in living:
            self.site.may_end(number)
        async with asyncio.TaskGroup() as tasks:
            for number in living:
                tasks.create_task(self.site.cluster.remove_node(number))
        return _nodes(living)

    async def heal(self) -> None:
        await _bring_back(self.site, self.blow.nodes)


class PauseNode(Fault):
    def __init__(self, site: Site, blow: Blow) -> None:
        super().__init__(site, blow)
        self._paused: list[int] = []

    async def start(self) -> str:
        self._paused = self.living_nodes()
        for number in self._paused:
            self.site.pause(number)
        return _nodes(self._paused)

    async def heal(self) -> None:
        for number in self._paused:
            self.site.resume(number)


class DecommissionNode(Fault):
    async def start(self) -> str:
        living = self.living_nodes()
        for number in living:
            self.site.may_end(number)
        self.site.leaving |= set(living)
        timeout_s = self.blow.options.get("timeout", 30)
        assert isinstance(timeout_s, int)
        await self.site.tell_leaving(timeout_s)
        return _nodes(living)

    async def heal(self) -> None:
        self.site.leaving -= set(self.blow.nodes)
        await self.site.tell_leaving(0)
        await _bring_back(self.site, self.blow.nodes)


class KillResourceManager(Fault):
    """One that is only starting is there, too."""

    async def start(self) -> str:
        await _resource_manager(self.site, self.blow)
        self.site.may_end(0)
        await self.site.cluster.kill_rm()
        return "rm"

    async def heal(self) -> None:
        await self.site.bring_back(0)


class PauseResourceManager(Fault):
    async def start(self) -> str:
        await _resource_manager(self.site, self.blow)
        self.site.pause(0)
        return "rm"

    async def heal(self) -> None:
        self.site.resume(0)


class FullDisk(Fault):
    async def start(self) -> str:
        for number in self.blow.nodes:
            await asyncio.to_thread(self.site.disks[number].fill)
        return _nodes(self.blow.nodes)

    async def heal(self) -> None:
        for number in self.blow.nodes:
            self.site.disks[number].empty()


class FullStore(Fault):
    """What the ResourceManager cannot keep it must not promise: what is new is refused, what runs goes on."""

    async def start(self) -> str:
        await asyncio.to_thread(self.site.disks[0].fill)
        return "the state store"

    async def heal(self) -> None:
        self.site.disks[0].empty()


class KillContainer(Fault):
    """SIGKILL to a running container, or master: its NodeManager sees it end with 137."""

    async def start(self) -> str:
        container_id, processes = await _somebody(self.site, self.blow)
        for process in processes:
            kill(process)
        return str(container_id)


class PauseMaster(Fault):
    def __init__(self, site: Site, blow: Blow) -> None:
        super().__init__(site, blow)
        self._stopped: list[psutil.Process] = []

    async def start(self) -> str:
        container_id, self._stopped = await _somebody(self.site, self.blow)
        for process in self._stopped:
            _signal(process, signal.SIGSTOP)
        return str(container_id)

    async def heal(self) -> None:
        for process in self._stopped:
            _signal(process, signal.SIGCONT)


class Cut(Fault):
    """Links of nodes that nothing passes, or only one way."""

    links: tuple[str, ...] = ()

    async def start(self) -> str:
        network = self.site.network
        assert network is not None, "a plan with such a fault has a network"
        lost, how = self.blow.options.get("lost", "both"), self.blow.options.get("how", "silent")
        harm = Harm(
            requests=lost != "replies" and how != "reset",
            replies=lost != "requests" and how != "reset",
            forgets=how == "lost",
            reset=how == "reset",
        )
        network.harm(self.blow.number, self.names(), harm)
        return _nodes(self.blow.nodes) if self.blow.nodes else "clients"

    async def heal(self) -> None:
        assert self.site.network is not None
        self.site.network.undo(self.blow.number)

    def names(self) -> tuple[str, ...]:
        return tuple(f"{link}-{number}" for number in self.blow.nodes for link in self.links)


class PartitionNode(Cut):
    links = ("tracker", "scheduler", "node")


class PartitionNodeManager(Cut):
    links = ("tracker",)


class PartitionMasters(Cut):
    links = ("scheduler",)


class PartitionFromMasters(Cut):
    links = ("node",)


class PartitionClients(Cut):
    def names(self) -> tuple[str, ...]:
        return ("clients",)


class SlowNode(Cut):
    links = ("tracker", "scheduler", "node")

    async def start(self) -> str:
        assert self.site.network is not None
        options = {name: value for name, value in self.blow.options.items() if isinstance(value, float)}
        harm = Harm(
            delay_s=options.get("delay", 0.0),
            loss=options.get("loss", 0.0),
            rate=options.get("kilobytes", 0.0) * 1024,
            breaks=options.get("breaks", 0.0),
        )
        self.site.network.harm(self.blow.number, self.names(), harm)
        return _nodes(self.blow.nodes)


FAULTS: dict[str, type[Fault]] = {
    "kill-node": KillNode,
    "stop-node": StopNode,
    "pause-node": PauseNode,
    "decommission-node": DecommissionNode,
    "full-disk": FullDisk,
    "kill-rm": KillResourceManager,
    "pause-rm": PauseResourceManager,
    "full-store": FullStore,
    "kill-master": KillContainer,
    "pause-master": PauseMaster,
    "kill-container": KillContainer,
    "partition-node": PartitionNode,
    "partition-nm-from-rm": PartitionNodeManager,
    "partition-masters-from-rm": PartitionMasters,
    "partition-nm-from-masters": PartitionFromMasters,
    "partition-clients": PartitionClients,
    "slow-node": SlowNode,
}


async def _bring_back(site: Site, numbers: tuple[int, ...]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for number in numbers:
            tasks.create_task(site.bring_back(number))


async def _somebody(site: Site, blow: Blow) -> tuple[ContainerId, list[psutil.Process]]:
    """The master or container that the blow's pick says, and its processes; waits for one, unless the blow is optional.

    To find them takes its time where the machine is busy. One that has ended meanwhile is not it.
    """
    is_master = blow.kind.scope is Scope.MASTER
    roles = (Role.MASTER,) if is_master else (Role.CONTAINER, Role.TASK)
    missing = f"no {'master' if is_master else 'container'} runs"
    given_up_s = time.monotonic() + (0.0 if blow.optional else SOMEBODY_S)
    while True:
        alive = await _once_there(lambda: site.notes.alive(*roles), blow, missing)
        container_id = alive[min(int(blow.pick * len(alive)), len(alive) - 1)].container_id
        # Below this process alone: to read of strangers would wait for what they do with their memory, for seconds.
        if processes := await asyncio.to_thread(processes_of, container_id, os.getpid()):
            return container_id, processes
        if time.monotonic() >= given_up_s:
            raise NothingThere(missing)


async def _resource_manager(site: Site, blow: Blow) -> None:
    """Returns when it is up: where a fault has just ended, it may be a moment away."""
    await _once_there(lambda: site.is_up(0), blow, "the ResourceManager is down already")


async def _once_there(look: Callable[[], T], blow: Blow, missing: str) -> T:
    """What `look` finds, as soon as that is something. Raises NothingThere; at once, if the blow is optional."""
    given_up_s = time.monotonic() + (0.0 if blow.optional else SOMEBODY_S)
    while not (found := look()):
        if time.monotonic() >= given_up_s:
            raise NothingThere(missing)
        await asyncio.sleep(LOOK_S)
    return found


def _signal(process: psutil.Process, number: int) -> None:
    try:
        if process.is_running():
            os.kill(process.pid, number)
    except (psutil.Error, OSError):
        return


def _nodes(numbers: tuple[int, ...] | list[int]) -> str:
    return " ".join(f"nm-{number}" for number in numbers)
