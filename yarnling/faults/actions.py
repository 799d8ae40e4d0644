"""Inject each kind of fault into a cluster, of processes or simulated, and undo it.

An action is a context: entering it injects the fault and returns the name of what was hit, for people; leaving it
undoes the fault. Entering raises NoTarget if nothing can be hit now. An action awaits only methods of its target, and
those of a simulated cluster return at once; so the simulation enters and leaves the same contexts without an event
loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from yarnling.cluster.network import NetworkFault
from yarnling.faults.history import ProcessRole, ProcessSpan
from yarnling.faults.kinds import KINDS, FaultScope
from yarnling.faults.schedule import FaultInjection
from yarnling.faults.target import RM, NoTarget, Target, no_target

FaultContext: TypeAlias = AbstractAsyncContextManager[str]
"""A fault that is injected for as long as its context lasts."""


@asynccontextmanager
async def kill(target: Target, injection: FaultInjection) -> AsyncIterator[str]:
    numbers = running_daemons(target, injection)
    await target.kill(numbers, containers=bool(injection.options.get("containers", True)))
    yield names(numbers)
    await target.start(daemons(injection))


@asynccontextmanager
async def stop(target: Target, injection: FaultInjection) -> AsyncIterator[str]:
    numbers = running_daemons(target, injection)
    await target.stop(numbers)
    yield names(numbers)
    await target.start(daemons(injection))


@asynccontextmanager
async def pause(target: Target, injection: FaultInjection) -> AsyncIterator[str]:
    numbers = running_daemons(target, injection)
    for number in numbers:
        target.pause(number)
    yield names(numbers)
    for number in numbers:
        target.resume(number)


@asynccontextmanager
async def decommission(target: Target, injection: FaultInjection) -> AsyncIterator[str]:
    numbers = running_daemons(target, injection)
    await target.decommission(numbers, round(injection.amount("timeout")))
    yield names(numbers)
    await target.recommission(injection.nodes)
    await target.start(injection.nodes)


@asynccontextmanager
async def fill_disk(target: Target, injection: FaultInjection) -> AsyncIterator[str]:
    """A node becomes unhealthy, and gets no containers until there is room again.

    A ResourceManager must not accept what it cannot store: it refuses new applications, and running ones continue.
    """
    for number in daemons(injection):
        await target.fill_disk(number)
    yield names(injection.nodes) if injection.nodes else "the state store"
    for number in daemons(injection):
        target.empty_disk(number)


@asynccontextmanager
async def kill_container(target: Target, injection: FaultInjection) -> AsyncIterator[str]:
    container = picked(target, injection)
    await target.kill_container(container)
    yield str(container.container_id)


@asynccontextmanager
async def pause_container(target: Target, injection: FaultInjection) -> AsyncIterator[str]:
    container = picked(target, injection)
    await target.pause_container(container)
    yield str(container.container_id)
    target.resume_container(container)


@asynccontextmanager
async def impair(target: Target, injection: FaultInjection) -> AsyncIterator[str]:
    links = link_names(injection)
    target.impair(injection.number, links, network_fault(injection))
    yield names(injection.nodes) if injection.nodes else "clients"
    target.mend(injection.number, links)


ACTIONS: Mapping[str, Callable[[Target, FaultInjection], FaultContext]] = {
    "kill-node": kill,
    "stop-node": stop,
    "pause-node": pause,
    "decommission-node": decommission,
    "full-disk": fill_disk,
    "kill-rm": kill,
    "pause-rm": pause,
    "full-store": fill_disk,
    "kill-master": kill_container,
    "pause-master": pause_container,
    "kill-container": kill_container,
    **{kind.name: impair for kind in KINDS.values() if kind.links},
}
"""{kind of fault: what it does}, for all kinds that processes can have."""


def daemons(injection: FaultInjection) -> Sequence[int]:
    """The numbers of the daemons that the fault concerns."""
    return injection.nodes or (RM,)


def running_daemons(target: Target, injection: FaultInjection) -> list[int]:
    """The daemons of the fault that are up. Raises NoTarget if none is."""
    running = [number for number in daemons(injection) if target.is_up(number)]
    if not running:
        raise NoTarget(f"{names(injection.nodes) or 'the ResourceManager'} is already down")
    return running


def picked(target: Target, injection: FaultInjection) -> ProcessSpan:
    """The running AM or container that `pick` selects. Raises NoTarget."""
    is_master = injection.kind.scope is FaultScope.MASTER
    roles = (ProcessRole.MASTER,) if is_master else (ProcessRole.CONTAINER, ProcessRole.TASK)
    running = target.running(*roles)
    if not running:
        raise no_target(*roles)
    return running[min(int(injection.pick * len(running)), len(running) - 1)]


def names(numbers: Iterable[int]) -> str:
    """The names of daemons, for people."""
    return " ".join("rm" if number == RM else f"nm-{number}" for number in numbers)


def link_names(injection: FaultInjection) -> tuple[str, ...]:
    """The links of the network (yarnling.cluster.network) that the fault impairs."""
    links = injection.kind.links
    if injection.kind.scope is not FaultScope.NODE:
        return links
    return tuple(f"{link}-{number}" for number in injection.nodes for link in links)


def network_fault(injection: FaultInjection) -> NetworkFault:
    """The fault of the links: a partition lets nothing pass, in both directions or in one; or they are slow."""
    if injection.kind.name == "slow-node":
        return NetworkFault(
            delay_s=injection.amount("delay"),
            loss=injection.amount("loss"),
            rate=injection.amount("kilobytes") * 1024,
            breaks=injection.amount("breaks"),
        )
    lost, how = injection.options.get("lost", "both"), injection.options.get("how", "silent")
    return NetworkFault(
        requests=lost != "replies" and how != "reset",
        replies=lost != "requests" and how != "reset",
        forgets=how == "lost",
        reset=how == "reset",
    )
