"""The servers that a ResourceManager has whether it is active or not: for administrators, and for the web.

As in Hadoop, a standby does not listen at its other addresses, so callers go on to the next ResourceManager.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random

from rm.shell.ha.candidate import HACandidate
from rm.shell.ha.services import HAService, WhenActive
from rm.shell.servers import Servers, client_authentication
from wire.address import Address
from wire.cluster_secret import read_cluster_secret
from wire.dispatch import RpcObserver
from wire.hadoop_authentication import ByUser
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.ha import HAServiceProtocol
from wire.tokens import ClientTokenSecretManager
from yarn.configuration import Configuration
from yarn.settings import resourcemanager
from yarn.settings.yarnling import LISTEN_BEYOND_LOOPBACK, OPEN_TO_LOCAL_USERS, WEB_ENABLED


@asynccontextmanager
async def front(
    conf: Configuration,
    candidate: HACandidate,
    web_addresses: Mapping[str, str],
    observers: tuple[RpcObserver, ...] = (),
) -> AsyncIterator[dict[str, str]]:
    """Serve administrators and the web while the context is open; yields {key: address as served}.

    `web_addresses` {id: host:port}. Raises YarnException for an address that is not available.
    """
    secret = read_cluster_secret(conf)
    servers, check_client = Servers(conf, observers), client_authentication(conf, secret)
    rpcs = ResourceManagerAdministrationProtocol.rpcs
    servers.add(
        resourcemanager.ADMIN_ADDRESS,
        rpcs,
        WhenActive(rpcs, lambda: candidate.serving().admins),
        check_client,
        ByUser(ClientTokenSecretManager(secret).create()),
    ).add(HAServiceProtocol.rpcs, HAService(conf, candidate), check_client)
    addresses = await servers.start()
    try:
        async with _web(conf, candidate, web_addresses) as served:
            yield addresses | served
    finally:
        await servers.stop()


@asynccontextmanager
async def _web(
    conf: Configuration, candidate: HACandidate, web_addresses: Mapping[str, str]
) -> AsyncIterator[dict[str, str]]:
    """Serve the web, if that is enabled; its modules are imported only then."""
    if not WEB_ENABLED.of(conf):
        yield {}
        return
    from rm.shell.ha.standby_web import StandbyWeb
    from wire.web.server import WebServer

    address = Address.read(conf, resourcemanager.WEBAPP_ADDRESS)
    server = WebServer(
        address, beyond_loopback=LISTEN_BEYOND_LOOPBACK.of(conf), admits_all_users=OPEN_TO_LOCAL_USERS.of(conf)
    )
    port = await server.bind()
    await server.start(StandbyWeb(conf, candidate, web_addresses, Random()))
    try:
        yield {address.key: f"{address.host}:{port}"}
    finally:
        await server.stop()
