"""The server that AMs call: one for all nodes of a process, with an address for each of them."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from nm.shell.host_environment import HostEnvironment
from nm.shell.services import ContainerManagementService
from wire.cluster_secret import socket_dir
from wire.connection_limits import DESCRIPTORS, ConnectionLimits
from wire.dispatch import Authenticate
from wire.hadoop_authentication import ByToken
from wire.protocols.container_management import ContainerManagementProtocol
from wire.server import RpcServer
from wire.tokens import ContainerTokenSecretManager, KeyRing, NMTokenSecretManager
from wire.watching import CallWatch
from yarn.containers import NMTokenIdentifier, Token
from yarn.ids import NodeId
from yarn.machine import StateChanged
from yarn.settings.yarnling import HADOOP_RPC_ENABLED, LISTEN_BEYOND_LOOPBACK, OPEN_TO_LOCAL_USERS

if TYPE_CHECKING:
    from nm.shell.stored_node import StoredNode

CONTAINER_KEYS, NM_KEYS = "container", "nm"
"""The kinds of the RM's keys, as the recovery store names them."""
CONNECTIONS_MAX = 170
"""Connections to a node: from the RM, and from each ApplicationMaster that has containers there. With DESCRIPTORS each,
they take half of the usual limit of 1,024 open files and leave the rest to containers' pipes and logs; it is not
raised, since containers inherit it. A lower limit is halved as well."""


class ContainerManagerServer:
    """Serves ContainerManagementProtocol. `services` has one service a node, in the order of the environment's hosts.

    `container_keys` and `nm_keys` check the tokens of callers; the RM issues them, the same for every node.
    """

    def __init__(self, environment: HostEnvironment) -> None:
        conf = environment.conf
        self.container_keys, self.nm_keys = KeyRing(), KeyRing()
        self.services = [
            ContainerManagementService(
                ContainerTokenSecretManager(self.container_keys), NMTokenSecretManager(self.nm_keys)
            )
            for _ in environment.hosts
        ]
        self._conf = conf
        self._hosts = environment.hosts
        self._watch = CallWatch.read(conf)
        self._server = RpcServer(
            environment.listening,
            socket_dir(conf),
            further_hosts=environment.hosts[1:],
            observers=() if self._watch is None else (self._watch,),
            beyond_loopback=LISTEN_BEYOND_LOOPBACK.of(conf),
            limits=ConnectionLimits(connections_max()),
            admits_all_users=OPEN_TO_LOCAL_USERS.of(conf),
        )

    def serve(
        self, handler: object, authenticate: Authenticate[NMTokenIdentifier], token_of: Callable[[bytes], Token]
    ) -> None:
        """Have `handler` answer calls; call it before `listen`. `token_of`: see ByToken."""
        self._server.add(ContainerManagementProtocol.rpcs, handler, authenticate)
        if HADOOP_RPC_ENABLED.of(self._conf):
            from wire.hadoop_rpc.server import HadoopServer

            self._server.answer_hadoop(partial(HadoopServer, ByToken(token_of)))

    def recover_keys(self, stored: Mapping[str, StoredNode]) -> None:
        """Accept the tokens that an earlier NodeManager has accepted; `stored`: what it has stored, by host."""
        first = stored.get(self._hosts[0])
        if first is None:
            return
        for keys, kind in ((self.container_keys, CONTAINER_KEYS), (self.nm_keys, NM_KEYS)):
            keys.current, keys.previous = first.store.keys(kind)
        for host, service in zip(self._hosts, self.services, strict=True):
            service.recover_keys(stored[host].store.attempt_keys())

    async def listen(self) -> list[NodeId]:
        """Listen on one port at every host; the ids of the nodes, of which the port is part."""
        port = await self._server.start()
        node_ids = [NodeId(host, port) for host in self._hosts]
        if self._watch is not None:
            await self._watch.open(str(node_ids[0]))
        return node_ids

    def send_change(self, node_id: NodeId, change: StateChanged) -> None:
        """Send watchers (`yarnling watch`) the transition of a container or an application of the node."""
        if self._watch is not None:
            self._watch.changed(
                str(node_id),
                change.kind,
                change.subject,
                event=change.event,
                source=change.source,
                target=change.target,
            )

    async def close(self) -> None:
        if self._watch is not None:
            await self._watch.close()
        await self._server.stop()


def connections_max() -> int:
    """Connections to a node: fewer if the limit of open files is low."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS_MAX if soft == resource.RLIM_INFINITY else min(CONNECTIONS_MAX, soft // 2 // DESCRIPTORS)
