"""A machine of a simulated cluster: a NodeManager and the containers that run beside it.

Containers follow the tables of emulated containers (nm.core.emulated_containers). In some of them a program runs: an
ApplicationMaster, a worker. Containers outlive a NodeManager that is killed, as processes do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol, assert_never

from msgspec.structs import replace

from nm.core.effects import LaunchContainer, ReacquireContainer, Signal, SignalProcess
from nm.core.emulated_containers import (
    EmulatedContainers,
    EmulationEvent,
    FinishMaster,
    KillMaster,
    ProgramEnded,
    StartMaster,
)
from nm.core.events import (
    ContainerExited,
    ContainerLaunched,
    ContainerSignalled,
    Event,
    HealthChecked,
    LaunchCancelled,
    ShutDown,
)
from nm.core.played_container import PlayedContainer
from nm.core.settings import CoreSettings, NodeFacts
from nm.core.stored_state import NodeRecords, RecoveredContainerStatus
from wire.retry import RetryPolicy
from yarn.containers import ContainerTokenIdentifier
from yarn.ids import ContainerId, NodeId
from yarn.machine import Tick
from yarn.nodes import NodeHealth
from yarn.states import ContainerExitStatus
from yarnling.run.trace import Trace
from yarnling.simulation.engine import Engine, Rank
from yarnling.simulation.network import Endpoint, Network
from yarnling.simulation.node_manager import HeartbeatAnswers, NodeManagerProcess
from yarnling.simulation.process import Alarm, Process

PORT_FIRST = 20_000
"""The port of a node's first NodeManager; without `same_ports` each start takes the next one."""

DISK_FULL = "1/1 local-dirs have errors: the disk is full"


class Program(Protocol):
    """The program in a container besides its table."""

    def kill(self) -> None:
        """End the program: its container has ended."""


class ContainerWatch(Protocol):
    """Learns which containers really run."""

    def started(self, machine: SimulatedMachine, launch: LaunchContainer) -> Program | None:
        """Note that a container's process has started; returns the program in it, if there is one."""

    def ended(self, container_id: ContainerId, exit_code: int | None) -> None:
        """Note the container's end; without an exit code, its machine failed."""

    def lasts_ms(self, launch: LaunchContainer) -> int | None:
        """The time a container runs whose rule leaves that open; None: until it is stopped, or its program ends."""

    def task_ms(self, container_id: ContainerId) -> int | None:
        """The time a container runs that is played; None: until it is stopped."""


