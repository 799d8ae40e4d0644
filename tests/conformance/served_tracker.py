"""Plays recorded calls of the node protocol on a ResourceManager that is served over gRPC.

The steps are those of `TrackerSteps` in the recordings' driver: each call exactly as it is written, whatever a correct
NodeManager would say. Hosts and ports of a recording stand for those of servers on loopback, where AMs can be launched;
replies have the recording's names again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from tests.conformance.recording import Json, Recording
from tests.rm.served_cluster import Cluster, Node, configuration
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.tracker import ResourceTracker
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.containers import ContainerLaunchContext, ContainerStatus, NMContainerStatus
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeHealth
from yarn.protocols.admin import RefreshNodesRequest
from yarn.protocols.client import KillApplicationRequest
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest
from yarn.resource import MEMORY_MB, Resource
from yarn.states import ContainerState, DecommissionType, NodeAction

NEVER_SUBMITTED = ApplicationId(1, 4711)
PORT = 1
HTTP_PORT = 2
NO_EXIT_STATUS = -1000
FIRST_ADDRESS = 10
"""The last byte of the address of a recording's first host."""


def configuration_of(recording: Recording, directory: Path) -> Configuration:
    """The recording's configuration on free ports, with lists of hosts that are empty at first."""
    lists = {}
    for name in ("include", "exclude"):
        (directory / name).touch()
        lists[f"yarn.resourcemanager.nodes.{name}-path"] = str(directory / name)
    own = configuration(directory)
    return Configuration.of({**{key: own.get(key) or "" for key in own}, **lists, **recording.followed})


