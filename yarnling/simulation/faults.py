"""The faults that only a simulated cluster has: of disks, clocks, versions, single writes, administrators and requests.

They are contexts like those of yarnling.faults.actions, which the simulation has as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

from msgspec.structs import replace

from nm.core.events import LimitExceeded
from rm.core.events import MoveApplication, UpdateNodeResource
from wire.protocols.tracker import ResourceTracker
from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.protocols.admin import ResourceOption
from yarn.protocols.tracker import NodeHeartbeatRequest
from yarn.resource import Resource
from yarn.settings import scheduler
from yarn.states import ContainerExitStatus
from yarnling.faults.actions import ACTIONS as COMMON_ACTIONS
from yarnling.faults.actions import FaultContext, names, picked, running_daemons
from yarnling.faults.schedule import FaultInjection
from yarnling.faults.target import RM, NoTarget
from yarnling.simulation.machine import SimulatedMachine
from yarnling.simulation.machine_clock import PPM
from yarnling.simulation.master_requests import MasterRequests
from yarnling.simulation.process import run
from yarnling.simulation.state_store import SimulatedStore
from yarnling.simulation.target import SimulatedTarget

OLD_VERSION = "3.3.6"
MORE_HEARTBEATS = 1_000_000
"""The number of heartbeats more than it that did a killed NodeManager seems to have sent."""


@asynccontextmanager
async def slow_store(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """Slow down the state store: only replies to durable requests are delayed, nothing else waits for it."""
    target.store.delay_ms = round(injection.amount("delay") * 1000)
    yield "the state store"
    target.store.delay_ms = 0


@asynccontextmanager
async def lose_store(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """Restart the ResourceManager without its state: NodeManagers then end their containers, and AMs exit."""
    numbers = running_daemons(target, injection)
    await target.kill(numbers, containers=False)
    target.cluster.rm.store = SimulatedStore()
    yield names(numbers)
    await target.start(numbers)


@asynccontextmanager
async def kill_at_write(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """Kill the ResourceManager at a write: before the data is on the disk, or before anybody is told of it."""
    numbers = running_daemons(target, injection)
    writes_left = round(injection.amount("nth"))

    def count() -> bool | None:
        nonlocal writes_left
        writes_left -= 1
        if writes_left:
            return None
        target.store.at_write = None
        target.cluster.kill_rm()
        return injection.options["write"] == "after"

    target.store.at_write = count
    yield names(numbers)
    target.store.at_write = None
    await target.start(numbers)


# A simulation can also hit a node's disk, clock and version, and deliver a message of its killed NodeManager late.


@asynccontextmanager
async def lose_node_disk(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """Restart the NodeManager without its state: it does not know the containers that ran before."""
    numbers = running_daemons(target, injection)
    await target.kill(numbers, containers=True)
    for number in numbers:
        target.cluster.machine(number).lose_disk()
    yield names(numbers)
    await target.start(injection.nodes)


@asynccontextmanager
async def late_heartbeat(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """Deliver a late heartbeat of a killed NodeManager to the RM; the next one may have the same node id.

    Its response id is one that the next one does not reach. Nothing else in a heartbeat tells the two apart: a late one
    whose response id happens to be the expected one is accepted, as by ResourceTrackerService.nodeHeartbeat.
    """
    numbers = running_daemons(target, injection)
    late: dict[int, NodeHeartbeatRequest] = {}
    for number in numbers:
        last = target.cluster.machine(number).nm.last_heartbeat
        if last is not None:
            late[number] = replace(last, response_id=last.response_id + MORE_HEARTBEATS)
    await target.kill(numbers, containers=True)
    await target.start(numbers)
    yield names(numbers)
    for number, request in late.items():
        machine = target.cluster.machine(number)
        target.cluster.network.call(
            machine.kernel,
            f"tracker-{number}",
            target.cluster.rm.served,
            ResourceTracker.node_heartbeat,
            request,
            lambda _: None,
            token=machine.nm.token_of(request.node_id),
        )


@asynccontextmanager
async def drifting_clock(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """The timers of the machine's NodeManager run too fast or too slow. What the clock gains or loses stays."""
    numbers = running_daemons(target, injection)

    def set_drift(drift_ppm: int) -> None:
        for number in injection.nodes:
            target.cluster.machine(number).nm.set_drift(drift_ppm)

    set_drift(round(injection.amount("drift") * PPM))
    yield names(numbers)
    set_drift(0)


