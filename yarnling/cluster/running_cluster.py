"""The operations on a cluster that is up: run work, look at its parts, change its size, inject faults, wait."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar, overload

from am.client.submission import Submission
from yarn.applications import ApplicationReport, ContainerReport
from yarn.configuration import Configuration
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationId, ContainerId, as_id
from yarn.java.values import INT_MAX
from yarn.nodes import NodeReport
from yarn.protocols.inspection import ContainerExplanation, Explanation
from yarn.settings import resourcemanager, scaled
from yarn.states import FINAL_APPLICATION_STATES, NodeState
from yarnling.cluster import conditions, hadoop_clients
from yarnling.cluster.client import Client
from yarnling.cluster.conditions import WAIT_S
from yarnling.cluster.configuration import ClusterConfiguration, node_sizes
from yarnling.cluster.daemons import ClusterDaemons
from yarnling.cluster.directory import ClusterDirectory
from yarnling.cluster.jobs import Job, JobResult, run_job
from yarnling.cluster.launcher import Daemon
from yarnling.cluster.network import NetworkFault, ProxyNetwork
from yarnling.cluster.nodes import ExcludedHosts, Node, Report, decommission
from yarnling.cluster.processes import kill
from yarnling.cluster.resource_managers import active_of
from yarnling.cluster.unmanaged_am import NAME, UnmanagedAM, unmanaged_am

T = TypeVar("T")


class Explanations(tuple[Explanation, ...]):
    """A tuple of explanations that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        from yarnling.cluster.notebook import explanations_html

        return explanations_html(self)


