"""ApplicationClientProtocol's changes and queries over real gRPC: what goes in, what comes back, what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.rm.served_cluster import Cluster, configuration, serving, submit, until
from yarn.applications import ApplicationFilter, ApplicationSubmissionContext, TimeRange
from yarn.errors import YarnException, YARNFeatureNotEnabledException
from yarn.ids import ApplicationId, ContainerId
from yarn.nodes import node_groups
from yarn.protocols.client import (
    KillApplicationRequest,
    MoveApplicationRequest,
    QueueInfoRequest,
    QueueUserAcls,
    UpdatePriorityRequest,
    UpdateTimeoutsRequest,
)
from yarn.protocols.container_management import SignalContainerRequest
from yarn.protocols.master import ResourceTypeInfo
from yarn.resource import Resource
from yarn.states import ApplicationAccessType, LogAggregationStatus, NodeState, QueueACL, SignalContainerCommand
from yarn.times import format_iso8601, parse_iso8601

QUEUES = {
    "yarn__scheduler__capacity__root__queues": "default,dev",
    "yarn__scheduler__capacity__root__default__capacity": "50",
    "yarn__scheduler__capacity__root__dev__capacity": "50",
    "yarn__scheduler__capacity__root__dev__maximum_am_resource_percent": "0.25",
    "yarn__cluster__max_application_priority": "10",
    "yarn__resource_types": "yarn.io/gpu",
    "yarn__scheduler__capacity__resource_calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with serving(configuration(tmp_path, **QUEUES)) as served:
        yield served


async def accepted(cluster: Cluster) -> ApplicationId:
    await cluster.node()
    app = await submit(await cluster.client())
    await until(lambda: cluster.rm.core.context.apps[app].state.name == "ACCEPTED")
    return app


async def test_an_application_is_moved(cluster: Cluster) -> None:
    app, client = await accepted(cluster), await cluster.client()
    await client.move_application_across_queues(MoveApplicationRequest(app, "dev"))
    assert (await client.get_application_report(app)).queue == "root.dev"
    with pytest.raises(YarnException, match=r"^The specified Queue: nosuch doesn't exist$") as caught:
        await client.move_application_across_queues(MoveApplicationRequest(app, "nosuch"))
    assert caught.value.definite


async def test_a_priority_above_the_clusters_maximum_is_lowered_to_it(cluster: Cluster) -> None:
    app, client = await accepted(cluster), await cluster.client()
    assert await client.update_application_priority(UpdatePriorityRequest(app, 3)) == 3
    assert await client.update_application_priority(UpdatePriorityRequest(app, 30)) == 10
    assert (await client.get_application_report(app)).priority == 10


async def test_a_lifetime_is_changed_and_reported(cluster: Cluster) -> None:
    app, client = await accepted(cluster), await cluster.client()
    started_ms = (await client.get_application_report(app)).start_time_ms
    ends = format_iso8601(started_ms + 3_600_000)
    assert await client.update_application_timeouts(UpdateTimeoutsRequest(app, ends)) == ends
    report = await client.get_application_report(app)
    assert report.lifetime_ends == ends
    assert 0 < report.lifetime_remaining_s <= 3600
    with pytest.raises(YarnException, match="Expire time is not in ISO8601 format"):
        await client.update_application_timeouts(UpdateTimeoutsRequest(app, "tomorrow"))
    with pytest.raises(YarnException, match="At least one ApplicationTimeoutType"):
        await client.update_application_timeouts(UpdateTimeoutsRequest(app, None))
    assert parse_iso8601((await client.get_application_report(app)).lifetime_ends) == started_ms + 3_600_000


async def test_applications_are_listed_by_name_and_by_the_times_of_start_and_end(cluster: Cluster) -> None:
    """ClientRMService.getApplications: both bounds are included; what runs has finished at 0."""
    app, client = await accepted(cluster), await cluster.client()
    report = await client.get_application_report(app)

    async def found(**wanted: Any) -> bool:
        return [each.application_id for each in await client.get_applications(ApplicationFilter(**wanted))] == [app]

    started_ms = report.start_time_ms
    assert await found(name=report.name)
    assert not await found(name="another")
    assert await found(started=TimeRange(started_ms, started_ms))
    assert not await found(started=TimeRange(0, started_ms - 1))
    assert not await found(started=TimeRange(started_ms + 1))
    assert await found(finished=TimeRange(0, 0))
    assert not await found(finished=TimeRange(1))


async def test_times_and_labels_of_a_report_are_those_that_hadoop_sends(cluster: Cluster) -> None:
    """An unmanaged AM was launched at -1; the submit time is never set; without an attempt there is no log status."""
    client = await cluster.client()
    app = (await client.get_new_application()).application_id
    await client.submit_application(ApplicationSubmissionContext(app, unmanaged_am=True, queue="default"))
    await until(lambda: cluster.rm.core.context.apps[app].launch_ms != 0)
    report = await client.get_application_report(app)
    assert (report.launch_time_ms, report.submit_time_ms) == (-1, 0)
    assert report.log_aggregation is LogAggregationStatus.DISABLED
    refused = (await client.get_new_application()).application_id
    context = ApplicationSubmissionContext(refused, queue="nosuch", resource=Resource(1024, 1))
    await client.submit_application(context)
    await until(lambda: cluster.rm.core.context.apps[refused].state.name == "FAILED")
    report = await client.get_application_report(refused)
    assert (report.log_aggregation, report.am_label_expression) == (None, "<Not set>")


async def test_a_queue_reports_its_amounts_and_the_share_of_its_ams(cluster: Cluster) -> None:
    """CSQueueInfoProvider.getQueueConfigurations."""
    await cluster.node()
    queue = await (await cluster.client()).get_queue_info(QueueInfoRequest("dev"))
    assert queue is not None
    assert queue.maximum_am_percent == pytest.approx(0.25)
    whole = cluster.rm.core.context.scheduler.cluster_resource
    assert (queue.effective_maximum, queue.effective_minimum.memory_mb) == (whole, whole.memory_mb // 2)
    assert (queue.configured_minimum.memory_mb, queue.configured_maximum.memory_mb) == (0, 0)
    assert queue.default_label_expression == ""


async def test_a_signal_reaches_the_containers_node(cluster: Cluster) -> None:
    node, client = await cluster.node(), await cluster.client()
    await submit(client)
    await node.beat()
    await until(lambda: bool(node.started))
    request = SignalContainerRequest(node.started[0].identifier.container_id, SignalContainerCommand.GRACEFUL_SHUTDOWN)
    await client.signal_to_container(request)
    reply = await node.beat(node.running(request.container_id))
    assert reply.containers_to_signal == ((request.container_id, request.command),)


async def test_the_callers_rights_are_reported(tmp_path: Path) -> None:
    conf = configuration(
        tmp_path,
        yarn__acl__enable="true",
    )
    lists = {"root.acl_submit_applications": " ", "root.acl_administer_queue": " "}
    lists["root.default.acl_submit_applications"] = "ann"
    conf = conf.overridden({f"yarn.scheduler.capacity.{key}": value for key, value in lists.items()})
    async with serving(conf) as cluster:
        client = await cluster.client("ann")
        assert await client.get_queue_user_acls() == (
            QueueUserAcls("root", frozenset()),
            QueueUserAcls("root.default", frozenset({QueueACL.SUBMIT_APPLICATIONS})),
        )


async def test_resource_types_are_listed_in_their_order(cluster: Cluster) -> None:
    client = await cluster.client()
    types = await client.get_resource_type_info()
    assert types == (ResourceTypeInfo("memory-mb", "Mi"), ResourceTypeInfo("vcores"), ResourceTypeInfo("yarn.io/gpu"))


async def test_resource_profiles_are_refused_with_hadoops_message(cluster: Cluster) -> None:
    """ResourceProfilesManagerImpl.checkAndThrowExceptionWhenFeatureDisabled, class and message."""
    client = await cluster.client()
    message = (
        "Resource profile is not enabled, please enable resource profile feature before using its functions. "
        "(by setting yarn.resourcemanager.resource-profiles.enabled to true)"
    )
    for call in (client.get_resource_profiles(), client.get_resource_profile("default")):
        with pytest.raises(YARNFeatureNotEnabledException) as refused:
            await call
        assert refused.value.message == message
        assert refused.value.java_class == "org.apache.hadoop.yarn.exceptions.YARNFeatureNotEnabledException"


async def test_nodes_are_listed_by_their_states(cluster: Cluster) -> None:
    node, client = await cluster.node(), await cluster.client()
    await node.proxy.unregister_node_manager(node.node_id)
    other = await cluster.node("127.0.0.3")
    found = {state: await client.get_cluster_nodes(frozenset({state})) for state in NodeState}
    assert {state: [report.node_id for report in reports] for state, reports in found.items() if reports} == {
        NodeState.RUNNING: [other.node_id],
        NodeState.SHUTDOWN: [node.node_id],
    }


async def test_nodes_are_summarised_by_their_states(cluster: Cluster) -> None:
    node, client = await cluster.node(), await cluster.client()
    await node.proxy.unregister_node_manager(node.node_id)
    others = [await cluster.node(host) for host in ("127.0.0.3", "127.0.0.4")]
    groups = await (await cluster.inspection()).get_node_groups()
    assert groups == node_groups(await client.get_cluster_nodes(frozenset()))
    assert [(group.state, group.nodes, group.node_ids) for group in groups] == [
        (NodeState.RUNNING, 2, tuple(other.node_id for other in others)),
        (NodeState.SHUTDOWN, 1, (node.node_id,)),
    ]


async def test_access_lists_of_an_application_are_transmitted_and_enforced(tmp_path: Path) -> None:
    """The callers are those that the calls name: ann submits, vic may view, eve may not even that."""
    access = {
        "yarn.acl.enable": "true",
        "yarn.admin.acl": "root",
        "yarn.scheduler.capacity.root.acl_administer_queue": "boss",
    }
    async with serving(configuration(tmp_path, **QUEUES).overridden(access)) as cluster:
        node = await cluster.node()
        app = await submit(await cluster.client("ann"), acls={ApplicationAccessType.VIEW_APP: "vic"})
        await until(lambda: cluster.rm.core.context.apps[app].state.name == "ACCEPTED")
        await node.beat()
        attempt_id = cluster.rm.core.context.apps[app].current_attempt.attempt_id  # type: ignore[union-attr]
        container_id = ContainerId(attempt_id, 1)
        vic, eve, boss = [await cluster.client(user) for user in ("vic", "eve", "boss")]
        assert (await vic.get_application_report(app)).diagnostics != "N/A"
        assert (await vic.get_container_report(container_id)).container_id == container_id
        assert (await eve.get_application_report(app)).diagnostics == "N/A"
        assert [report.diagnostics for report in await eve.get_applications(ApplicationFilter())] == ["N/A"]
        info = await eve.get_queue_info(QueueInfoRequest("root", applications=True))
        assert info is not None
        assert info.applications == ()
        for look in (
            eve.get_application_attempt_report(attempt_id),
            eve.get_application_attempts(app),
            eve.get_container_report(container_id),
            eve.get_containers(attempt_id),
        ):
            with pytest.raises(YarnException, match=r"^User eve does not have privilege to see this"):
                await look
        for change in (
            vic.force_kill_application(KillApplicationRequest(app)),
            vic.fail_application_attempt(attempt_id),
            vic.move_application_across_queues(MoveApplicationRequest(app, "dev")),
            vic.update_application_priority(UpdatePriorityRequest(app, 3)),
            vic.update_application_timeouts(UpdateTimeoutsRequest(app, format_iso8601(4_000_000_000_000))),
            vic.signal_to_container(SignalContainerRequest(container_id, SignalContainerCommand.GRACEFUL_SHUTDOWN)),
        ):
            with pytest.raises(YarnException, match=r"User vic cannot perform operation MODIFY_APP on application_"):
                await change
        await boss.force_kill_application(KillApplicationRequest(app))