class ServedTracker:
    """The nodes and applications of one recording. Steps are called one after the other."""

    def __init__(self, cluster: Cluster, client: ApplicationClientProtocol, directory: Path) -> None:
        self._cluster = cluster
        self._client = client
        self._directory = directory
        self._nodes: dict[tuple[str, int], tuple[Node, ResourceTracker]] = {}
        self._hosts: dict[str, str] = {}
        self._apps: dict[str, ApplicationId] = {}

    async def step(self, action: Json) -> Json:
        """Take one step and return its reply, as a recording has it; of an error only the class."""
        operation: Callable[[Json], Awaitable[Json]] = getattr(self, f"_{action['op']}")
        try:
            return await operation(action)
        except YarnException as error:
            return {"error": type(error).java_class.rpartition(".")[2]}

    async def close(self) -> None:
        for node, _ in self._nodes.values():
            await node.close()

    async def _raw_register(self, action: Json) -> Json:
        node, tracker = await self._node(action)
        reports = tuple(
            NMContainerStatus(status.container_id, status.state, Resource(1024, 1), 1, status.exit_status)
            for status in self._statuses(action)
        )
        request = RegisterNodeManagerRequest(
            node.node_id,
            action.get("http_port", HTTP_PORT),
            Resource.of({MEMORY_MB if name == "memory" else name: n for name, n in action["resource"].items()}),
            action.get("version", ""),
            reports,
            tuple(self._app(name) for name in action.get("applications", [])),
            health=NodeHealth(healthy=action.get("healthy", True)),
        )
        response = await tracker.register_node_manager(request)
        if response.nm_token_key is not None and response.container_token_key is not None:
            node.nm_tokens.keys.accept(response.nm_token_key)
            node.container_tokens.keys.accept(response.container_token_key)
        return {
            "action": response.action.name,
            **self._text("diagnostics", response.diagnostics),
            **self._text("version", response.rm_version),
            "identified": response.rm_identifier != 0,
            "keys": response.container_token_key is not None and response.nm_token_key is not None,
            "nodes": await self._states(),
        }

    async def _raw_heartbeat(self, action: Json) -> Json:
        node, tracker = await self._node(action)
        health = NodeHealth(healthy=action.get("healthy", True))
        keys = node.container_tokens.keys.current, node.nm_tokens.keys.current
        container_key, nm_key = (key.key_id if key is not None else 0 for key in keys)
        request = NodeHeartbeatRequest(
            node.node_id,
            action["response_id"],
            self._statuses(action),
            health,
            container_token_key_id=container_key,
            nm_token_key_id=nm_key,
        )
        response = await tracker.node_heartbeat(request)
        interval = {"interval_ms": response.next_heartbeat_ms} if response.action is NodeAction.NORMAL else {}
        return {
            "action": response.action.name,
            "response_id": response.response_id,
            **self._text("diagnostics", response.diagnostics),
            **interval,
            **_names("containers_to_clean_up", map(self._name, response.containers_to_clean_up)),
            **_names("containers_to_forget", map(self._name, response.containers_to_forget)),
            **_names("applications_to_clean_up", map(self._app_name, response.applications_to_clean_up)),
            "nodes": await self._states(),
        }

    async def _raw_unregister(self, action: Json) -> Json:
        node, tracker = await self._node(action)
        await tracker.unregister_node_manager(node.node_id)
        return {"nodes": await self._states()}

    async def _refresh_nodes(self, action: Json) -> Json:
        for name in ("include", "exclude"):
            hosts = [self._host(host) for host in action.get(name, [])]
            (self._directory / name).write_text("".join(f"{host}\n" for host in hosts))
        kind = DecommissionType.GRACEFUL if "timeout" in action else DecommissionType.NORMAL
        admin = await self._cluster.admin()
        await admin.refresh_nodes(RefreshNodesRequest(kind, action.get("timeout")))
        return {"nodes": await self._states()}

    async def _submit(self, action: Json) -> Json:
        new = await self._client.get_new_application()
        self._apps[action["app"]] = new.application_id
        size = Resource(action["am"]["memory"], action["am"].get("vcores", 1))
        context = ApplicationSubmissionContext(
            new.application_id, ContainerLaunchContext(("sleep 1",)), size, queue=action["queue"]
        )
        await self._client.submit_application(context)
        report = await self._client.get_application_report(new.application_id)
        return {"state": report.state.name}

    async def _kill_app(self, action: Json) -> Json:
        await self._client.force_kill_application(KillApplicationRequest(self._app(action["app"])))
        return {}

    async def _node(self, action: Json) -> tuple[Node, ResourceTracker]:
        """The server and the calls of a node; the first call of each starts its server."""
        key = (action["node"], action.get("port", PORT))
        if key not in self._nodes:
            node = Node(self._host(action["node"]), self._cluster)
            await node.listen()
            token = self._cluster.node_tokens.create(node.node_id)
            self._nodes[key] = node, await self._cluster.tracker(token)
        return self._nodes[key]

    def _host(self, name: str) -> str:
        return self._hosts.setdefault(name, f"127.0.0.{FIRST_ADDRESS + len(self._hosts)}")

    def _statuses(self, action: Json) -> tuple[ContainerStatus, ...]:
        return tuple(
            ContainerStatus(
                self._container(report["id"]),
                ContainerState[report["state"]],
                exit_status=report.get("exit", NO_EXIT_STATUS),
            )
            for report in action.get("containers", [])
        )

    def _container(self, name: str) -> ContainerId:
        app, attempt, number = name.split("/")
        return ContainerId(ApplicationAttemptId(self._app(app), int(attempt)), int(number))

    def _app(self, name: str) -> ApplicationId:
        return self._apps.setdefault(name, NEVER_SUBMITTED)

    def _app_name(self, application_id: ApplicationId) -> str:
        return next(name for name, known in self._apps.items() if known == application_id)

    def _name(self, container_id: ContainerId) -> str:
        attempt_id, number = container_id
        return f"{self._app_name(attempt_id.application_id)}/{attempt_id.attempt}/{number}"

    def _text(self, key: str, text: str) -> Json:
        """The text with the recording's names of nodes and hosts; nothing for an empty one."""
        for (host, port), (node, _) in self._nodes.items():
            text = text.replace(str(node.node_id), f"{host}:{port}")
        for name, address in self._hosts.items():
            text = text.replace(address, name)
        return {key: text} if text else {}

    async def _states(self) -> dict[str, str]:
        """The state of each node that the ResourceManager knows, by the recording's name."""
        names = {node.node_id: f"{host}:{port}" for (host, port), (node, _) in self._nodes.items()}
        reports = await self._client.get_cluster_nodes(frozenset())
        return {self._node_name(names, report.node_id): report.state.name for report in reports}

    def _node_name(self, names: dict[NodeId, str], node_id: NodeId) -> str:
        return names.get(node_id, str(node_id))


def _names(key: str, names: Iterable[str]) -> Json:
    found = sorted(names)
    return {key: found} if found else {}
