"""Mission case C7 on real processes: the checks before a container is given, each told by explain with its numbers.

The masters are played by the test, so that they ask for just what it takes; nodes, ResourceManager and the scheduler's
decisions are real.
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
from yarn.asks import ANY, ResourceRequest
from yarn.containers import ContainerLaunchContext
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
class Master:
    """A master that asks and takes what it gets. `has` are its containers."""

    cluster: LocalCluster
    app_id: ApplicationId
    rm: ApplicationMasterProtocol
    has: list[ContainerId] = field(default_factory=list)
    _response_id: int = 0

    async def ask(self, count: int, memory_mb: int, *, avoid: NodeId | None = None) -> None:
        """Want so many containers of this size from now on, on any node but the one to avoid."""
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
        """What explain says once it names this reason (on this node)."""

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

    async def master(self, user: str, queue: str) -> Master:
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
        return Master(self.cluster, app_id, rm)


@pytest_asyncio.fixture
async def scene() -> AsyncIterator[Scene]:
    async with LocalCluster(2, memory_mb=8 * GB, settings=SETTINGS, fast=True) as cluster, AsyncExitStack() as stack:
        yield Scene(cluster, stack)


def numbers(obstacle: ObstacleReport) -> tuple[int | None, int | None]:
    """MB asked (or in use) and MB that are the limit."""
    return tuple(None if amount is None else amount.memory_mb for amount in (obstacle.asked, obstacle.bound))  # type: ignore[return-value]


async def test_first_the_node_has_to_be_one_that_the_application_takes(scene: Scene) -> None:
    master = await scene.master("ann", "b")
    await master.ask(1, GB, avoid=scene.first)
    await master.until_has(1)
    await master.ask(8, GB)
    await master.until_has(8)
    refused = await master.refusal("NODE_BLACKLISTED", scene.first)
    assert refused.message == "Node is blacklisted"
    assert {str(container.node_id) for container in await _containers(scene, master)} == {str(scene.second)}


async def _containers(scene: Scene, master: Master) -> list[ContainerReport]:
    attempt_id = (await scene.cluster.client.report(master.app_id)).current_attempt_id
    return list(await scene.cluster.client.containers(attempt_id))


async def test_then_it_must_not_be_kept_for_another_and_have_room_for_the_least(scene: Scene) -> None:
    """Six of eight GB are taken on each node: what does not fit there keeps one for itself."""
    for user, avoided in (("ann", scene.first), ("dan", scene.second)):
        filler = await scene.master(user, "b")
        await filler.ask(6, GB, avoid=avoided)
        await filler.until_has(6)
    large, small = await scene.master("bob", "b"), await scene.master("cy", "b")
    await large.ask(1, 4 * GB)
    assert numbers(await large.refusal("NODE_FULL")) == (4 * GB, 2 * GB)
    (kept,) = (await scene.cluster.client.explain(large.app_id)).reservations

    await small.ask(9, GB)
    assert numbers(await small.refusal("QUEUE_NODE_RESERVED", kept.node_id)) == (4 * GB, None)
    await large.ask(0, 4 * GB)
    await small.until_has(4)
    assert numbers(await small.refusal("NODE_TOO_SMALL", kept.node_id)) == (GB, 0)


async def test_then_every_queue_up_the_path_and_the_user_have_their_limits(scene: Scene) -> None:
    """Of 16 GB a may have 8, and its leaf `one` 4, which is what one user may have there."""
    ann, bob = await scene.master("ann", "root.a.one"), await scene.master("bob", "root.a.two")
    await ann.ask(9, GB)
    await ann.until_has(5)
    limit = await ann.refusal("USER_LIMIT")
    assert numbers(limit) == (5 * GB, 4 * GB), "one container above it: what is used is compared, then one is given"
    assert any(setting.key.endswith("root.a.one.user-limit-factor") for setting in limit.settings)

    await bob.ask(9, 2 * GB)
    await bob.until_has(1)
    assert numbers(await bob.refusal("QUEUE_HEADROOM")) == (2 * GB, GB), "5 and 2 of the 8 GB above both are used"

    await bob.ask(0, 2 * GB)
    await bob.ask(9, GB)
    await bob.until_has(2)
    full = await bob.refusal("QUEUE_MAXIMUM")
    assert (full.subject, *numbers(full)) == ("root.a", 8 * GB, 8 * GB)
    assert [setting.key for setting in full.settings] == [f"{PREFIX}.root.a.maximum-capacity"]


async def test_masters_have_a_limit_of_their_own(scene: Scene) -> None:
    """0.4 of the 16 GB that b may have are 6.4, seven of the least containers: a second master of 4 GB waits."""
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
