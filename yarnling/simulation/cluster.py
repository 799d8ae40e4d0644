"""A simulated cluster: one ResourceManager, machines with NodeManagers and containers, clients, and their network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from am.core.actions import Application
from am.programs.custom.core import TASK_NUMBER
from am.programs.gang.application_master import read_member
from nm.core.effects import LaunchContainer
from nm.core.emulation import EmulationTable
from nm.core.settings import NodeFacts, core_settings
from rm.core.effects import Preempted
from rm.core.events import AddClusterNodeLabels, RefreshNodes, ReplaceLabelsOnNodes
from rm.core.host_lists import HostLists
from rm.core.reports.applications import application_state
from wire.files.topology import Topology
from wire.retry import RetryPolicy
from wire.tokens import SECRET_BYTES, ClientTokenSecretManager
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import StateChanged
from yarn.nodes import NodeLabel
from yarn.resource import Resource
from yarn.settings import nodemanager, resourcemanager
from yarn.settings.release import RELEASE
from yarn.states import DecommissionType
from yarnling.faults.history import SILENT, History, ProcessRole
from yarnling.faults.plan import WorkProgram
from yarnling.run.trace import Trace
from yarnling.simulation.application_master import AMConduct, AMSettings, ApplicationMasterProcess
from yarnling.simulation.conditions import USUAL, Conditions
from yarnling.simulation.engine import Action, Engine, Rank
from yarnling.simulation.machine import Program, SimulatedMachine
from yarnling.simulation.mapreduce import TASK_RULE, SimulatedTask
from yarnling.simulation.network import Endpoint, Network
from yarnling.simulation.played_calls import MasterCalls
from yarnling.simulation.process import run
from yarnling.simulation.quiet_heartbeats import QuietHeartbeats, leave_out_quiet
from yarnling.simulation.recorder import HistoryWriter
from yarnling.simulation.resource_manager import ResourceManagerProcess
from yarnling.simulation.workload import AM_RULES, WORKER_RULE, RunningWork, Worker
from yarnling.workload.model import WorkloadNode

DAEMON_START_MS = 300
"""From the start of a daemon's process to its first step."""
ANY_PORT = 0
"""In a node's id: all NodeManagers of the host."""


class ClusterShape(Struct, frozen=True):
    """The numbers of machines and racks, and what each machine offers to containers."""

    nodes: int
    racks: int = 1
    resource: Resource = Resource(8192, 8)

    def machines(self) -> tuple[WorkloadNode, ...]:
        """The machines, each with its host, its size and its rack."""
        return tuple(
            WorkloadNode(f"n{number:05}", self.resource, f"/rack-{(number - 1) % self.racks + 1}")
            for number in range(1, self.nodes + 1)
        )


class InvariantBroken(Exception):
    """Ends the run: the core of a host has reported a violated invariant."""