class SimulatedMachine:
    """Machine `number` (from 1). `crashed` is called with the reason if its NodeManager ends by itself.

    `version` is that of its next NodeManager. One of another version than the ResourceManager's may be refused, so its
    end is expected.
    """

    def __init__(
        self,
        engine: Engine,
        network: Network,
        number: int,
        *,
        host: str,
        facts: NodeFacts,
        settings: CoreSettings,
        same_ports: bool,
        resource_manager: Endpoint,
        cluster_secret: bytes,
        retry: RetryPolicy,
        watch: ContainerWatch,
        crashed: Callable[[str], None],
        broken: Callable[[str], None],
        trace: Trace | None,
        play_heartbeat: HeartbeatAnswers | None = None,
    ) -> None:
        self.engine = engine
        self.number = number
        self.host = host
        self.is_exit_expected = False
        self.version = facts.version
        self._is_disk_full = False
        self.programs: dict[ContainerId, Program] = {}
        self._facts = facts
        self.size = facts.resource
        self._settings = settings
        self._same_ports = same_ports
        self._watch = watch
        self._crashed = crashed
        self._started_before: dict[ContainerId, None] = {}
        self._records = NodeRecords() if settings.recovery_enabled else None
        """The recovery store of the node; None without recovery."""
        self._watched: set[ContainerId] = set()
        """With recovery: the containers of which the NodeManager has the process."""
        self._exit_codes: dict[tuple[ContainerId, int], int] = {}
        """With recovery: the exit code of each launch, which outlives the NodeManager."""
        # The kernel of the machine: it is never paused, and ends only when the machine fails.
        self.kernel = Process(engine, f"machine-{number}", number)
        self.nm = NodeManagerProcess(
            engine,
            network,
            number,
            resource_manager=resource_manager,
            cluster_secret=cluster_secret,
            retry=retry,
            launch=self._handle,
            ended=self._nm_ended,
            broken=broken,
            trace=trace,
            play_heartbeat=play_heartbeat,
        )
        self._played: dict[ContainerId, PlayedContainer] = {}
        self._boot()

    def _boot(self) -> None:
        table = self._settings.emulation
        assert table is not None, "simulated containers follow a table"
        self.kernel.boot()
        self.containers = EmulatedContainers(
            table, lambda seed: self.engine.stream(f"container {seed}").random, self._watch.lasts_ms
        )
        self._alarm = Alarm(self.kernel, self.containers.next_deadline_ms, lambda: self._handle(Tick()))

    def start(self, *, empty_disk: bool = False) -> None:
        """Start the NodeManager. It ends the containers that an earlier one has left, and never starts them again.

        With an `empty_disk` it does not know which they are. With recovery it goes on with those that were stored.
        """
        self.is_exit_expected = False
        if empty_disk:
            self.lose_disk()
        self._watched.clear()
        self._end_leftovers()
        keeps_port = self._same_ports or self._records is not None
        port = PORT_FIRST if keeps_port else PORT_FIRST + self.nm.starts
        facts = replace(self._facts, version=self.version)
        before = () if self._records is not None else tuple(self._started_before)
        self.nm.start(NodeId(self.host, port), facts, self._settings, before, self._records)
        if self._is_disk_full:
            self.fill_disk(is_full=True)

    def lose_disk(self) -> None:
        """Discard the NodeManager's state: the next one does not know which containers ran before."""
        self._started_before.clear()
        if self._records is not None:
            self._records.clear()

    def fill_disk(self, *, is_full: bool) -> None:
        """Fill the disk, or free it again; the NodeManager notices at once."""
        self._is_disk_full = is_full
        report = DISK_FULL if is_full else ""
        health = NodeHealth(not is_full, report, self.engine.now_ms)
        self.nm.deliver(self.nm.starts, partial(self.nm.step, HealthChecked(health)))

    def kill(self, *, containers: bool) -> None:
        """Kill the NodeManager, which does not unregister, and with `containers` everything else on the machine."""
        self.is_exit_expected = True
        self.nm.exit()
        if containers:
            for container_id in (*self.containers.running, *self._played):
                self._program_over(container_id, None)
            self._played.clear()
            self._exit_codes.clear()
            self.kernel.exit()
            self._boot()

    def stop(self) -> None:
        """Send SIGTERM to the NodeManager."""
        self.is_exit_expected = True
        self.nm.deliver(self.nm.starts, partial(self.nm.step, ShutDown()))

    def kill_containers(self) -> None:
        for container in list(self.containers.running.values()):
            self.kill_container(container.effect.container_id)
        for container_id in tuple(self._played):
            self._signal_played(container_id, Signal.KILL)

    def _end_leftovers(self) -> None:
        """Kill the containers that an earlier NodeManager has started and not stored."""
        stored = () if self._records is None else self._records.state().containers
        launched = {
            one.token.container_id for one in stored if one.progress.status is RecoveredContainerStatus.LAUNCHED
        }
        for container_id in [one for one in self.containers.running if one not in launched]:
            self.kill_container(container_id)
        for container_id in tuple(self._played):
            self._signal_played(container_id, Signal.KILL)

    def _reacquire(self, nm_start: int, launch: LaunchContainer) -> None:
        """Send the NodeManager what it finds of a container that an earlier one has launched."""
        if nm_start != self.nm.starts:
            return
        container_id = launch.container_id
        self._watched.add(container_id)
        self._send(ContainerLaunched(container_id, launch.launch))
        if not self.containers.has(container_id):
            exit_code = self._exit_codes.get((container_id, launch.launch), ContainerExitStatus.LOST)
            self._send(ContainerExited(container_id, launch.launch, exit_code))

    def kill_container(self, container_id: ContainerId) -> None:
        """Send SIGKILL to a container's processes."""
        launch = self.containers.running[container_id].effect.launch
        self._handle(SignalProcess(container_id, launch, Signal.KILL))

    def program_ended(self, container_id: ContainerId, launch: int, exit_code: int) -> None:
        """Note that the program in a container has exited by itself."""
        self.kernel.after(0, Rank.CONTAINER, partial(self._handle, ProgramEnded(container_id, launch, exit_code)))

    @property
    def release_version(self) -> str:
        """The version of the cluster's release."""
        return self._facts.version

    def _nm_ended(self, failure: str) -> None:
        if not self.is_exit_expected and self.version == self.release_version:
            self._crashed(f"nm-{self.number} exited unexpectedly: {failure or 'it was shut down'}")
        if not self.nm.leaves_containers:
            self.kill_containers()

    def play_tasks(self, permits: Iterable[ContainerTokenIdentifier]) -> None:
        """Start tasks, whose starts arrive now. Only if the NodeManager `plays_starts`."""
        context, engine = self.nm.core.context, self.engine
        containers = [PlayedContainer(permit, context) for permit in permits]
        self.nm.play_starts(containers)
        for container in containers:
            if container.is_done:
                continue
            self._played[container.id] = container
            lasts_ms = self._watch.task_ms(container.id)
            if lasts_ms is not None:
                engine.at(engine.now_ms + lasts_ms, Rank.TIMER, self.number, partial(self._task_over, container))

    def _task_over(self, container: PlayedContainer) -> None:
        if self._played.get(container.id) is container:
            del self._played[container.id]
            self._watch.ended(container.id, 0)
            self.nm.deliver(self.nm.starts, partial(self.nm.play_end, container))

    def _signal_played(self, container_id: ContainerId, signal: Signal) -> None:
        """Deliver a signal to a task, which ends in this moment, as emulated containers do."""
        if signal is not Signal.QUIT:
            killed = signal is Signal.KILL
            exit_code = ContainerExitStatus.FORCE_KILLED if killed else ContainerExitStatus.TERMINATED
            exited = ContainerExited(container_id, self._played.pop(container_id).launches, exit_code)
            self.kernel.after(0, Rank.TIMER, partial(self._task_killed, exited))

    def _task_killed(self, exited: ContainerExited) -> None:
        self._watch.ended(exited.container_id, exited.exit_code)
        self._send(exited)

    def _handle(self, event: EmulationEvent) -> None:
        if isinstance(event, SignalProcess) and event.container_id in self._played:
            self._signal_played(event.container_id, event.signal)
            return
        if isinstance(event, ReacquireContainer):
            self.kernel.after(0, Rank.CONTAINER, partial(self._reacquire, self.nm.starts, event.effect))
            return
        if self._records is not None and isinstance(event, LaunchContainer):
            self._watched.add(event.container_id)
        for effect in self.containers.handle(event, self.engine.now_ms):
            match effect:
                case ContainerLaunched(container_id):
                    launch = self.containers.running[container_id].effect
                    self._started_before[container_id] = None
                    program = self._watch.started(self, launch)
                    if program is not None:
                        self.programs[container_id] = program
                    self._send(effect)
                case ContainerExited(container_id, exit_code=exit_code):
                    self._program_over(container_id, exit_code)
                    self._report_end(effect)
                case ContainerSignalled() | LaunchCancelled():
                    self._send(effect)
                case StartMaster() | FinishMaster() | KillMaster():
                    raise AssertionError("the tables of simulations have no AMs of their own")
                case _:
                    assert_never(effect)
        self._alarm.set()

    def _report_end(self, exited: ContainerExited) -> None:
        """Report an end to the NodeManager; with recovery, only to one that has the process."""
        if self._records is not None:
            self._exit_codes[exited.container_id, exited.launch] = exited.exit_code
        if self._records is None or exited.container_id in self._watched:
            self._send(exited)

    def _program_over(self, container_id: ContainerId, exit_code: int | None) -> None:
        program = self.programs.pop(container_id, None)
        if program is not None:
            program.kill()
        self._watch.ended(container_id, exit_code)

    def _send(self, event: Event) -> None:
        """Send an event to the NodeManager, as its own wait for the container's process does."""
        self.nm.deliver(self.nm.starts, partial(self.nm.step, event))


def running_containers(machines: Iterable[SimulatedMachine]) -> list[ContainerId]:
    """The containers that run, in the order of their ids."""
    return sorted(container_id for machine in machines for container_id in machine.containers.running)
