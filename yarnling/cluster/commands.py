"""The commands for a cluster of `yarnling up`: they add, remove, kill, pause and restart nodes, the RM and containers.

A command is a JSON object that arrives at the control socket (yarnling.cluster.control_socket). The answer to a command
has facts, for programs, and a text, for people. While a command for a part runs, other commands for that part are
refused, except those that kill.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import psutil
from msgspec import to_builtins

from yarn.applications import ApplicationFilter
from yarn.errors import ContainerNotFoundException, InvalidArgumentException, YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.java.values import INT_MAX
from yarn.settings import resourcemanager
from yarn.states import FINAL_APPLICATION_STATES, NodeState, YarnApplicationState
from yarnling.cluster.client import WaitTimeout
from yarnling.cluster.failover import active_or_refuse, fail_over
from yarnling.cluster.local_cluster import LocalCluster
from yarnling.cluster.nodes import Node, Report
from yarnling.cluster.state import number_of_node

KILL_TIMEOUT_S = 30.0
"""The number of seconds to wait until a container has a process that can be killed."""
APPLICATIONS_LOST = "its applications are lost (yarnling up --recovery keeps them)"

Answer = dict[str, Any]


class ClusterCommands:
    """Executes commands for one cluster. `changed` is called after each command, to update the state file."""

    def __init__(self, name: str, cluster: LocalCluster, changed: Callable[[], None]) -> None:
        self._name = name
        self._cluster = cluster
        self._changed = changed
        self._running: dict[str, str] = {}
        self._known: dict[str, Callable[[_Arguments, Report], Awaitable[Answer]]] = {
            "add-node": self._add_node,
            "remove-node": self._remove_node,
            "kill-node": self._kill_node,
            "pause-node": self._pause_node,
            "resume-node": self._resume_node,
            "restart-node": self._restart_node,
            "partition-node": self._partition_node,
            "heal-node": self._heal_node,
            "kill-rm": self._kill_rm,
            "restart-rm": self._restart_rm,
            "pause-rm": self._pause_rm,
            "resume-rm": self._resume_rm,
            "kill-master": self._kill_master,
            "kill-container": self._kill_container,
        }

    async def execute(self, request: dict[str, Any], report: Report) -> Answer:
        """Execute a command and return its answer.

        Raises YarnException, with the remedy, if the command cannot be executed.
        """
        arguments = _Arguments(request)
        name = arguments.text("command")
        if name not in self._known:
            raise InvalidArgumentException(f"command {name!r}: must be one of {', '.join(self._known)}")
        try:
            return await self._known[name](arguments, report)
        finally:
            self._changed()

    async def _add_node(self, arguments: _Arguments, report: Report) -> Answer:
        asked, memory_mb, vcores = arguments.number("count"), arguments.number("memory_mb"), arguments.number("vcores")
        count = 1 if asked is None else asked
        with self._exclusively("the nodes", "add-node"):
            self._cluster.check_added(count, memory_mb=memory_mb, vcores=vcores)
            self._need_rm("a NodeManager has to register with it")
            report(f"starting {count} NodeManager{'' if count == 1 else 's'}")
            nodes = await self._cluster.add_nodes(count, memory_mb=memory_mb, vcores=vcores)
        names = ", ".join(f"{node.name} ({node.id})" for node in nodes)
        return _answer(f"{names} {'has' if count == 1 else 'have'} joined.", nodes=[_facts(node) for node in nodes])

    async def _remove_node(self, arguments: _Arguments, report: Report) -> Answer:
        node = self._living(arguments)
        now, timeout_s = arguments.flag("now"), arguments.number("timeout_s")
        if timeout_s is not None and not 0 <= timeout_s <= INT_MAX:
            raise InvalidArgumentException(f"timeout_s = {timeout_s}: must be 0 to {INT_MAX}")
        with self._exclusively(node.name, "remove-node"):
            if now:
                report(f"{node.name}: ending its containers and unregistering")
                await self._cluster.remove_node(node.place.number)
            else:
                self._need_rm("it has to decommission the node; or use remove-node --now")
                if _is_paused(node):
                    raise InvalidArgumentException(
                        f"{node.name} is paused and cannot leave (resume-node {node.place.number} first, or --now)"
                    )
                await self._cluster.decommission_node(node.place.number, timeout_s, report)
        state = None if self._rm_is_down else await self._state_of(node)
        return _answer(f"{node.name} has left.", **_facts(node), state=state)

    async def _kill_node(self, arguments: _Arguments, report: Report) -> Answer:
        node = self._living(arguments)
        pack = self._cluster.pack_of(node.place.number)
        if len(pack) > 1 and not arguments.flag("pack"):
            raise InvalidArgumentException(
                f"{node.name} is one of {len(pack)} nodes of process {node.daemon.pid} ({pack[0].name} to "
                f"{pack[-1].name}), which cannot be killed without the others (kill all of them with --pack)"
            )
        await self._cluster.kill_pack(node.place.number, containers=arguments.flag("containers", default=True))
        others = f" with {pack[0].name} to {pack[-1].name}" if len(pack) > 1 else ""
        return _answer(f"Killed {node.name} ({node.id}){others}, process {node.daemon.pid}.", **_facts(node))

    async def _pause_node(self, arguments: _Arguments, report: Report) -> Answer:
        node = self._living(arguments)
        with self._exclusively(node.name, "pause-node"):
            if _is_paused(node):
                raise InvalidArgumentException(f"{node.name} is already paused (resume-node {node.place.number})")
            self._cluster.pause_node(node.place.number)
        return _answer(f"{node.name} is paused; {self._until_lost()}.", **_facts(node))

    async def _resume_node(self, arguments: _Arguments, report: Report) -> Answer:
        node = self._living(arguments)
        with self._exclusively(node.name, "resume-node"):
            if not _is_paused(node):
                raise InvalidArgumentException(f"{node.name} is not paused (pause-node {node.place.number} does that)")
            self._cluster.resume_node(node.place.number)
        return _answer(f"{node.name} is running again.", **_facts(node))

    async def _partition_node(self, arguments: _Arguments, report: Report) -> Answer:
        node = self._living(arguments)
        number = node.place.number
        with self._exclusively(node.name, "partition-node"):
            if self._cluster.has_network_fault(number):
                raise InvalidArgumentException(f"{node.name} is already partitioned (heal-node {number})")
            await self._cluster.partition_node(number)
        return _answer(
            f"{node.name} is cut off from all other processes; {self._until_lost()}. "
            f"Connect it again: heal-node {number}.",
            **_facts(node),
        )

    async def _heal_node(self, arguments: _Arguments, report: Report) -> Answer:
        node = self._node(arguments)
        number = node.place.number
        with self._exclusively(node.name, "heal-node"):
            if not self._cluster.has_network_fault(number):
                raise InvalidArgumentException(f"{node.name} is not partitioned (partition-node {number} does that)")
            await self._cluster.heal_node(number)
        return _answer(f"{node.name} is connected again.", **_facts(node))

    def _until_lost(self) -> str:
        after_s = resourcemanager.NM_EXPIRY_INTERVAL.of(self._cluster.configuration) / 1000
        return f"the ResourceManager will declare it LOST after {after_s:g} s without a heartbeat"

    async def _restart_node(self, arguments: _Arguments, report: Report) -> Answer:
        node = self._node(arguments)
        number = node.place.number
        with self._exclusively(node.name, "restart-node"):
            if node.alive:
                raise InvalidArgumentException(
                    f"{node.name} is running (kill-node {number} or remove-node {number} first)"
                )
            self._need_rm("a NodeManager has to register with it")
            report(f"starting {node.name}")
            await self._cluster.restart_node(number)
        return _answer(f"{node.name} is back as {node.id}, process {node.daemon.pid}.", **_facts(node))

    async def _kill_rm(self, arguments: _Arguments, report: Report) -> Answer:
        if self._rm_is_down:
            raise InvalidArgumentException("the ResourceManager is already down (restart-rm starts it)")
        if len(self._cluster.rms) > 1:
            return await self._kill_one_of_several(arguments, report)
        pid = self._cluster.rm.pid
        await self._cluster.kill_rm(arguments.optional("id"))
        outcome = "with its applications" if self._recovers else f"but {APPLICATIONS_LOST}"
        return _answer(
            f"Killed the ResourceManager, process {pid}; yarnling restart-rm starts it again, {outcome}.",
            pid=pid,
            recovery=self._recovers,
        )

    async def _kill_one_of_several(self, arguments: _Arguments, report: Report) -> Answer:
        rm_id = arguments.optional("id")
        active = await self._cluster.active_rm() if rm_id else await active_or_refuse(self._cluster)
        killed = rm_id or active
        with self._exclusively("the ResourceManagers", "kill-rm"):
            if killed != active:
                await self._cluster.kill_rm(killed)
                return _answer(f"Killed the standby ResourceManager {killed}; {active or 'none'} is active.", id=killed)
            expected = sum(node.alive and not _is_paused(node) for node in self._cluster.nodes)
            probe = arguments.flag("probe", default=True)
            times = await fail_over(self._cluster, killed, expected, probe=probe, report=report)
        return _answer(f"Killed the active ResourceManager {killed}: {times.sentence}.", **to_builtins(times))

    async def _pause_rm(self, arguments: _Arguments, report: Report) -> Answer:
        rm_id = arguments.optional("id")
        if len(self._cluster.rms) > 1 and not rm_id:
            rm_id = await active_or_refuse(self._cluster)
        await self._cluster.pause_rm(rm_id)
        return _answer(f"The ResourceManager{f' {rm_id}' if rm_id else ''} is paused.", id=rm_id)

    async def _resume_rm(self, arguments: _Arguments, report: Report) -> Answer:
        rm_id = arguments.optional("id")
        if len(self._cluster.rms) > 1 and not rm_id:
            raise InvalidArgumentException("there are several ResourceManagers (name one: resume-rm --id rm1)")
        await self._cluster.resume_rm(rm_id)
        return _answer(f"The ResourceManager{f' {rm_id}' if rm_id else ''} is running again.", id=rm_id)

    async def _restart_one_of_several(self, rm_id: str) -> Answer:
        rm = await self._cluster.restart_rm(rm_id)
        active = await self._cluster.active_rm()
        return _answer(
            f"The ResourceManager {rm.name} is up, process {rm.pid}; {active or 'none'} is active.",
            id=rm.name,
            pid=rm.pid,
            active=active,
        )

    async def _restart_rm(self, arguments: _Arguments, report: Report) -> Answer:
        if len(self._cluster.rms) > 1:
            with self._exclusively("the ResourceManagers", "restart-rm"):
                return await self._restart_one_of_several(arguments.optional("id"))
        with self._exclusively("the ResourceManager", "restart-rm"):
            if not self._rm_is_down:
                raise InvalidArgumentException("the ResourceManager is running (kill-rm ends it)")
            report("starting the ResourceManager")
            await self._cluster.restart_rm()
            self._changed()
            back, expected = await self._nodes_back(report)
        known = len(await self._cluster.client.applications())
        about = (
            f"it has resumed {known} application{'' if known == 1 else 's'}" if self._recovers else APPLICATIONS_LOST
        )
        return _answer(
            f"The ResourceManager is up, process {self._cluster.rm.pid}; {back} of {expected} nodes are back; {about}.",
            pid=self._cluster.rm.pid,
            nodes=back,
            recovery=self._recovers,
            applications=known,
        )

    async def _nodes_back(self, report: Report) -> tuple[int, int]:
        """Wait until all nodes have registered again.

        Returns (number of registered nodes, number of nodes that can register).
        """
        expected = sum(node.alive and not _is_paused(node) for node in self._cluster.nodes)
        report(f"waiting for {expected} node{'' if expected == 1 else 's'}")
        with contextlib.suppress(WaitTimeout):
            await self._cluster.wait_nodes(expected)
        return len(await self._cluster.client.nodes(frozenset({NodeState.RUNNING}))), expected

    async def _kill_master(self, arguments: _Arguments, report: Report) -> Answer:
        app_id = ApplicationId.parse(arguments.text("application"))
        self._need_rm("only it knows the ApplicationMaster's container")
        found = await self._cluster.client.report(app_id)
        if found.state in FINAL_APPLICATION_STATES:
            running = await self._cluster.client.applications(
                ApplicationFilter(states=frozenset({YarnApplicationState.RUNNING}))
            )
            those = ", ".join(str(app.application_id) for app in running) or "none"
            raise InvalidArgumentException(
                f"{app_id} is {found.state.name}: it has no ApplicationMaster (running: {those})"
            )
        report("waiting for a process of its ApplicationMaster")
        killed = await self._soon(self._cluster.kill_master(app_id), f"{app_id} has no ApplicationMaster")
        return _answer(
            f"Killed the ApplicationMaster of {app_id}, {killed}.", application=str(app_id), container=str(killed)
        )

    async def _kill_container(self, arguments: _Arguments, report: Report) -> Answer:
        container_id = ContainerId.parse(arguments.text("container"))
        self._need_rm("only it knows the containers")
        report("waiting for a process of the container")
        try:
            await self._soon(self._cluster.kill_container(container_id), f"{container_id} has no process")
        except ContainerNotFoundException:
            raise ContainerNotFoundException(
                f"{container_id} is not running: it has ended or never existed "
                f"(yarnling container -list {container_id.attempt_id} lists those that are)"
            ) from None
        return _answer(f"Killed {container_id}.", container=str(container_id))

    async def _soon(self, killing: Awaitable[Any], problem: str) -> Any:
        try:
            async with asyncio.timeout(KILL_TIMEOUT_S):
                return await killing
        except TimeoutError:
            raise YarnException(
                f"{problem} after {KILL_TIMEOUT_S:g} s (yarnling explain shows what it waits for)"
            ) from None

    def _node(self, arguments: _Arguments) -> Node:
        """Find a node by number, name or id. Raises InvalidArgumentException, which lists the nodes."""
        named = [(node.place.number, node.name, str(node.id)) for node in self._cluster.nodes]
        return self._cluster.node(number_of_node(arguments.text("node"), self._name, named))

    def _living(self, arguments: _Arguments) -> Node:
        node = self._node(arguments)
        if not node.alive:
            raise InvalidArgumentException(
                f"{node.name} ({node.id}) has already ended (restart-node {node.place.number} starts it again)"
            )
        return node

    @property
    def _rm_is_down(self) -> bool:
        return self._cluster.rm.exit_status is not None

    @property
    def _recovers(self) -> bool:
        return resourcemanager.RECOVERY_ENABLED.of(self._cluster.configuration)

    def _need_rm(self, why: str) -> None:
        if self._rm_is_down:
            raise YarnException(f"the ResourceManager is down, but {why} (yarnling restart-rm starts it)")

    async def _state_of(self, node: Node) -> str | None:
        nodes = await self._cluster.client.nodes()
        return next((report.state.name for report in nodes if report.node_id == node.id), None)

    @contextlib.contextmanager
    def _exclusively(self, part: str, command: str) -> Iterator[None]:
        if part in self._running:
            raise YarnException(f"{part}: {self._running[part]} is running (wait until it ends, or interrupt it)")
        self._running[part] = command
        try:
            yield
        finally:
            del self._running[part]


class _Arguments:
    """The arguments of a command. Each is checked when it is read."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._request = request

    def text(self, name: str) -> str:
        value = self._request.get(name)
        if not isinstance(value, str):
            raise InvalidArgumentException(f"{name} = {value!r}: must be a string")
        return value

    def optional(self, name: str) -> str:
        return self.text(name) if self._request.get(name) is not None else ""

    def number(self, name: str) -> int | None:
        value = self._request.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise InvalidArgumentException(f"{name} = {value!r}: must be a number")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self._request.get(name, default)
        if not isinstance(value, bool):
            raise InvalidArgumentException(f"{name} = {value!r}: must be true or false")
        return value


def _answer(text: str, **facts: object) -> Answer:
    return {"facts": facts, "text": text}


def _facts(node: Node) -> dict[str, object]:
    return {"number": node.place.number, "name": node.name, "node_id": str(node.id), "pid": node.daemon.pid}


def _is_paused(node: Node) -> bool:
    try:
        return psutil.Process(node.daemon.pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False
