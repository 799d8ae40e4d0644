"""The RM's services over real gRPC: who may call, requests, and signed replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from rm.shell.master_launcher import SUBMIT_TIME, WEB_PROXY_BASE
from tests.rm.builders import done, resource_request
from tests.rm.served_cluster import CLIENT, SOON_S, Cluster, Node, configuration, serving, submit, until
from wire.files.credentials import Credentials
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.tokens import NodeTokenSecretManager
from yarn.applications import ApplicationFilter, ApplicationReport, ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.containers import Token
from yarn.errors import (
    AccessControlException,
    ApplicationAttemptNotFoundException,
    ApplicationNotFoundException,
    InvalidArgumentException,
    InvalidContainerException,
    InvalidToken,
    YarnException,
    YARNFeatureNotEnabledException,
)
from yarn.faults import ConfigurationException
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.protocols.admin import ResourceOption
from yarn.protocols.client import KillApplicationRequest, QueueInfoRequest
from yarn.protocols.master import (
    AllocateRequest,
    FinishApplicationMasterRequest,
    RegisterApplicationMasterRequest,
)
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import (
    ContainerType,
    FinalApplicationStatus,
    NodeAction,
    NodeState,
    YarnApplicationAttemptState,
    YarnApplicationState,
)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with serving(configuration(tmp_path)) as served:
        yield served


async def run_am(cluster: Cluster, node: Node, client: ApplicationClientProtocol) -> tuple[ApplicationId, Token]:
    """An application whose AM was started on `node`, and the token that it found there."""
    app = await submit(client)
    count = len(node.started)
    await node.beat()
    await until(lambda: len(node.started) > count)
    context = cluster.rm.core.context
    attempt_id = ApplicationAttemptId(app, 1)
    await until(lambda: "LAUNCHED" in str(context.apps[app].attempts[attempt_id].state))
    return app, node.amrm_token()


async def registered_am(
    cluster: Cluster, node: Node, client: ApplicationClientProtocol
) -> tuple[ApplicationId, ApplicationMasterProtocol]:
    app, token = await run_am(cluster, node, client)
    am = await cluster.am(token)
    await am.register_application_master(RegisterApplicationMasterRequest("here", 1, "http://here"))
    return app, am


# AM launch


async def test_an_am_finds_its_token_and_the_rms_variables(cluster: Cluster) -> None:
    """AMLauncher.setupTokens: the RM's tokens and variables are added to those of the client."""
    node, client = await cluster.node(), await cluster.client()
    theirs = Credentials(secrets={"mine": b"s"}).to_bytes()
    app = await submit(client, environment={"A": "1", SUBMIT_TIME: "forged"}, tokens=theirs)
    await node.beat()
    await until(lambda: bool(node.started))
    (started,) = node.started
    report = await client.get_application_report(app)
    assert started.context.environment == {
        "A": "1",
        WEB_PROXY_BASE: f"/proxy/{app}",
        SUBMIT_TIME: str(report.start_time_ms),
    }
    assert Credentials.from_bytes(started.context.tokens).secrets == {"mine": b"s"}
    assert started.identifier.container_type is ContainerType.APPLICATION_MASTER
    assert started.identifier.user == started.caller.user == "ann"
    assert started.identifier.rm_identifier == node.registration.rm_identifier
    assert started.identifier.expiry_ms - started.identifier.creation_time_ms == 600_000
    assert started.caller.attempt_id == ApplicationAttemptId(app, 1)


async def test_an_am_that_its_node_refuses_fails_with_the_nodes_diagnostics(cluster: Cluster) -> None:
    node, client = await cluster.node(), await cluster.client()
    node.refusal = InvalidContainerException("Container rejected as it is allocated by a previous RM")
    app = await submit(client)
    context = cluster.rm.core.context
    for number in (1, 2):
        await node.beat()
        attempt = context.apps[app].attempts[ApplicationAttemptId(app, number)]
        await until(lambda one=attempt: one.state.name == "FAILED")  # type: ignore[misc]
    report = await client.get_application_report(app)
    assert report.state is YarnApplicationState.FAILED
    assert f"Error launching {ApplicationAttemptId(app, 2)}" in report.diagnostics
    assert "org.apache.hadoop.yarn.exceptions.InvalidContainerException: Container rejected" in report.diagnostics


