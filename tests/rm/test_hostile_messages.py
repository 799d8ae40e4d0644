"""Messages that no honest caller sends, with valid tokens: refused or carried out, and the RM keeps running.

Records are random and well-formed, so that they get past the codec: negative sizes, unknown ids, numbers at their
ends. A step of the core that fails is a bug, which the server would log.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from msgspec.structs import replace

from tests.rm.served_cluster import ADMIN, CLIENT, SCHEDULER, TRACKER, Cluster, configuration, serving, submit, until
from tests.wire.random_records import random_value, record_types
from wire.caller import caller_metadata
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.protocols.tracker import ResourceTracker
from wire.rpc import Proxy, Rpc
from yarn.applications import ApplicationSubmissionContext
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.protocols.client import (
    KillApplicationRequest,
    MoveApplicationRequest,
    UpdatePriorityRequest,
    UpdateTimeoutsRequest,
)
from yarn.protocols.container_management import SignalContainerRequest
from yarn.protocols.master import AllocateRequest, RegisterApplicationMasterRequest
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest

CALLS = 120
"""Messages for each RPC; a soak may use more."""

NEVER_DONE = (
    ApplicationClientProtocol.fail_application_attempt,
    ApplicationClientProtocol.force_kill_application,
    ApplicationClientProtocol.get_application_report,
    ApplicationClientProtocol.get_application_attempt_report,
    ApplicationClientProtocol.get_application_attempts,
    ApplicationClientProtocol.get_container_report,
    ApplicationClientProtocol.get_containers,
    ApplicationClientProtocol.submit_application,
    ApplicationClientProtocol.get_resource_profile,
    ApplicationClientProtocol.get_resource_profiles,
    ApplicationMasterProtocol.register_application_master,
    ResourceTracker.unregister_node_manager,
    ResourceManagerAdministrationProtocol.add_to_cluster_node_labels,
    ResourceManagerAdministrationProtocol.remove_from_cluster_node_labels,
    ResourceManagerAdministrationProtocol.replace_labels_on_nodes,
    ResourceManagerAdministrationProtocol.refresh_queues,
    ResourceManagerAdministrationProtocol.refresh_nodes,
    ResourceManagerAdministrationProtocol.refresh_admin_acls,
    ResourceManagerAdministrationProtocol.refresh_service_acls,
    ResourceManagerAdministrationProtocol.refresh_cluster_max_priority,
)
"""Their ids are never those of existing objects, or they can be done only once."""

PROTOCOLS: list[tuple[str, type[Proxy]]] = [
    (CLIENT, ApplicationClientProtocol),
    (SCHEDULER, ApplicationMasterProtocol),
    (TRACKER, ResourceTracker),
    (ADMIN, ResourceManagerAdministrationProtocol),
]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with serving(configuration(tmp_path)) as served:
        yield served


@pytest.mark.parametrize(
    ("key", "rpc"),
    [
        pytest.param(key, rpc, id=rpc.method, marks=pytest.mark.slow if rpc.bulky else ())
        for key, protocol in PROTOCOLS
        for rpc in protocol.rpcs
    ],
)
async def test_no_message_breaks_the_rm(
    cluster: Cluster, key: str, rpc: Rpc[Any, Any], caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(rpc.method)
    kind, _ = record_types(rpc)
    node, user = await cluster.node(), await cluster.client()
    app = await submit(user)
    await node.beat()
    await until(lambda: bool(node.started))
    token = cluster.client_token
    if key in (SCHEDULER, TRACKER):
        token = node.amrm_token() if key == SCHEDULER else cluster.node_tokens.create(node.node_id)
    metadata = caller_metadata("ann", token)
    if rpc in (ApplicationMasterProtocol.allocate, ApplicationMasterProtocol.finish_application_master):
        await (await cluster.am(node.amrm_token())).register_application_master(RegisterApplicationMasterRequest())
    done = 0
    response_id = node.response_id if key == TRACKER else 0
    async with grpc.aio.insecure_channel(cluster.addresses[key]) as channel:
        call: Any = channel.unary_unary(rpc.path)
        for number in range(CALLS):
            record = _at_home(random_value(rng, kind), rng, app, node.node_id, number)
            if isinstance(record, (AllocateRequest, NodeHeartbeatRequest)):
                record = replace(record, response_id=response_id)
            with refusals_passed_over():
                reply = rpc.reply.decode(await call(rpc.request.encode(record), metadata=metadata, timeout=60))
                response_id = getattr(reply, "response_id", 0)
                done += 1
    # Random requests nearly always fail a check; most other calls succeed.
    assert done > (0 if rpc is ApplicationMasterProtocol.allocate else CALLS // 10) or rpc in NEVER_DONE
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert (await user.get_application_report(app)).application_id == app


def _at_home(record: Any, rng: random.Random, app: ApplicationId, node_id: NodeId, number: int) -> Any:
    """Every other record refers to existing ids, so that it passes the first check."""
    if isinstance(record, (RegisterNodeManagerRequest, NodeHeartbeatRequest)):
        return replace(record, node_id=node_id)
    if rng.random() < 0.5:
        return record
    match record:
        case AllocateRequest():
            return replace(record, asks=(), releases=(), blacklist_additions=())
        case ApplicationSubmissionContext():
            return replace(record, application_id=ApplicationId(app.cluster_timestamp, number + 2), queue="default")
        case KillApplicationRequest():
            return replace(record, application_id=ApplicationId(1, 1))
        case MoveApplicationRequest():
            return MoveApplicationRequest(app, "default")
        case UpdatePriorityRequest():
            return replace(record, application_id=app)
        case UpdateTimeoutsRequest():
            return UpdateTimeoutsRequest(app, "2999-12-31T00:00:00.000+0000")
        case SignalContainerRequest():
            return replace(record, container_id=ContainerId(ApplicationAttemptId(app, 1), 1))
        case NodeId():
            return NodeId("127.0.0.9", 1)
    return record


@contextmanager
def refusals_passed_over() -> Iterator[None]:
    """Allows refusals, but no internal errors."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        if error.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN):
            raise