@asynccontextmanager
async def wrong_clock(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """Set a machine's clock wrong. It is read when the NodeManager starts; only token expiry depends on it."""
    numbers = running_daemons(target, injection)

    def set_ahead(machine: SimulatedMachine, ahead_ms: int) -> None:
        machine.nm.clock_ahead_ms = ahead_ms

    ahead_ms = round(injection.amount("ahead") * 1000)
    await _restart_with(target, numbers, partial(set_ahead, ahead_ms=ahead_ms))
    yield names(numbers)
    await _restart_with(target, injection.nodes, partial(set_ahead, ahead_ms=0))


@asynccontextmanager
async def old_node(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """Restart the NodeManager with an older version; the ResourceManager may refuse it, and it then exits."""
    numbers = running_daemons(target, injection)

    def set_version(machine: SimulatedMachine, version: str | None) -> None:
        machine.version = version or machine.release_version

    await _restart_with(target, numbers, partial(set_version, version=OLD_VERSION))
    yield names(numbers)
    await _restart_with(target, injection.nodes, partial(set_version, version=None))


async def _restart_with(
    target: SimulatedTarget, numbers: Sequence[int], change: Callable[[SimulatedMachine], None]
) -> None:
    """Change the machines, and restart their NodeManagers beside the running containers."""
    for number in numbers:
        change(target.cluster.machine(number))
    await target.kill(numbers, containers=False)
    await target.start(numbers)


@asynccontextmanager
async def fail_container(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """Make a container exit with the given status."""
    machine, container_id, launch = _picked_launch(target, injection)
    machine.program_ended(container_id, launch, round(injection.amount("exit")))
    yield str(container_id)


_LIMITS = {
    "exceed-memory": (ContainerExitStatus.KILLED_EXCEEDED_PMEM, "the container is running beyond its memory limit"),
    "exceed-logs": (ContainerExitStatus.KILLED_FOR_EXCESS_LOGS, "the container is logging beyond its limit"),
}
"""{fault: exit status and diagnostics of its container}"""


@asynccontextmanager
async def exceed_limit(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """The NodeManager's monitor finds the container above its limit, and kills it."""
    machine, container_id, launch = _picked_launch(target, injection)
    exceeded = LimitExceeded(container_id, launch, *_LIMITS[injection.kind.name])
    machine.nm.deliver(machine.nm.starts, partial(machine.nm.step, exceeded))
    yield str(container_id)


def _picked_launch(target: SimulatedTarget, injection: FaultInjection) -> tuple[SimulatedMachine, ContainerId, int]:
    """The machine, the id and the launch of the container that `pick` selects. Raises NoTarget."""
    container = picked(target, injection)
    machine = target.cluster.machine(container.node)
    return machine, container.container_id, machine.containers.running[container.container_id].effect.launch


@asynccontextmanager
async def resize_container(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """Double a container's memory, if there is room, and restore its size at the end."""
    container_id = picked(target, injection).container_id
    requests = _requests_of(target, container_id.application_id)
    size = None if requests is None else requests.size_of(container_id)
    if requests is None or size is None:
        raise NoTarget(f"no ApplicationMaster has {container_id}")
    requests.resize(container_id, size + Resource(size.memory_mb, 0))
    yield str(container_id)
    requests = _requests_of(target, container_id.application_id)
    if requests is not None:
        requests.resize(container_id, size)


@asynccontextmanager
async def avoid_node(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """Make an ApplicationMaster blacklist the host that it runs on; at the end, remove the host from the blacklist."""
    master = picked(target, injection)
    host = target.cluster.machine(master.node).host
    requests = _requests_of(target, master.application_id)
    if requests is None:
        raise NoTarget(f"{master.container_id} has not registered yet")
    requests.change_blacklist(additions=(host,))
    yield str(master.container_id)
    requests = _requests_of(target, master.application_id)
    if requests is not None:
        requests.change_blacklist(removals=(host,))


def _requests_of(target: SimulatedTarget, application_id: ApplicationId) -> MasterRequests | None:
    """The requests of an application's latest ApplicationMaster; None if none runs."""
    of_attempts = {
        container_id.attempt_id: master
        for container_id, master in target.cluster.masters.items()
        if container_id.application_id == application_id
    }
    return of_attempts[max(of_attempts)].requests if of_attempts else None


@asynccontextmanager
async def roll_keys(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    numbers = running_daemons(target, injection)
    target.cluster.rm.roll_keys()
    yield names(numbers)


@asynccontextmanager
async def resize_node(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """Halve the memory of nodes; restore it at the end, which fails for a node that is no longer known."""
    _check_rm_is_up(target)
    numbers = running_daemons(target, injection)
    for number in numbers:
        size = target.cluster.machine(number).size
        _resize(target, number, Resource(size.memory_mb // 2, size.vcores))
    yield names(numbers)
    for number in injection.nodes:
        _resize(target, number, target.cluster.machine(number).size)


def _resize(target: SimulatedTarget, number: int, size: Resource) -> None:
    node_id, rm = target.cluster.machine(number).nm.node_id, target.cluster.rm
    resizing = partial(UpdateNodeResource, resources=((node_id, ResourceOption(size)),))
    rm.deliver(rm.starts, lambda: run(rm.ask(resizing), lambda _: None))


_ROOT = f"{scheduler.PREFIX}root."
_SHARES = {"good": ("60", "40"), "bad": ("60", "50")}
"""{file: capacities of the queues default and extra in percent}; those of the bad file have the sum 110."""


@asynccontextmanager
async def refresh_queues(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """Refresh the queues from a file that adds a queue, or from an invalid one, which must be refused."""
    numbers = running_daemons(target, injection)
    _read_queues(target, str(injection.options["file"]))
    yield names(numbers)


@asynccontextmanager
async def move_application(target: SimulatedTarget, injection: FaultInjection) -> AsyncIterator[str]:
    """Move an application between the queues default and extra; extra is added first."""
    _check_rm_is_up(target)
    container, rm = picked(target, injection), target.cluster.rm
    application_id = container.application_id
    _read_queues(target, "good")

    def move() -> None:
        """Move the application; a refusal because it has ended is ignored."""
        app = rm.core.context.apps.get(application_id)
        if app is not None:
            queue = "extra" if app.queue.endswith("default") else "default"
            moving = rm.ask(lambda call: MoveApplication(call, app.user, application_id, queue))
            run(moving, lambda _: None)

    rm.deliver(rm.starts, move)
    yield str(container.container_id)


def _read_queues(target: SimulatedTarget, file: str) -> None:
    default, extra = _SHARES[file]
    changes = {
        f"{_ROOT}queues": "default,extra",
        f"{_ROOT}default.capacity": default,
        f"{_ROOT}extra.capacity": extra,
        f"{_ROOT}default.maximum-capacity": "100",
    }

    def done(outcome: object) -> None:
        is_refused = isinstance(outcome, YarnException)
        assert is_refused == (file == "bad"), f"refreshQueues with a {file} file: {outcome}"

    target.cluster.rm.refresh_queues(target.cluster.conf.overridden(changes, "refreshQueues"), done)


def _check_rm_is_up(target: SimulatedTarget) -> None:
    """Raises NoTarget if the ResourceManager is down."""
    if not target.is_up(RM):
        raise NoTarget("the ResourceManager is already down")


ACTIONS: Mapping[str, Callable[[SimulatedTarget, FaultInjection], FaultContext]] = {
    **COMMON_ACTIONS,
    "lose-store": lose_store,
    "kill-rm-at-write": kill_at_write,
    "slow-store": slow_store,
    "lose-node-disk": lose_node_disk,
    "late-heartbeat": late_heartbeat,
    "wrong-clock": wrong_clock,
    "drifting-clock": drifting_clock,
    "old-node": old_node,
    "fail-container": fail_container,
    "exceed-memory": exceed_limit,
    "exceed-logs": exceed_limit,
    "resize-container": resize_container,
    "avoid-node": avoid_node,
    "roll-keys": roll_keys,
    "refresh-queues": refresh_queues,
    "move-application": move_application,
    "resize-node": resize_node,
}
"""{kind of fault: what it does}, for all of yarnling.faults.kinds.KINDS."""
