"""Two ResourceManagers in one loop: one is active, the other says so, and takes over with all that is stored."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from wire.cluster_secret import read_client_token
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from yarn.errors import AccessControlException, ServiceFailedException, StandbyException
from yarn.settings.high_availability import AUTOMATIC_FAILOVER_ENABLED
from yarn.settings.resourcemanager import ADMIN_ADDRESS, WEBAPP_ADDRESS
from yarn.states import HAServiceState, RequestSource
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.cluster.resource_managers import admin_of, state_of

BY_HAND = {AUTOMATIC_FAILOVER_ENABLED.key: "false"}


def cluster_of(nodes: int = 1, **settings: str) -> LocalCluster:
    return LocalCluster(nodes, fast=True, settings=settings, options=ClusterOptions(loopback=True, rms=2, web=True))


@pytest_asyncio.fixture
async def two() -> AsyncIterator[LocalCluster]:
    async with cluster_of() as cluster:
        yield cluster


async def change(cluster: LocalCluster, rm_id: str, state: HAServiceState, source: RequestSource) -> None:
    async with admin_of(cluster.addresses, rm_id, cluster.configuration) as rm:
        await (rm.transition_to_active if state is HAServiceState.ACTIVE else rm.transition_to_standby)(source)


def fetched(address: str, path: str) -> tuple[int, dict[str, str], str]:
    """Status, headers in lower case and body, without following a redirect."""

    class Unfollowed(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *arguments: object) -> None:
            return None

    try:
        with urllib.request.build_opener(Unfollowed).open(f"http://{address}{path}", timeout=60) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, {k.lower(): v for k, v in answer.headers.items()}, answer.read().decode()


async def test_one_is_active_and_the_other_redirects_to_it(two: LocalCluster) -> None:
    assert await two.active_rm() == "rm1"
    assert await state_of(two.addresses, "rm2", two.configuration) is HAServiceState.STANDBY
    active, standby = (two.addresses[f"{WEBAPP_ADDRESS.key}.{rm_id}"] for rm_id in ("rm1", "rm2"))
    status, headers, text = await asyncio.to_thread(fetched, standby, "/ws/v1/cluster/apps?limit=1")
    assert (status, headers["location"]) == (307, f"http://{active}/ws/v1/cluster/apps?limit=1")
    assert text == "This is standby RM. The redirect url is: /ws/v1/cluster/apps?limit=1\n"
    for address, state in ((active, "ACTIVE"), (standby, "STANDBY")):
        status, _, text = await asyncio.to_thread(fetched, address, "/ws/v1/cluster/info")
        assert (status, json.loads(text)["clusterInfo"]["haState"]) == (200, state)
    assert (await asyncio.to_thread(fetched, standby, "/isActive"))[0] == 405
    assert (
        f'<a href="http://{active}/cluster">rm1</a> is active'
        in (await asyncio.to_thread(fetched, standby, "/cluster/cluster"))[2]
    )


async def test_a_standby_refuses_administrators_and_their_client_goes_on_to_the_active_one(two: LocalCluster) -> None:
    target, token = two.addresses[f"{ADMIN_ADDRESS.key}.rm2"], read_client_token(two.configuration)
    async with ResourceManagerAdministrationProtocol(target, token=token) as rm2:
        with pytest.raises(StandbyException, match="ResourceManager rm2 is not Active!"):
            await rm2.refresh_admin_acls()
    await two.client.admin.refresh_admin_acls()


async def test_an_administrator_does_not_override_automatic_failover_by_accident(two: LocalCluster) -> None:
    with pytest.raises(AccessControlException, match="Manual failover for this ResourceManager is disallowed"):
        await change(two, "rm2", HAServiceState.ACTIVE, RequestSource.REQUEST_BY_USER)
    await change(two, "rm1", HAServiceState.STANDBY, RequestSource.REQUEST_BY_USER_FORCED)
    assert await two.until(two.active_rm) == "rm2"


async def test_work_goes_on_after_a_failover_and_ids_are_new() -> None:
    async with cluster_of(0, **BY_HAND) as cluster:
        await change(cluster, "rm1", HAServiceState.ACTIVE, RequestSource.REQUEST_BY_USER)
        await cluster.add_nodes(1)
        async with cluster.unmanaged_am(name="before") as am:
            await am.rm.register()
            with pytest.raises(ServiceFailedException, match="another ResourceManager has led"):
                await change(cluster, "rm2", HAServiceState.ACTIVE, RequestSource.REQUEST_BY_USER)
            await change(cluster, "rm1", HAServiceState.STANDBY, RequestSource.REQUEST_BY_USER)
            assert await cluster.active_rm() == ""
            await change(cluster, "rm2", HAServiceState.ACTIVE, RequestSource.REQUEST_BY_USER)
            await cluster.wait_nodes(1)
            assert (await cluster.client.report(am.application_id)).name == "before"
            fresh = (await cluster.client.new_application()).application_id
            assert fresh.cluster_timestamp > am.application_id.cluster_timestamp