async def test_an_am_whose_node_is_lost_is_retried_elsewhere(tmp_path: Path) -> None:
    conf = configuration(tmp_path, yarn__resourcemanager__nodemanager_connect_retries="0")
    async with serving(conf) as cluster:
        node, client = await cluster.node(), await cluster.client()
        app = await submit(client)
        await node.close()
        await node.beat()
        attempts = cluster.rm.core.context.apps[app].attempts
        await until(lambda: ApplicationAttemptId(app, 2) in attempts)
        report = await client.get_application_attempt_report(ApplicationAttemptId(app, 1))
        assert report.state is YarnApplicationAttemptState.FAILED
        assert "java.net.ConnectException" in report.diagnostics


async def test_malformed_credentials_fail_the_attempt(cluster: Cluster) -> None:
    node, client = await cluster.node(), await cluster.client()
    app = await submit(client, tokens=b"rubbish")
    await node.beat()
    attempts = cluster.rm.core.context.apps[app].attempts
    await until(lambda: ApplicationAttemptId(app, 2) in attempts)
    report = await client.get_application_attempt_report(ApplicationAttemptId(app, 1))
    assert "credentials start with b'rubb', must be b'HDTS'" in report.diagnostics


# Calls of AMs


async def test_an_am_gets_container_tokens_that_the_node_accepts(cluster: Cluster) -> None:
    node, client = await cluster.node(), await cluster.client()
    app, am = await registered_am(cluster, node, client)
    await am.allocate(AllocateRequest(0, asks=(resource_request(2),)))
    await node.beat(node.running(node.started[0].identifier.container_id))
    await node.beat(node.running(node.started[0].identifier.container_id))
    reply = await am.allocate(AllocateRequest(1))
    assert len(reply.allocated) == 2
    for container in reply.allocated:
        promise = node.container_tokens.check_for(container.token, node.node_id)
        assert (promise.container_id, promise.user, promise.resource) == (container.id, "ann", container.resource)
        assert promise.container_type is ContainerType.TASK
        assert promise.expiry_ms - promise.creation_time_ms == 600_000
    (nm_token,) = reply.nm_tokens
    assert nm_token.node_id == node.node_id
    assert node.nm_tokens.check_for(nm_token.token, node.node_id).attempt_id == ApplicationAttemptId(app, 1)


async def test_a_reply_that_is_sent_again_is_the_same_to_the_last_token(cluster: Cluster) -> None:
    node, client = await cluster.node(), await cluster.client()
    _, am = await registered_am(cluster, node, client)
    await am.allocate(AllocateRequest(0, asks=(resource_request(1),)))
    await node.beat(node.running(node.started[0].identifier.container_id))
    first = await am.allocate(AllocateRequest(1))
    assert first.allocated
    # A later call would be signed at a later time.
    await asyncio.sleep(0.005)
    assert await am.allocate(AllocateRequest(1)) == first


async def test_an_am_without_its_own_token_is_refused(cluster: Cluster) -> None:
    """Without a token, with a forged one or a node's: nothing changes, and the AM can still register afterwards."""
    node, client = await cluster.node(), await cluster.client()
    _, token = await run_am(cluster, node, client)
    forged = replace(token, password=b"x" * 32)
    for bad in (None, forged, cluster.node_tokens.create(node.node_id)):
        am = await cluster.am(bad)
        with pytest.raises(InvalidToken):
            await am.register_application_master(RegisterApplicationMasterRequest())
    am = await cluster.am(token)
    await am.register_application_master(RegisterApplicationMasterRequest())


async def test_an_am_acts_for_the_attempt_of_its_token(cluster: Cluster) -> None:
    """Two AMs: each call changes only its own application."""
    node, client = await cluster.node(), await cluster.client()
    first, _ = await registered_am(cluster, node, client)
    second, am = await registered_am(cluster, node, client)
    await am.allocate(AllocateRequest(0, progress=0.5))
    assert (await client.get_application_report(second)).progress == 0.5
    assert (await client.get_application_report(first)).progress == 0.0