class RunningCluster:
    """The methods of a LocalCluster, except those that start and stop it. Ids may be given as records or as text."""

    def __init__(self, daemons: ClusterDaemons) -> None:
        self._daemons = daemons
        self._clients: dict[str, Client] = {}
        self._network: ProxyNetwork | None = None

    async def run(
        self,
        command: str,
        containers: int = 1,
        *,
        memory_mb: int = 128,
        queue: str = "default",
        timeout_s: float | None = None,
    ) -> JobResult:
        """Run a shell command line in a number of containers, and wait until all have ended.

        If that takes longer than `timeout_s`, the application is killed and WaitTimeout is raised.
        """
        return await run_job(self.client, Job(command, containers, memory_mb, queue=queue), timeout_s)

    async def submit(self, job: str | Job | Submission, *, user: str = "") -> ApplicationReport:
        """Submit a shell command line, a Job, or another application (am.programs). Returns when it is accepted."""
        if isinstance(job, str):
            job = Job(job)
        return await self.client_of(user).start(job.submission() if isinstance(job, Job) else job)

    async def explain(self, *app_ids: ApplicationId | str) -> Explanations:
        """Explain why the resource requests of these applications are not satisfied, and which changes would help.

        Without ids, all applications with unsatisfied requests are explained, oldest first, without changes.
        """
        if app_ids:
            return Explanations([await self.client.explain(app_id, what_if=True) for app_id in app_ids])
        reports = sorted(await self.client.applications(), key=lambda report: report.application_id)
        live = [report.application_id for report in reports if report.state not in FINAL_APPLICATION_STATES]
        explanations = [await self.client.explain(app_id) for app_id in live]
        return Explanations(explanation for explanation in explanations if explanation.asks)

    async def explain_container(self, container_id: ContainerId | str) -> ContainerExplanation:
        """Explain why a container is on its node, or was preempted; see `Client.explain_container`."""
        return await self.client.explain_container(container_id)

    async def html(self) -> str:
        """Nodes, queues and applications, and why applications wait, as HTML for notebooks."""
        from yarnling.cluster.notebook import cluster_html

        shown = None if self.rm.exit_status is not None else await cluster_html(self.client)
        return shown or self.processes_html()

    def processes_html(self) -> str:
        """The processes of the cluster, as HTML for notebooks."""
        from yarnling.cluster.notebook import process_html

        return process_html(self.nodes, rm_runs=self.rm.exit_status is None)

    def unmanaged_am(
        self, queue: str = "default", *, name: str = NAME, user: str = ""
    ) -> AbstractAsyncContextManager[UnmanagedAM]:
        """An ApplicationMaster in this process, to be used as `async with cluster.unmanaged_am() as am`."""
        return unmanaged_am(self.addresses, self.configuration, queue=queue, name=name, user=user)

    @property
    def client(self) -> Client:
        """A client that acts as the user who runs this process."""
        return self.client_of("")

    def client_of(self, user: str) -> Client:
        """A client that acts as `user`, or as the user who runs this process if `user` is "".

        The client is closed with the cluster.
        """
        daemons = self._daemons
        assert daemons.launcher
        if user not in self._clients:
            self._clients[user] = Client(
                daemons.addresses,
                user=user,
                conf=self.configuration,
                log_dirs=daemons.log_dirs,
                staging_root=daemons.directory.staging,
            )
        return self._clients[user]

    @property
    def directory(self) -> ClusterDirectory:
        """The directory with the cluster's files."""
        return self._daemons.directory

    @property
    def configuration(self) -> Configuration:
        """The configuration that all daemons share; `fast` has been applied to its intervals."""
        return scaled(self._daemons.configuration)

    @property
    def composed(self) -> ClusterConfiguration:
        """The configuration without the cluster's places, and what is said about it; also before the cluster starts."""
        return self._daemons.composed

    @property
    def warnings(self) -> tuple[str, ...]:
        """Requests of the configuration that yarnling does not serve, and what is probably a mistake in it."""
        return self.composed.report.warnings

    @property
    def hadoop_environment(self) -> dict[str, str]:
        """{variable: value} by which Hadoop's own clients find the cluster: HADOOP_CONF_DIR and YARN_CONF_DIR.

        Raises InvalidArgumentException if the cluster does not answer them.
        """
        if not hadoop_clients.are_served(self._daemons.configuration):
            raise InvalidArgumentException(
                "the cluster does not answer Hadoop's own clients (start it with hadoop=True)"
            )
        return hadoop_clients.client_environment(self.directory.conf)

    @property
    def addresses(self) -> dict[str, str]:
        """{configuration key: host:port} of the ResourceManager's services."""
        return dict(self._daemons.addresses)

    @property
    def rm(self) -> Daemon:
        """The process of the ResourceManager."""
        return self._daemons.rm

    @property
    def rms(self) -> list[Daemon]:
        """The processes of all ResourceManagers, including those that have ended; usually there is one."""
        return self._daemons.rms

    async def active_rm(self) -> str:
        """The id of the active one of several ResourceManagers; "" if none is active, or there is only one."""
        return await active_of(self.addresses, self.configuration)

    @property
    def nodes(self) -> list[Node]:
        """The NodeManagers in the order of their numbers, including those that have ended."""
        return self._daemons.nodes

    def node(self, number: int) -> Node:
        """Node `number`, from 1. Raises InvalidArgumentException if there is no such node."""
        return self._daemons.node(number)

    def pack_of(self, number: int) -> list[Node]:
        """The nodes that share the process of node `number`, including that node."""
        return self._daemons.pack_of(number)

    def log_dirs_of(self, node: Node) -> list[Path]:
        """The directories with the logs of the node's containers."""
        return self._daemons.log_dirs_of(node)

    async def wait_broken(self) -> str:
        """Wait until every process has ended because the fork server ended. Returns the reason."""
        return await self._daemons.launcher.wait_gone()

    async def add_nodes(self, count: int = 1, *, memory_mb: int | None = None, vcores: int | None = None) -> list[Node]:
        """Start more NodeManagers, by default of the same size. Returns when they have registered."""
        self.check_added(count, memory_mb=memory_mb, vcores=vcores)
        return await self._daemons.start_nodes(count, node_sizes(memory_mb, vcores))

    def check_added(self, count: int, *, memory_mb: int | None = None, vcores: int | None = None) -> None:
        """Raise InvalidArgumentException, with all reasons, if `add_nodes` cannot add these nodes."""
        have, most = len(self.nodes), self._daemons.nodes_max
        asked = {"count": (count, most - have), "memory_mb": (memory_mb, INT_MAX), "vcores": (vcores, INT_MAX)}
        faults = [
            f"{name} = {value}: must be 1 to {limit}"
            for name, (value, limit) in asked.items()
            if value is not None and not 1 <= value <= limit
        ]
        if faults and not 1 <= count <= most - have:
            faults[0] += f" (the cluster has {have} nodes and was started for at most {most})"
        if faults:
            raise InvalidArgumentException("\n".join(faults))

    async def remove_node(self, number: int) -> None:
        """Have a NodeManager end its containers, unregister and exit.

        The node's number is not reused; `restart_node` starts the node again.
        """
        await self._daemons.end_node(number)

    async def decommission_node(
        self, number: int, timeout_s: int | None = None, report: Report = lambda text: None
    ) -> None:
        """Decommission a node gracefully: it gets no new containers, and leaves once its applications have finished.

        The node leaves after `timeout_s` seconds at the latest (None:
        `yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs`). `report` is called with lines that say
        what the node still waits for. `restart_node` starts the node again.
        """
        node = self._daemons.living(number)
        await decommission(self.client, self._excluded_hosts, node, timeout_s, report)

    async def kill_node(self, number: int, *, containers: bool = True) -> None:
        """Kill a NodeManager (SIGKILL) and its containers, as if the machine had failed.

        If `containers` is False, the containers keep running. Raises InvalidArgumentException for a node that has
        ended, or that shares its process with other nodes; `pause_node` and `remove_node` do the same.
        """
        await self._daemons.kill_node(number, containers=containers)

    async def kill_pack(self, number: int, *, containers: bool = True) -> None:
        """Kill the process of a node with all nodes that share it. `restart_node` starts all of them again."""
        await self._daemons.kill_pack(number, containers=containers)

    def pause_node(self, number: int) -> None:
        """Pause a NodeManager (SIGSTOP), as if it hung. The containers of the node keep running."""
        self._daemons.pause_node(number)

    def resume_node(self, number: int) -> None:
        self._daemons.resume_node(number)

    async def partition_node(self, number: int) -> None:
        """Block all data between a node and the other processes, until `heal_node`.

        `partition_node` and `slow_node` raise InvalidArgumentException unless the cluster was started with
        ClusterOptions(network_faults=True).
        """
        self._inject(number, NetworkFault(requests=True, replies=True))

    async def slow_node(self, number: int, *, delay_ms: int) -> None:
        """Delay all data between a node and the other processes by `delay_ms` in each direction, until `heal_node`."""
        if delay_ms < 0:
            raise InvalidArgumentException(f"delay_ms = {delay_ms}: must be at least 0")
        self._inject(number, NetworkFault(delay_s=delay_ms / 1000))

    async def heal_node(self, number: int) -> None:
        """Undo `partition_node` and `slow_node`; a no-op for a node without such a fault."""
        self._network_of(number).remove(number)

    def has_network_fault(self, number: int) -> bool:
        """True after `partition_node` or `slow_node`, until `heal_node`. Raises InvalidArgumentException like them."""
        return self._network_of(number).has_fault(number)

    async def restart_node(self, number: int) -> Node:
        """Start a NodeManager that has ended, on the same host and directories."""
        node = self.node(number)
        was_excluded = not node.alive and self._excluded_hosts.discard(node.place.host)
        if was_excluded and self.rm.exit_status is None:
            await self.client.refresh_nodes()
        return await self._daemons.restart_node(number)

    async def kill_rm(self, rm_id: str = "") -> None:
        """Kill the ResourceManager (SIGKILL). Nodes, ApplicationMasters and containers keep running.

        `rm_id`: that of one of several; "" for the active one. Raises InvalidArgumentException if it has ended.
        """
        await self._daemons.kill_rm(rm_id or await self.active_rm())

    async def pause_rm(self, rm_id: str = "") -> None:
        """Pause the ResourceManager (SIGSTOP), as if it hung. `rm_id`: as for `kill_rm`."""
        self._daemons.pause_rm(rm_id or await self.active_rm())

    async def resume_rm(self, rm_id: str = "") -> None:
        """Resume the ResourceManager; of several `rm_id` names it.

        Raises InvalidArgumentException if it has ended: the other one kills one that hangs within a transaction.
        """
        self._daemons.resume_rm(rm_id)

    async def restart_rm(self, rm_id: str = "") -> Daemon:
        """Start a ResourceManager that has ended, at the same addresses. `rm_id`: "" for the first that has ended.

        The ResourceManager resumes its applications if `yarn.resourcemanager.recovery.enabled` is true; otherwise they
        are lost.
        """
        return await self._daemons.restart_rm(rm_id)

    async def kill_container(self, container_id: ContainerId | str) -> None:
        """Wait until the container has processes, and kill all of them (SIGKILL).

        The NodeManager reports exit status 137. Raises ContainerNotFoundException if the container is unknown or has
        ended.
        """
        killed = as_id(ContainerId, container_id)
        for process in await conditions.wait_processes(self.client, killed, self._daemons.launcher.pid):
            kill(process)

    async def kill_master(self, app_id: ApplicationId | str) -> ContainerId:
        """Wait until the application's ApplicationMaster runs, and kill it (SIGKILL). Returns its container."""
        am = await conditions.wait_am(self.client, app_id)
        await self.kill_container(am)
        return am

    @overload
    async def until(self, condition: Callable[[], Awaitable[T]], timeout_s: float = WAIT_S) -> T: ...
    @overload
    async def until(self, condition: Callable[[], T], timeout_s: float = WAIT_S) -> T: ...
    async def until(self, condition: Callable[[], Any], timeout_s: float = WAIT_S) -> Any:
        """Call `condition`, a function or a coroutine function, until it returns a true value, and return that value.

        Raises WaitTimeout, which contains the last value.
        """
        return await conditions.until(condition, timeout_s)

    async def wait_nodes(
        self, count: int, state: NodeState = NodeState.RUNNING, timeout_s: float = WAIT_S
    ) -> tuple[NodeReport, ...]:
        """Wait until the ResourceManager has exactly `count` nodes in `state`, and return their reports.

        Raises WaitTimeout.
        """
        return await conditions.wait_nodes(self.client, count, state, timeout_s)

    async def wait_node(self, number: int, *states: NodeState, timeout_s: float = WAIT_S) -> NodeReport:
        """Wait until node `number` is in one of `states` (default: RUNNING), and return its report.

        Raises WaitTimeout.
        """
        wanted = frozenset(states) or frozenset({NodeState.RUNNING})
        return await conditions.wait_node(self.client, self.node(number).id, wanted, timeout_s)

    async def wait_containers(
        self, app_id: ApplicationId | str, count: int, timeout_s: float = WAIT_S, *, exactly: bool = False
    ) -> tuple[ContainerReport, ...]:
        """Wait until an application runs at least `count` containers besides its AM's, and return their reports.

        If `exactly`, wait until there are neither more nor fewer, for example until some have ended. Raises
        WaitTimeout.
        """
        return await conditions.wait_containers(self.client, app_id, count, timeout_s, exactly=exactly)

    @property
    def _excluded_hosts(self) -> ExcludedHosts:
        conf, setting = self._daemons.configuration, resourcemanager.NODES_EXCLUDE_PATH
        return ExcludedHosts(self.directory.excluded_hosts, setting.of(conf) if setting.key in conf else None)

    def _add_network(self) -> None:
        """Route the nodes that are started from now on through proxies."""
        self._network = self._daemons.routes = ProxyNetwork(self.directory.path, random.Random(0))

    def _inject(self, number: int, fault: NetworkFault) -> None:
        """Replace the network fault of a node."""
        network = self._network_of(number)
        network.remove(number)
        network.inject(number, tuple(f"{link}-{number}" for link in ("tracker", "scheduler", "node")), fault)

    def _network_of(self, number: int) -> ProxyNetwork:
        node = self.node(number)
        if self._network is None:
            raise InvalidArgumentException(
                f"{node.name}: its connections are direct, so network faults cannot be injected "
                "(start the cluster with options=ClusterOptions(network_faults=True), or yarnling up --network-faults)"
            )
        return self._network