class SimulatedCluster:
    """The hosts of one run. Nothing has started until `start`. `directory`: for the files of map-reduce jobs.

    `all_heartbeats`: False leaves out those that would change nothing, and needs steady `conditions`. `played`: what
    is known beforehand happens without its messages and its steps (yarnling.simulation.played_calls); that needs steady
    conditions, too, and a ResourceManager that neither fails nor stores anything.
    """

    def __init__(
        self,
        engine: Engine,
        conf: Configuration,
        machines: Sequence[WorkloadNode],
        table: EmulationTable,
        history: History,
        *,
        directory: Path,
        same_ports: bool = True,
        conditions: Conditions = USUAL,
        encode: bool = True,
        all_heartbeats: bool = True,
        played: bool = False,
        trace: Trace | None = None,
    ) -> None:
        self.engine = engine
        self.conf = conf
        self.directory = directory
        self.recorder = HistoryWriter(engine, history)
        self.network = Network(engine, conditions, encode=encode)
        self.works: dict[ApplicationId, RunningWork] = {}
        self.masters: dict[ContainerId, ApplicationMasterProcess] = {}
        self.leaving: set[int] = set()
        self._task_of: dict[ContainerId, int] = {}
        self._masters_started = 0
        self._trace = trace
        self.is_played = played
        self.am_settings = AMSettings.read(conf)
        secret = engine.stream("secret of the cluster").randbytes(SECRET_BYTES)
        self.client_token = ClientTokenSecretManager(secret).create()
        self._topology = Topology({machine.host: machine.rack for machine in machines})
        self._numbers = {machine.host: number for number, machine in enumerate(machines, 1)}
        self.rm = ResourceManagerProcess(
            engine,
            self.network,
            conf,
            cluster_secret=secret,
            topology=self._topology,
            node_link=self.node_link,
            changed=self.changed,
            preempted=self.preempted,
            broken=partial(self._broken, "rm"),
            trace=trace,
        )
        retry = RetryPolicy.read(conf, nodemanager.NM_CONNECT_MAX_WAIT, nodemanager.NM_CONNECT_RETRY_INTERVAL)
        settings, version = core_settings(conf, 0, table), RELEASE.of(conf).version
        if played:
            # There are no logs. Timers to delete them hours later would take most of the memory of a long run.
            settings = replace(settings, log_retain_ms=0)
        self.machines = [
            SimulatedMachine(
                engine,
                self.network,
                number,
                host=machine.host,
                facts=NodeFacts(machine.resource, machine.resource, version=version),
                settings=settings,
                same_ports=same_ports,
                resource_manager=self.rm.served,
                cluster_secret=secret,
                retry=retry,
                watch=self,
                crashed=history.crashed.append,
                broken=partial(self._broken, f"nm-{number}"),
                trace=trace,
                play_heartbeat=self.rm.play_heartbeat if played else None,
            )
            for number, machine in enumerate(machines, 1)
        ]
        self.quiet_heartbeats: QuietHeartbeats | None = None
        if not all_heartbeats:
            self.quiet_heartbeats = leave_out_quiet(
                self.network,
                self.rm,
                [machine.nm for machine in self.machines],
                conf,
            )

    def machine(self, number: int) -> SimulatedMachine:
        return self.machines[number - 1]

    def _machine_of(self, node_id: NodeId) -> SimulatedMachine:
        return self.machine_on(node_id.host)

    def machine_on(self, host: str) -> SimulatedMachine:
        return self.machine(self._numbers[host])

    def start(self) -> None:
        """Start the ResourceManager, and then the NodeManagers, spread over one heartbeat interval."""
        self.start_rm()
        self.start_machines()

    def label_nodes(self, labels: tuple[NodeLabel, ...], of_hosts: Mapping[str, str]) -> None:
        """Add labels to the cluster, and put hosts into their partitions, {host: label}. The ResourceManager runs."""
        of_nodes = tuple((NodeId(host, ANY_PORT), (label,)) for host, label in of_hosts.items())
        run(self.rm.ask(lambda call: AddClusterNodeLabels(call, labels)), _check)
        run(self.rm.ask(lambda call: ReplaceLabelsOnNodes(call, of_nodes)), _check)

    def start_machines(self) -> None:
        """Start the NodeManagers, spread over one heartbeat interval."""
        interval_ms = resourcemanager.NM_HEARTBEAT_INTERVAL.of(self.conf)
        for index, machine in enumerate(self.machines):
            delay_ms = DAEMON_START_MS + index * interval_ms // len(self.machines)
            self._later(delay_ms, machine.number, machine.start)

    def start_rm(self) -> None:
        """Start the ResourceManager, unless it runs."""
        self._later(DAEMON_START_MS, 0, self._start_rm_now)

    def _start_rm_now(self) -> None:
        if not self.rm.is_up:
            self.rm.excluded = tuple(self.machine(number).host for number in sorted(self.leaving))
            self.rm.start()
            self.recorder.changed("rm", "ANSWERS")

    def kill_rm(self) -> None:
        self.rm.exit()
        self.recorder.changed("rm", SILENT)

    def pause_rm(self) -> None:
        self.rm.pause()
        self.recorder.changed("rm", SILENT)

    def resume_rm(self) -> None:
        if self.rm.is_paused:
            self.recorder.changed("rm", "ANSWERS")
            self.rm.resume()

    def start_node(self, number: int) -> None:
        """Start a NodeManager, unless it runs or is being decommissioned."""
        self._later(DAEMON_START_MS, number, partial(self._start_node_now, number))

    def _start_node_now(self, number: int) -> None:
        machine = self.machine(number)
        if not machine.nm.is_up and number not in self.leaving:
            machine.start()

    def refresh_leaving(self, timeout_s: int) -> None:
        """Make the ResourceManager reread the list of nodes to decommission (refreshNodes); it may be down."""
        self.rm.excluded = excluded = tuple(self.machine(number).host for number in sorted(self.leaving))
        hosts = HostLists(excluded=tuple((host, None) for host in excluded))
        self.refresh_nodes(hosts, DecommissionType.GRACEFUL, timeout_s)

    def refresh_nodes(self, hosts: HostLists, kind: DecommissionType, timeout_s: int) -> None:
        """Make the ResourceManager read these lists (refreshNodes), unless it is down."""

        def refresh() -> None:
            refreshing = self.rm.ask(lambda call: RefreshNodes(call, hosts, kind, timeout_s))
            run(refreshing, lambda _: None)

        self.rm.deliver(self.rm.starts, refresh)

    def _later(self, delay_ms: int, host: int, action: Action) -> None:
        self.engine.at(self.engine.now_ms + delay_ms, Rank.FAULT, host, action)

    def node_link(self, node_id: NodeId) -> tuple[str, Endpoint]:
        """The link to a NodeManager, and who answers there."""
        machine = self._machine_of(node_id)
        return f"node-{machine.number}", partial(machine.nm.served, node_id)

    # Events (ContainerWatch, and the state changes of the ResourceManager)

    def started(self, machine: SimulatedMachine, launch: LaunchContainer) -> Program | None:
        container_id = launch.container_id
        running = self.works[container_id.application_id]
        if launch.emulation in AM_RULES:
            self.recorder.started(container_id, ProcessRole.MASTER, machine.number)
            return self.start_master(machine, launch)
        if launch.emulation == WORKER_RULE:
            task_ms = round(running.work.seconds * 1000)
            return Worker(self.engine, self.recorder, running.spool, container_id, machine.number, task_ms)
        if launch.emulation == TASK_RULE:
            assert running.job is not None, "only the AM of a map-reduce job starts such tasks"
            return SimulatedTask(self.engine, running.job, machine, launch)
        if running.work.program is WorkProgram.CUSTOM:
            self._task_of[container_id] = task = int(launch.environment[TASK_NUMBER])
            self.recorder.started(container_id, ProcessRole.TASK, machine.number, task)
            return None
        member = read_member(launch.environment)
        self.recorder.started(container_id, ProcessRole.CONTAINER, machine.number, member=member)
        return None

    def ended(self, container_id: ContainerId, exit_code: int | None) -> None:
        self.masters.pop(container_id, None)
        self.recorder.ended(container_id, exit_code, self._task_of.pop(container_id, 0))

    def lasts_ms(self, launch: LaunchContainer) -> int | None:
        """The AMs, services and workers of plans run until they end themselves, or are stopped."""
        return None

    def task_ms(self, container_id: ContainerId) -> int | None:
        """Tasks are played in clusters that run workloads."""
        return None

    def application(self, attempt_id: ApplicationAttemptId) -> Application:
        """The program of an AM that starts now."""
        running = self.works[attempt_id.application_id]
        check_invariants = self.am_settings.check_invariants
        return running.application(attempt_id, self.recorder, check_invariants=check_invariants)

    def conduct_of(self, application_id: ApplicationId) -> AMConduct:
        """The behaviour of an application's AMs; yarnling's own send only what the ResourceManager cannot know."""
        return AMConduct()

    def start_master(self, machine: SimulatedMachine, launch: LaunchContainer) -> Program:
        """Start the AM in its container."""
        self._masters_started += 1
        master = ApplicationMasterProcess(
            self.engine,
            self.network,
            machine.number,
            launch,
            partial(self.application, launch.container_id.attempt_id),
            settings=self.am_settings,
            topology=self._topology,
            resource_manager=self.rm.served,
            node_link=self.node_link,
            ended=partial(machine.program_ended, launch.container_id, launch.launch),
            trace=self._trace,
            lane=self._masters_started,
            conduct=self.conduct_of(launch.container_id.application_id),
        )
        if self.quiet_heartbeats is not None:
            master.quiet_heartbeats = self.quiet_heartbeats.of_masters
        if self.is_played:
            master.played = MasterCalls(master, self.network, self.rm, self._machine_of, self.node_link)
        self.masters[launch.container_id] = master
        return master

    def preempted(self, preemption: Preempted) -> None:
        """Note that the ResourceManager asks for a container back, or kills it."""

    def changed(self, change: StateChanged) -> None:
        """Note a state change in the ResourceManager."""
        subject = change.subject
        match change.kind:
            case "RMNode":
                node_id = NodeId.parse(subject)
                machine = self._machine_of(node_id)
                # A node that came back with another port has two RMNodes; only that of the running process counts.
                if machine.nm.node_id == node_id:
                    self.recorder.changed(f"nm-{machine.number}", change.target)
            case "RMApp":
                self._app_changed(ApplicationId.parse(subject))
            case "RMAppAttempt":
                self._app_changed(ApplicationAttemptId.parse(subject).application_id)
            case _:
                pass

    def _app_changed(self, application_id: ApplicationId) -> None:
        app = self.rm.core.context.apps.get(application_id)
        if app is not None:
            attempt = app.current_attempt.attempt_id.attempt if app.current_attempt is not None else 0
            self.recorder.changed(str(application_id), application_state(app).name, attempt)

    def _broken(self, host: str, violation: str) -> None:
        raise InvariantBroken(f"{host}: {violation}")


def _check(outcome: object) -> None:
    """Raise the error that an administrator's call ended with."""
    if isinstance(outcome, YarnException):
        raise outcome