async def test_an_am_of_an_attempt_that_is_over_is_refused(cluster: Cluster) -> None:
    """As on a connection that is still open there (exit-refused-calls: allocate of an application that was killed)."""
    node, client = await cluster.node(), await cluster.client()
    app, am = await registered_am(cluster, node, client)
    finish = FinishApplicationMasterRequest(FinalApplicationStatus.SUCCEEDED, "well done")
    while not (await am.finish_application_master(finish)).is_unregistered:
        continue
    await node.beat(done(node.started[0].identifier.container_id))
    await _until_state(client, app, YarnApplicationState.FINISHED)
    assert (await am.finish_application_master(finish)).is_unregistered
    attempt_id = ApplicationAttemptId(app, 1)
    with pytest.raises(ApplicationAttemptNotFoundException, match=f"{attempt_id} doesn't exist in ApplicationMasterS"):
        await am.allocate(AllocateRequest(0))


async def _until_state(
    client: ApplicationClientProtocol, app: ApplicationId, state: YarnApplicationState
) -> ApplicationReport:
    async with asyncio.timeout(SOON_S):
        while (report := await client.get_application_report(app)).state is not state:
            continue
    return report


async def test_an_unmanaged_am_gets_its_token_in_its_users_report(cluster: Cluster) -> None:
    """RMAppImpl.createAndGetApplicationReport: to its own user alone, and until it has registered."""
    client, other = await cluster.client("ann"), await cluster.client("bob")
    new = await client.get_new_application()
    app = new.application_id
    await client.submit_application(ApplicationSubmissionContext(app, unmanaged_am=True, resource=Resource(1024, 1)))
    assert (await other.get_application_report(app)).am_rm_token is None
    report = await client.get_application_report(app)
    assert report.am_rm_token is not None
    assert [each.am_rm_token for each in await client.get_applications(ApplicationFilter())] == [report.am_rm_token]
    assert [each.am_rm_token for each in await other.get_applications(ApplicationFilter())] == [None]
    am = await cluster.am(report.am_rm_token)
    await am.register_application_master(RegisterApplicationMasterRequest("here"))
    assert (await client.get_application_report(app)).am_rm_token is None
    assert [each.am_rm_token for each in await client.get_applications(ApplicationFilter())] == [None]
    assert (await am.allocate(AllocateRequest(0))).response_id == 1


# Master keys


async def test_a_new_key_reaches_nodes_and_ams(cluster: Cluster) -> None:
    node, client = await cluster.node(), await cluster.client()
    _, am = await registered_am(cluster, node, client)
    assert (await node.beat()).nm_token_key is None
    keys = cluster.rm.keys
    for ring in (keys.masters.keys, keys.nodes.keys, keys.containers.keys):
        ring.roll()
    reply = await node.beat()
    assert (reply.nm_token_key, reply.container_token_key) == (keys.nodes.keys.next, keys.containers.keys.next)
    renewed = (await am.allocate(AllocateRequest(0))).am_rm_token
    assert renewed is not None
    am.use_token(renewed)
    for ring in (keys.masters.keys, keys.nodes.keys, keys.containers.keys):
        ring.activate_next()
    assert (await am.allocate(AllocateRequest(1))).am_rm_token is None


async def test_a_node_that_registers_while_keys_change_gets_the_current_ones_first(cluster: Cluster) -> None:
    """ResourceTrackerService: registerNodeManager sends getCurrentKey, which signs tokens until the next key is
    activated; the first heartbeat brings getNextKey.
    """
    keys = cluster.rm.keys
    for ring in (keys.nodes.keys, keys.containers.keys):
        ring.roll()
    node = await cluster.node()
    registration = node.registration
    assert (registration.nm_token_key, registration.container_token_key) == (
        keys.nodes.keys.current,
        keys.containers.keys.current,
    )
    reply = await node.beat()
    assert (reply.nm_token_key, reply.container_token_key) == (keys.nodes.keys.next, keys.containers.keys.next)


