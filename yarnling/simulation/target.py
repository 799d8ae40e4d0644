"""A simulated cluster as the target of faults (yarnling.faults.target); its methods return at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from yarnling.cluster.network import NetworkFault
from yarnling.faults.history import ProcessRole, ProcessSpan
from yarnling.faults.target import RM
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.process import Process
from yarnling.simulation.state_store import SimulatedStore

T = TypeVar("T")


class SimulatedTarget:
    """A simulated cluster as the target of faults; counts how many faults pause each daemon."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self._paused: Counter[int] = Counter()

    def is_up(self, number: int) -> bool:
        return self._daemon(number).is_up

    async def kill(self, numbers: Sequence[int], *, containers: bool) -> None:
        for number in numbers:
            if number == RM:
                self.cluster.kill_rm()
            else:
                self.cluster.machine(number).kill(containers=containers)

    async def stop(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.cluster.machine(number).stop()

    async def start(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            if number == RM:
                self.cluster.start_rm()
            else:
                self.cluster.start_node(number)

    def pause(self, number: int) -> None:
        self._paused[number] += 1
        if number == RM:
            self.cluster.pause_rm()
        else:
            self._daemon(number).pause()

    def resume(self, number: int) -> None:
        self._paused[number] -= 1
        if self._paused[number] > 0:
            return
        if number == RM:
            self.cluster.resume_rm()
        else:
            self._daemon(number).resume()

    async def decommission(self, numbers: Sequence[int], timeout_s: int) -> None:
        for number in numbers:
            self.cluster.machine(number).is_exit_expected = True
        self.cluster.leaving |= set(numbers)
        self.cluster.refresh_leaving(timeout_s)

    async def recommission(self, numbers: Sequence[int]) -> None:
        self.cluster.leaving -= set(numbers)
        self.cluster.refresh_leaving(0)

    async def fill_disk(self, number: int) -> None:
        self._set_disk(number, is_full=True)

    def empty_disk(self, number: int) -> None:
        self._set_disk(number, is_full=False)

    def _set_disk(self, number: int, *, is_full: bool) -> None:
        if number == RM:
            self.store.is_full = is_full
        else:
            self.cluster.machine(number).fill_disk(is_full=is_full)

    def impair(self, key: int, links: Sequence[str], fault: NetworkFault) -> None:
        for name in links:
            self.cluster.network.link(name).inject(key, fault)

    def mend(self, key: int, links: Sequence[str]) -> None:
        for name in links:
            self.cluster.network.link(name).remove(key)

    def running(self, *roles: ProcessRole) -> list[ProcessSpan]:
        return self.cluster.recorder.running(*roles)

    async def kill_container(self, container: ProcessSpan) -> None:
        self.cluster.machine(container.node).kill_container(container.container_id)

    async def pause_container(self, container: ProcessSpan) -> None:
        self.cluster.masters[container.container_id].pause()

    def resume_container(self, container: ProcessSpan) -> None:
        master = self.cluster.masters.get(container.container_id)
        if master is not None:
            master.resume()

    @property
    def store(self) -> SimulatedStore:
        """The disk of the state store."""
        assert self.cluster.rm.store is not None, "chaos plans enable recovery"
        return self.cluster.rm.store

    def _daemon(self, number: int) -> Process:
        return self.cluster.rm if number == RM else self.cluster.machine(number).nm


def at_once(step: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing, without an event loop."""
    try:
        step.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("a fault of a simulated cluster waits for nothing")
