"""What can be ordered of a cluster that `yarnling up` keeps: nodes that come and go, harm, and what has ended again.

An order is a JSON object of the control socket (yarnling.cluster.control_socket); its answer has facts, for programs,
and a text. Orders on one part exclude one another, but for those that kill it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import psutil

from yarn.applications import ApplicationFilter
from yarn.errors import ContainerNotFoundException, InvalidArgumentException, YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.java.values import INT_MAX
from yarn.settings import resourcemanager
from yarn.states import FINAL_APPLICATION_STATES, NodeState, YarnApplicationState
from yarnling.cluster.client import WaitTimeout
from yarnling.cluster.control_socket import Tell
from yarnling.cluster.daemons import Node
from yarnling.cluster.local_cluster import LocalCluster
from yarnling.cluster.state import number_of_node

KILL_S = 30.0
"""How long is waited for a container to have a process that can be killed."""
LOST_ARE = "the applications of before are lost (yarnling up --recovery keeps them)"

Answer = dict[str, Any]


class Orders:
    """Carries out orders on one cluster. `changed` is called when what its state file tells is different."""

    def __init__(self, name: str, cluster: LocalCluster, changed: Callable[[], None]) -> None:
        self._name = name
        self._cluster = cluster
        self._changed = changed
        self._under_way: dict[str, str] = {}
        self._known: dict[str, Callable[[_Given, Tell], Awaitable[Answer]]] = {
            "add-node": self._add_node,
            "remove-node": self._remove_node,
            "kill-node": self._kill_node,
            "pause-node": self._pause_node,
            "resume-node": self._resume_node,
            "restart-node": self._restart_node,
            "kill-rm": self._kill_rm,
            "restart-rm": self._restart_rm,
            "kill-master": self._kill_master,
            "kill-container": self._kill_container,
        }

    async def carry_out(self, request: dict[str, Any], tell: Tell) -> Answer:
        """Raises YarnException, naming the remedy, for what cannot be done."""
        given = _Given(request)
        name = given.text("order")
        if name not in self._known:
            raise InvalidArgumentException(f"order {name!r}: must be one of {', '.join(self._known)}")
        try:
            return await self._known[name](given, tell)
        finally:
            self._changed()

    # Nodes

    async def _add_node(self, given: _Given, tell: Tell) -> Answer:
        asked, memory_mb, vcores = given.number("count"), given.number("memory_mb"), given.number("vcores")
        count = 1 if asked is None else asked
        with self._alone("the nodes", "add-node"):
            self._cluster.check_added(count, memory_mb=memory_mb, vcores=vcores)
            self._need_rm("a NodeManager registers with it")
            tell(f"starting {count} NodeManager{'' if count == 1 else 's'}")
            nodes = await self._cluster.add_nodes(count, memory_mb=memory_mb, vcores=vcores)
        names = ", ".join(f"{node.name} ({node.id})" for node in nodes)
        return _answer(f"{names} {'has' if count == 1 else 'have'} joined.", nodes=[_facts(node) for node in nodes])

    async def _remove_node(self, given: _Given, tell: Tell) -> Answer:
        node = self._living(given)
        now, timeout_s = given.flag("now"), given.number("timeout_s")
        if timeout_s is not None and not 0 <= timeout_s <= INT_MAX:
            raise InvalidArgumentException(f"timeout_s = {timeout_s}: must be 0 to {INT_MAX}")
        with self._alone(node.name, "remove-node"):
            if now:
                tell(f"{node.name}: ends its containers and takes leave")
                await self._cluster.remove_node(node.place.number)
            else:
                self._need_rm("it decommissions the node; or remove-node --now")
                if _is_paused(node):
                    raise InvalidArgumentException(
                        f"{node.name} is paused, and hears nothing (resume-node {node.place.number} first, or --now)"
                    )
                await self._cluster.decommission_node(node.place.number, timeout_s, tell)
        state = None if self._rm_is_down else await self._state_of(node)
        return _answer(f"{node.name} has left.", **_facts(node), state=state)

    async def _kill_node(self, given: _Given, tell: Tell) -> Answer:
        node = self._living(given)
        pack = self._cluster.pack_of(node.place.number)
        if len(pack) > 1 and not given.flag("pack"):
            raise InvalidArgumentException(
                f"{node.name} is one of {len(pack)} nodes of process {node.daemon.pid} ({pack[0].name} to "
                f"{pack[-1].name}), which cannot be killed without the others (kill all of them with --pack)"
            )
        await self._cluster.kill_pack(node.place.number, containers=given.flag("containers", default=True))
        others = f" with {pack[0].name} to {pack[-1].name}" if len(pack) > 1 else ""
        return _answer(f"Killed {node.name} ({node.id}){others}, process {node.daemon.pid}.", **_facts(node))

    async def _pause_node(self, given: _Given, tell: Tell) -> Answer:
        node = self._living(given)
        with self._alone(node.name, "pause-node"):
            if _is_paused(node):
                raise InvalidArgumentException(f"{node.name} is paused already (resume-node {node.place.number})")
            self._cluster.pause_node(node.place.number)
        after_s = resourcemanager.NM_EXPIRY_INTERVAL.of(self._cluster.configuration) / 1000
        return _answer(
            f"{node.name} is paused; the ResourceManager has it LOST when it was not heard of for {after_s:g} s.",
            **_facts(node),
        )

    async def _resume_node(self, given: _Given, tell: Tell) -> Answer:
        node = self._living(given)
        with self._alone(node.name, "resume-node"):
            if not _is_paused(node):
                raise InvalidArgumentException(f"{node.name} is not paused (pause-node {node.place.number} does that)")
            self._cluster.resume_node(node.place.number)
        return _answer(f"{node.name} goes on.", **_facts(node))

    async def _restart_node(self, given: _Given, tell: Tell) -> Answer:
        node = self._node(given)
        number = node.place.number
        with self._alone(node.name, "restart-node"):
            if node.alive:
                raise InvalidArgumentException(
                    f"{node.name} is running (kill-node {number} or remove-node {number} first)"
                )
            self._need_rm("a NodeManager registers with it")
            tell(f"starting {node.name}")
            await self._cluster.restart_node(number)
        return _answer(f"{node.name} is back as {node.id}, process {node.daemon.pid}.", **_facts(node))

    # The ResourceManager

    async def _kill_rm(self, given: _Given, tell: Tell) -> Answer:
        if self._rm_is_down:
            raise InvalidArgumentException("the ResourceManager is down already (restart-rm starts it)")
        pid = self._cluster.rm.pid
        await self._cluster.kill_rm()
        becomes = "with its applications" if self._recovers else f"but {LOST_ARE}"
        return _answer(
            f"Killed the ResourceManager, process {pid}; yarnling restart-rm starts it again, {becomes}.",
            pid=pid,
            recovery=self._recovers,
        )

    async def _restart_rm(self, given: _Given, tell: Tell) -> Answer:
        with self._alone("the ResourceManager", "restart-rm"):
            if not self._rm_is_down:
                raise InvalidArgumentException("the ResourceManager is running (kill-rm ends it)")
            tell("starting the ResourceManager")
            await self._cluster.restart_rm()
            self._changed()
            back, expected = await self._nodes_back(tell)
        known = len(await self._cluster.client.applications())
        about = f"it has taken up {known} application{'' if known == 1 else 's'}" if self._recovers else LOST_ARE
        return _answer(
            f"The ResourceManager is up, process {self._cluster.rm.pid}; {back} of {expected} nodes are back; {about}.",
            pid=self._cluster.rm.pid,
            nodes=back,
            recovery=self._recovers,
            applications=known,
        )

    async def _nodes_back(self, tell: Tell) -> tuple[int, int]:
        """How many nodes have registered again, of how many that can: waits for all of them, for a while."""
        expected = sum(node.alive and not _is_paused(node) for node in self._cluster.nodes)
        tell(f"waiting for {expected} node{'' if expected == 1 else 's'}")
        with contextlib.suppress(WaitTimeout):
            await self._cluster.wait_nodes(expected)
        return len(await self._cluster.client.nodes(frozenset({NodeState.RUNNING}))), expected

    # What runs

    async def _kill_master(self, given: _Given, tell: Tell) -> Answer:
        app_id = ApplicationId.parse(given.text("application"))
        self._need_rm("it knows the container of the master")
        report = await self._cluster.client.report(app_id)
        if report.state in FINAL_APPLICATION_STATES:
            running = await self._cluster.client.applications(
                ApplicationFilter(states=frozenset({YarnApplicationState.RUNNING}))
            )
            those = ", ".join(str(app.application_id) for app in running) or "none"
            raise InvalidArgumentException(f"{app_id} is {report.state.name}: it has no master (running: {those})")
        tell("waiting for a process of its master")
        killed = await self._soon(self._cluster.kill_master(app_id), f"{app_id} has no master")
        return _answer(f"Killed the master of {app_id}, {killed}.", application=str(app_id), container=str(killed))

    async def _kill_container(self, given: _Given, tell: Tell) -> Answer:
        container_id = ContainerId.parse(given.text("container"))
        self._need_rm("it knows the containers")
        tell("waiting for a process of it")
        try:
            await self._soon(self._cluster.kill_container(container_id), f"{container_id} has no process")
        except ContainerNotFoundException:
            raise ContainerNotFoundException(
                f"{container_id} does not run: it has ended or never was "
                f"(yarnling container -list {container_id.attempt_id} lists those that do)"
            ) from None
        return _answer(f"Killed {container_id}.", container=str(container_id))

    async def _soon(self, killing: Awaitable[Any], problem: str) -> Any:
        try:
            async with asyncio.timeout(KILL_S):
                return await killing
        except TimeoutError:
            raise YarnException(f"{problem} after {KILL_S:g} s (yarnling explain tells what it waits for)") from None

    # Looking

    def _node(self, given: _Given) -> Node:
        """By number, name or id. Raises InvalidArgumentException, naming those that there are."""
        named = [(node.place.number, node.name, str(node.id)) for node in self._cluster.nodes]
        return self._cluster.node(number_of_node(given.text("node"), self._name, named))

    def _living(self, given: _Given) -> Node:
        node = self._node(given)
        if not node.alive:
            raise InvalidArgumentException(
                f"{node.name} ({node.id}) has ended already (restart-node {node.place.number} starts it again)"
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
            raise YarnException(f"the ResourceManager is down, and {why} (yarnling restart-rm starts it)")

    async def _state_of(self, node: Node) -> str | None:
        nodes = await self._cluster.client.nodes()
        return next((report.state.name for report in nodes if report.node_id == node.id), None)

    @contextlib.contextmanager
    def _alone(self, part: str, order: str) -> Iterator[None]:
        if part in self._under_way:
            raise YarnException(f"{part}: {self._under_way[part]} is under way (wait for its end, or interrupt it)")
        self._under_way[part] = order
        try:
            yield
        finally:
            del self._under_way[part]


class _Given:
    """An order's arguments, each checked when it is taken."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._request = request

    def text(self, name: str) -> str:
        value = self._request.get(name)
        if not isinstance(value, str):
            raise InvalidArgumentException(f"{name} = {value!r}: must be a text")
        return value

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