# Calls of nodes


async def test_a_node_without_the_clusters_secret_is_refused(cluster: Cluster) -> None:
    stranger = NodeId("127.0.0.9", 1)
    request = RegisterNodeManagerRequest(stranger, 1, Resource(8192, 8))
    for token in (None, NodeTokenSecretManager(b"other secret of a cluster").create(stranger)):
        tracker = await cluster.tracker(token)
        with pytest.raises(InvalidToken):
            await tracker.register_node_manager(request)
    assert (await (await cluster.client()).get_cluster_metrics()).total == 0


async def test_a_node_may_only_report_for_itself(cluster: Cluster) -> None:
    node, client = await cluster.node(), await cluster.client()
    other = await cluster.tracker(cluster.node_tokens.create(NodeId("127.0.0.9", 1)))
    with pytest.raises(AccessControlException, match=f"127.0.0.9:1 may not act for {node.node_id}"):
        await other.node_heartbeat(NodeHeartbeatRequest(node.node_id, 0))
    with pytest.raises(AccessControlException):
        await other.unregister_node_manager(node.node_id)
    with pytest.raises(AccessControlException):
        await other.register_node_manager(RegisterNodeManagerRequest(node.node_id, 1, Resource(1, 1)))
    assert (await client.get_cluster_metrics()).active == 1
    assert (await node.beat()).response_id == 1, "the other's heartbeat did not count"


async def test_a_refused_node_gets_no_keys(cluster: Cluster) -> None:
    small = NodeId("127.0.0.9", 1)
    tracker = await cluster.tracker(cluster.node_tokens.create(small))
    reply = await tracker.register_node_manager(RegisterNodeManagerRequest(small, 1, Resource(10, 1)))
    assert reply.action is NodeAction.SHUTDOWN
    assert reply.container_token_key is reply.nm_token_key is None


