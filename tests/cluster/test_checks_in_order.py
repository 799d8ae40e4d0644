"""Mission case C7 on real processes: the checks before a container is allocated, each explained with its numbers.

The test drives the AMs itself, so that they request exactly what a check needs; the nodes, the ResourceManager and the
scheduler's decisions are real.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from tests.cluster.conftest import QUICK
from wire.protocols.master import ApplicationMasterProtocol
from yarn.applications import ApplicationSubmissionContext, ContainerReport
from yarn.containers import ANY, ContainerLaunchContext, ResourceRequest
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.protocols.inspection import ObstacleReport
from yarn.protocols.master import AllocateRequest, RegisterApplicationMasterRequest
from yarn.resource import Resource
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.case("C7")]

GB = 1024
PREFIX = "yarn.scheduler.capacity"
SETTINGS = {
    **QUICK,
    "yarn.scheduler.minimum-allocation-mb": str(GB),
    f"{PREFIX}.maximum-am-resource-percent": "0.4",
    f"{PREFIX}.root.queues": "a,b",
    f"{PREFIX}.root.a.capacity": "50",
    f"{PREFIX}.root.a.maximum-capacity": "50",
    f"{PREFIX}.root.a.queues": "one,two",
    f"{PREFIX}.root.a.one.capacity": "50",
    f"{PREFIX}.root.a.two.capacity": "50",
    f"{PREFIX}.root.a.two.user-limit-factor": "10",
    f"{PREFIX}.root.b.capacity": "50",
    f"{PREFIX}.root.b.user-limit-factor": "10",
}


@dataclass
class AM:
    """An AM driven by hand. `has`: the ids of the containers allocated to it."""

    cluster: LocalCluster
    app_id: ApplicationId
    rm: ApplicationMasterProtocol
    has: list[ContainerId] = field(default_factory=list)
    _response_id: int = 0

    async def request(self, count: int, memory_mb: int, *, avoid: NodeId | None = None) -> None:
        """Request that many containers of this size, on any node but the one to avoid."""
        asks = (ResourceRequest(1, ANY, Resource(memory_mb, 1), count),)
        await self._allocate(asks, (avoid.host,) if avoid else ())

    async def _allocate(self, asks: tuple[ResourceRequest, ...] = (), avoid: tuple[str, ...] = ()) -> None:
        request = AllocateRequest(self._response_id, asks=asks, blacklist_additions=avoid)
        reply = await self.rm.allocate(request)
        self._response_id = reply.response_id
        self.has += [container.id for container in reply.allocated]

    async def until_has(self, count: int) -> None:
        async def enough() -> bool:
            await self._allocate()
            return len(self.has) >= count

        await self.cluster.until(enough)

    async def refusal(self, reason: str, node_id: NodeId | None = None) -> ObstacleReport:
        """The obstacle that explain reports for this reason (on this node), once it does."""

        async def named() -> ObstacleReport | None:
            obstacles = (await self.cluster.client.explain(self.app_id)).obstacles
            fits = [o for o in obstacles if o.reason == reason and (node_id is None or o.node_id == node_id)]
            return fits[0] if fits else None

        found = await self.cluster.until(named)
        assert found is not None
        return found


class Scene:
    """The cluster and its two nodes of 8 GB."""

    def __init__(self, cluster: LocalCluster, stack: AsyncExitStack) -> None:
        self.cluster = cluster
        self._stack = stack
        self.first, self.second = (node.id for node in cluster.nodes)

    async def am(self, user: str, queue: str) -> AM:
        client = self.cluster.client_of(user)
        app_id = (await client.new_application()).application_id
        await client.submit(ApplicationSubmissionContext(app_id, queue=queue, unmanaged_am=True))

        async def token() -> object:
            return (await client.report(app_id)).am_rm_token

        await self.cluster.until(token)
        found = (await client.report(app_id)).am_rm_token
        target = self.cluster.addresses["yarn.resourcemanager.scheduler.address"]
        rm = await self._stack.enter_async_context(ApplicationMasterProtocol(target, token=found))
        await rm.register_application_master(RegisterApplicationMasterRequest("localhost", -1))
        return AM(self.cluster, app_id, rm)


@pytest_asyncio.fixture
async def scene() -> AsyncIterator[Scene]:
    async with LocalCluster(2, memory_mb=8 * GB, settings=SETTINGS, fast=True) as cluster, AsyncExitStack() as stack:
        yield Scene(cluster, stack)


def numbers(obstacle: ObstacleReport) -> tuple[int | None, int | None]:
    """Requested (or used) MB, and the limit in MB."""
    return tuple(None if amount is None else amount.memory_mb for amount in (obstacle.asked, obstacle.bound))  # type: ignore[return-value]


async def test_a_blacklisted_node_is_refused_first(scene: Scene) -> None:
    am = await scene.am("ann", "b")
    await am.request(1, GB, avoid=scene.first)
    await am.until_has(1)
    await am.request(8, GB)
    await am.until_has(8)
    refused = await am.refusal("NODE_BLACKLISTED", scene.first)
    assert refused.message == "Node is blacklisted"
    assert {str(container.node_id) for container in await _containers(scene, am)} == {str(scene.second)}


async def _containers(scene: Scene, am: AM) -> list[ContainerReport]:
    attempt_id = (await scene.cluster.client.report(am.app_id)).current_attempt_id
    return list(await scene.cluster.client.containers(attempt_id))


async def test_a_node_reserved_for_another_application_or_full_is_refused_next(scene: Scene) -> None:
    """Six of eight GB are used on each node; a request that does not fit reserves one of them."""
    for user, avoided in (("ann", scene.first), ("dan", scene.second)):
        filler = await scene.am(user, "b")
        await filler.request(6, GB, avoid=avoided)
        await filler.until_has(6)
    large, small = await scene.am("bob", "b"), await scene.am("cy", "b")
    await large.request(1, 4 * GB)
    assert numbers(await large.refusal("NODE_FULL")) == (4 * GB, 2 * GB)
    (reservation,) = (await scene.cluster.client.explain(large.app_id)).reservations

    await small.request(9, GB)
    assert numbers(await small.refusal("QUEUE_NODE_RESERVED", reservation.node_id)) == (4 * GB, None)
    await large.request(0, 4 * GB)
    await small.until_has(4)
    assert numbers(await small.refusal("NODE_TOO_SMALL", reservation.node_id)) == (GB, 0)


async def test_the_limits_of_queues_and_users_are_checked_after_the_node(scene: Scene) -> None:
    """Of 16 GB, queue a may use 8 and its leaf `one` 4, which is also the limit of a user there."""
    ann, bob = await scene.am("ann", "root.a.one"), await scene.am("bob", "root.a.two")
    await ann.request(9, GB)
    await ann.until_has(5)
    limit = await ann.refusal("USER_LIMIT")
    assert numbers(limit) == (5 * GB, 4 * GB), (
        "one container above the limit: the use before the allocation is compared with it"
    )
    assert any(setting.key.endswith("root.a.one.user-limit-factor") for setting in limit.settings)

    await bob.request(9, 2 * GB)
    await bob.until_has(1)
    assert numbers(await bob.refusal("QUEUE_HEADROOM")) == (2 * GB, GB), "5 and 2 of the 8 GB above both are used"

    await bob.request(0, 2 * GB)
    await bob.request(9, GB)
    await bob.until_has(2)
    full = await bob.refusal("QUEUE_MAXIMUM")
    assert (full.subject, *numbers(full)) == ("root.a", 8 * GB, 8 * GB)
    assert [setting.key for setting in full.settings] == [f"{PREFIX}.root.a.maximum-capacity"]


async def test_the_am_limit_of_a_queue_keeps_an_application_waiting(scene: Scene) -> None:
    """0.4 of the 16 GB that b may use is 6.4, rounded up to 7 minimum containers: a second AM of 4 GB waits."""
    client = scene.cluster.client
    apps = []
    for _ in range(2):
        app_id = (await client.new_application()).application_id
        launch = ContainerLaunchContext(("sleep 600",))
        await client.submit(ApplicationSubmissionContext(app_id, launch, Resource(4 * GB, 1), queue="b"))
        apps.append(app_id)

    async def waits() -> ObstacleReport | None:
        found = [o for o in (await client.explain(apps[1])).obstacles if o.reason == "AM_QUEUE_LIMIT"]
        return found[0] if found else None

    obstacle = await scene.cluster.until(waits)
    assert obstacle is not None
    assert numbers(obstacle) == (8 * GB, 7 * GB)
    assert obstacle.node_id is None
    await asyncio.gather(*(client.kill(app_id) for app_id in apps))
