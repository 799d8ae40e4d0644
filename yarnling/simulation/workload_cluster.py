"""A simulated cluster that runs a workload: AMs that run groups of tasks, on machines with labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from am.core.actions import Application
from nm.core.effects import LaunchContainer
from nm.core.emulation import EmulationStage, EmulationTable, Match, Rule
from rm.core.effects import Preempted
from yarn.configuration import Configuration
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import StateChanged
from yarn.nodes import NodeLabel
from yarn.settings.resourcemanager import NM_HEARTBEAT_INTERVAL
from yarnling.faults.history import History
from yarnling.run.trace import Trace
from yarnling.simulation.application_master import AMConduct, ApplicationMasterProcess
from yarnling.simulation.cluster import DAEMON_START_MS, SimulatedCluster
from yarnling.simulation.conditions import STEADY
from yarnling.simulation.engine import Engine, Rank
from yarnling.simulation.machine import Program, SimulatedMachine
from yarnling.simulation.task_groups import TASK_RULE
from yarnling.simulation.workload import AM_RULE
from yarnling.workload.model import WorkloadNode

TABLE = EmulationTable(
    (Rule(AM_RULE, Match(is_master=True), (EmulationStage(None),)), Rule(TASK_RULE, stages=(EmulationStage(None),))),
)
"""AMs run until they end themselves, and tasks for as long as their applications say."""


class RunningApplication(Protocol):
    """A submitted application of the workload."""

    @property
    def conduct(self) -> AMConduct:
        """The behaviour of its AMs."""
        ...

    def core(self, wake_at: Callable[[int], None], *, check_invariants: bool) -> Application:
        """The program of an attempt of its AM that starts now. `wake_at`: have it look at the time at that time."""
        ...

    def duration_ms(self, container_id: ContainerId) -> int | None:
        """The time the task of a container runs; None: until it is stopped."""

    def container_ended(self, container_id: ContainerId, exit_code: int | None) -> None:
        """Note that a container's process has ended."""

    def preempted(self, preemption: Preempted) -> None:
        """Note that the ResourceManager has decided to preempt a container."""

    def changed(self, change: StateChanged) -> None:
        """Note a state change of the application, or of one of its attempts, in the ResourceManager."""


class WorkloadCluster(SimulatedCluster):
    """A simulated cluster that runs a workload.

    `joining_later`: the hosts that `start` leaves out (yarnling.simulation.node_events). `node_changed`: called with
    the host and the new state of a node in the ResourceManager. `applications`: those that have been submitted.
    `crashed`: why NodeManagers have ended by themselves.
    """

    def __init__(
        self,
        engine: Engine,
        conf: Configuration,
        nodes: Sequence[WorkloadNode],
        *,
        trace: Trace | None = None,
        all_heartbeats: bool = False,
        played: bool = False,
    ) -> None:
        history = History()
        super().__init__(
            engine,
            conf,
            nodes,
            TABLE,
            history,
            directory=Path(),
            conditions=STEADY,
            encode=False,
            all_heartbeats=all_heartbeats,
            played=played,
            trace=trace,
        )
        self.joining_later: frozenset[str] = frozenset()
        self.applications: dict[ApplicationId, RunningApplication] = {}
        self.crashed = history.crashed
        self.node_changed: Callable[[str, str], None] = lambda _host, _state: None
        self._current: dict[ApplicationAttemptId, ApplicationMasterProcess] = {}
        self._nodes = nodes

    def start(self) -> None:
        """Start the ResourceManager, label the nodes, and start the NodeManagers."""
        for until_ms in self.starting():
            self.engine.run(until_ms)

    def starting(self) -> Iterator[int]:
        """Like `start`, step by step: the caller runs the engine until each time that is yielded."""
        self.start_rm()
        yield self.engine.now_ms + DAEMON_START_MS
        self._label_nodes()
        self.start_machines()

    def start_machines(self) -> None:
        """Start the NodeManagers at random moments of one heartbeat interval: so another seed is another run."""
        draw = self.engine.stream("starts of NodeManagers")
        interval_ms = NM_HEARTBEAT_INTERVAL.of(self.conf)
        for machine in self.machines:
            delay_ms = draw.randrange(interval_ms)
            if machine.host not in self.joining_later:
                self._later(delay_ms, machine.number, machine.start)

    def _label_nodes(self) -> None:
        labels = dict.fromkeys(node.label for node in self._nodes if node.label)
        if not labels:
            return
        of_hosts = {node.host: node.label for node in self._nodes if node.label}
        self.label_nodes(tuple(NodeLabel(label) for label in labels), of_hosts)

    def started(self, machine: SimulatedMachine, launch: LaunchContainer) -> Program | None:
        return self.start_master(machine, launch) if launch.emulation == AM_RULE else None

    def ended(self, container_id: ContainerId, exit_code: int | None) -> None:
        master = self.masters.pop(container_id, None)
        if master is not None:
            del self._current[master.attempt_id]
        self.applications[container_id.application_id].container_ended(container_id, exit_code)

    def lasts_ms(self, launch: LaunchContainer) -> int | None:
        if launch.emulation == AM_RULE:
            return None
        return self.task_ms(launch.container_id)

    def task_ms(self, container_id: ContainerId) -> int | None:
        return self.applications[container_id.application_id].duration_ms(container_id)

    def application(self, attempt_id: ApplicationAttemptId) -> Application:
        master = self._current[attempt_id]

        def wake_at(time_ms: int) -> None:
            master.after(max(0, time_ms - self.engine.now_ms), Rank.TIMER, master.wake)

        running = self.applications[attempt_id.application_id]
        return running.core(wake_at, check_invariants=self.am_settings.check_invariants)

    def conduct_of(self, application_id: ApplicationId) -> AMConduct:
        return self.applications[application_id].conduct

    def start_master(self, machine: SimulatedMachine, launch: LaunchContainer) -> Program:
        program = super().start_master(machine, launch)
        self._current[launch.container_id.attempt_id] = self.masters[launch.container_id]
        return program

    def preempted(self, preemption: Preempted) -> None:
        self.applications[preemption.container_id.application_id].preempted(preemption)

    def changed(self, change: StateChanged) -> None:
        if change.kind == "RMApp":
            application_id = ApplicationId.parse(change.subject)
        elif change.kind == "RMAppAttempt":
            application_id = ApplicationAttemptId.parse(change.subject).application_id
        elif change.kind == "RMNode":
            self.node_changed(NodeId.parse(change.subject).host, change.target)
            return
        else:
            return
        self.applications[application_id].changed(change)