async def test_racks_are_read_from_the_table(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("# host rack\n127.0.0.2 /r1\nnonsense\n")
    conf = configuration(
        tmp_path,
        net__topology__node__switch__mapping__impl="org.apache.hadoop.net.TableMapping",
        net__topology__table__file__name=str(tmp_path / "table"),
    )
    async with serving(conf) as cluster:
        await cluster.node("127.0.0.2")
        await cluster.node("127.0.0.3")
        nodes = await (await cluster.client()).get_cluster_nodes(frozenset({NodeState.RUNNING}))
    assert {node.node_id.host: node.rack for node in nodes} == {"127.0.0.2": "/r1", "127.0.0.3": "/default-rack"}


# Calls of clients


async def test_the_diagnostics_of_a_kill_name_the_user_and_address(cluster: Cluster) -> None:
    """The sentence of a real cluster (exit-summary: "was killed by user alice at 127.0.0.1")."""
    client = await cluster.client("alice")
    app = await submit(client)
    while not (await client.force_kill_application(KillApplicationRequest(app, " enough "))).is_kill_completed:
        continue
    report = await _until_state(client, app, YarnApplicationState.KILLED)
    assert report.diagnostics == (
        f"Application {app} was killed by user alice at 127.0.0.1 with diagnostic message: enough"
    )


@pytest.mark.parametrize("user", ["", "..", "../../etc", "a/b", ".hidden", "x" * 129, "a b"])
async def test_an_invalid_user_name_is_refused(cluster: Cluster, user: str) -> None:
    """The name becomes that of a directory on the nodes."""
    client = await cluster.client(user)
    with pytest.raises(AccessControlException, match="invalid user name"):
        await submit(client)
    assert await client.get_applications(ApplicationFilter()) == ()


async def test_an_unknown_application_is_refused_with_yarns_message(cluster: Cluster) -> None:
    client = await cluster.client()
    app = ApplicationId(1, 1)
    with pytest.raises(ApplicationNotFoundException, match=f"Application with id '{app}' doesn't exist in RM"):
        await client.get_application_report(app)
    with pytest.raises(ApplicationNotFoundException, match=f"Trying to kill an absent application {app}"):
        await client.force_kill_application(KillApplicationRequest(app))


async def test_queues_are_reported_with_their_applications(cluster: Cluster) -> None:
    node, client = await cluster.node(), await cluster.client()
    app, am = await registered_am(cluster, node, client)
    await am.allocate(AllocateRequest(0, asks=(resource_request(30),)))
    info = await client.get_queue_info(QueueInfoRequest("root", children=True, applications=True))
    assert info is not None
    (child,) = info.children
    assert (child.path, child.capacity, child.absolute_capacity) == ("root.default", 1.0, 1.0)
    assert child.current_capacity == pytest.approx(1024 / 8192)
    assert child.absolute_used_capacity == pytest.approx(1024 / 8192)
    assert [report.application_id for report in info.applications] == [app]
    statistics = child.statistics
    assert (statistics.apps_submitted, statistics.apps_running, statistics.apps_pending) == (1, 1, 0)
    assert (statistics.allocated_memory_mb, statistics.allocated_containers) == (1024, 1)
    assert (statistics.pending_containers, statistics.pending_memory_mb) == (30, 30 * 1024)
    assert (statistics.active_users, statistics.available_memory_mb) == (1, 8192 - 1024)


async def test_an_unknown_queue_is_not_an_error(cluster: Cluster) -> None:
    assert await (await cluster.client()).get_queue_info(QueueInfoRequest("nosuch")) is None


# Calls of operators


async def test_queues_are_read_again_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    conf = configuration(tmp_path)
    capacities = {
        "yarn.scheduler.capacity.root.queues": "default,more",
        "yarn.scheduler.capacity.root.more.capacity": "60",
    }
    now: list[Configuration | YarnException] = []

    def reload() -> Configuration:
        if isinstance(now[0], YarnException):
            raise now[0]
        return now[0]

    async with serving(conf, reload=reload) as cluster:
        admin, client = await cluster.admin(), await cluster.client()
        for broken in (ConfigurationException("yarn-site.xml:3: malformed XML"), conf.overridden(capacities)):
            now[:] = [broken]
            with pytest.raises(ConfigurationException):
                await admin.refresh_queues()
            assert await client.get_queue_info(QueueInfoRequest("more")) is None
        now[:] = [
            conf.overridden(
                {
                    **capacities,
                    "yarn.scheduler.capacity.root.default.capacity": "40",
                }
            )
        ]
        await admin.refresh_queues()
        more = await client.get_queue_info(QueueInfoRequest("more"))
    assert more is not None
    assert more.capacity == pytest.approx(0.6)


async def test_without_files_there_is_nothing_to_read_again(cluster: Cluster) -> None:
    with pytest.raises(YARNFeatureNotEnabledException, match="started without configuration files"):
        await (await cluster.admin()).refresh_queues()


async def test_nodes_are_resized_all_or_none(cluster: Cluster) -> None:
    node, admin, client = await cluster.node(), await cluster.admin(), await cluster.client()
    size = ResourceOption(Resource(1024, 1))
    with pytest.raises(YarnException, match=r"127[.]0[.]0[.]9:1"):
        await admin.update_node_resource(((node.node_id, size), (NodeId("127.0.0.9", 1), size)))
    assert (await client.get_cluster_nodes(frozenset()))[0].capability == Resource(8192, 8)
    await admin.update_node_resource(((node.node_id, ResourceOption(Resource(4096, 4))),))
    assert (await client.get_cluster_nodes(frozenset()))[0].capability == Resource(4096, 4)


async def test_a_malformed_submission_changes_nothing(cluster: Cluster) -> None:
    client = await cluster.client()
    with pytest.raises(InvalidArgumentException, match="submitApplication: Value out of range"):
        await submit_with_memory(client, 1 << 70)
    assert await client.get_applications(ApplicationFilter()) == ()
    assert CLIENT in cluster.addresses


async def submit_with_memory(client: ApplicationClientProtocol, memory_mb: int) -> None:
    context = ApplicationSubmissionContext(ApplicationId(1, 1), resource=Resource(memory_mb, 1))
    await client.submit_application(context)
