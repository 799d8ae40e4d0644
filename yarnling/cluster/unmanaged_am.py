"""An ApplicationMaster in the caller's process: YARN's unmanaged AM, which no NodeManager starts.

    async with cluster.unmanaged_am() as am:
        await am.rm.register()
        am.rm.add_request(ContainerRequest(Resource(128, 1), priority=0))
        async for event in am.rm.events(): ...

The program under test runs in the process of the test, where a debugger can follow it. For the cluster it is an AM like
any other. The rules are those of UnmanagedAMLauncher: the AM's token is in the application's report once it is
accepted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from msgspec import Struct

from am.client.am_rm_client import AMRMClient
from am.client.nm_client import NMClient
from wire.protocols.master import ApplicationMasterProtocol
from wire.retry import RetryPolicy
from yarn.applications import ApplicationReport, ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.resource import Resource
from yarn.settings.resourcemanager import (
    AM_HEARTBEAT_INTERVAL,
    NM_CLIENT_CONNECT_MAX_WAIT,
    NM_CLIENT_CONNECT_RETRY_INTERVAL,
    SCHEDULER_ADDRESS,
)
from yarnling.cluster.client import Client
from yarnling.cluster.conditions import until
from yarnling.cluster.resource_managers import failover

NAME = "unmanaged"


class UnmanagedAM(Struct, frozen=True):
    """An attempt that may register. `rm` is its client of the ResourceManager, `nms` its client of the NodeManagers."""

    attempt_id: ApplicationAttemptId
    rm: AMRMClient
    nms: NMClient

    @property
    def application_id(self) -> ApplicationId:
        return self.attempt_id.application_id


@asynccontextmanager
async def unmanaged_am(
    addresses: Mapping[str, str], conf: Configuration, *, queue: str = "default", name: str = NAME, user: str = ""
) -> AsyncIterator[UnmanagedAM]:
    """Submit an application of `user` and yield its AM.

    The application is killed at the end if it has not unregistered. `addresses` and `conf` are the cluster's
    (LocalCluster.addresses, .configuration). All calls are made in the caller's event loop.
    """
    async with Client(addresses, user=user, conf=conf) as client:
        app_id = (await client.new_application()).application_id
        await client.submit(
            ApplicationSubmissionContext(app_id, resource=Resource(1, 1), queue=queue, name=name, unmanaged_am=True)
        )

        async def launched() -> ApplicationReport | None:
            report = await client.report(app_id)
            return report if report.am_rm_token is not None else None

        failure: Exception | None = None
        try:
            report = await until(launched)
            assert report is not None
            proxy = ApplicationMasterProtocol(
                failover(addresses, SCHEDULER_ADDRESS.key), token=report.am_rm_token, retry=RetryPolicy.read(conf)
            )
            retry = RetryPolicy.read(conf, NM_CLIENT_CONNECT_MAX_WAIT, NM_CLIENT_CONNECT_RETRY_INTERVAL)
            async with (
                AMRMClient(proxy, heartbeat_interval_ms=AM_HEARTBEAT_INTERVAL.of(conf)) as rm,
                NMClient(rm.nm_tokens, retry) as nms,
            ):
                # Errors of the caller's code are raised as they are, not in a group with errors of heartbeats.
                try:
                    yield UnmanagedAM(report.current_attempt_id, rm, nms)
                except Exception as error:
                    failure = error
            if failure is not None:
                raise failure
        finally:
            await _end(client, app_id)


async def _end(client: Client, app_id: ApplicationId) -> None:
    """Kill the application; a no-op if it has ended."""
    try:
        await client.kill(app_id, "Its ApplicationMaster left without unregistering.")
    except YarnException as error:
        raise YarnException(f"{app_id} could not be ended: {error.message}") from error
