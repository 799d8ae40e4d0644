"""ResourceManagerAdministrationProtocol over real gRPC: which files a call reads again, and who may call."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from tests.rm.served_cluster import configuration, serving
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.protocols.admin import RefreshNodesRequest
from yarn.states import DecommissionType, NodeAction, NodeState

EXCLUDE = "yarn.resourcemanager.nodes.exclude-path"
ADMINS = "yarn.admin.acl"
TIMEOUT = "yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs"
PRIORITY = "yarn.cluster.max-application-priority"


class Files:
    """The configuration files; changes take effect when they are read again."""

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf

    def set(self, key: str, value: str) -> None:
        self.conf = self.conf.overridden({key: value})

    def __call__(self) -> Configuration:
        return self.conf


async def test_hosts_are_excluded_from_the_start(tmp_path: Path) -> None:
    (tmp_path / "excluded").write_text("127.0.0.2\n")
    conf = configuration(tmp_path).overridden({EXCLUDE: str(tmp_path / "excluded")})
    async with serving(conf) as cluster:
        with pytest.raises(AssertionError):
            await cluster.node("127.0.0.2")
        assert (await cluster.node("127.0.0.3")).registration.action is NodeAction.NORMAL
        assert [node.node_id.host for node in await (await cluster.client()).get_cluster_nodes(frozenset())] == [
            "127.0.0.3"
        ]


async def test_unreadable_host_lists_at_the_start_include_every_host(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    conf = configuration(tmp_path).overridden({EXCLUDE: str(tmp_path / "none")})
    async with serving(conf) as cluster:
        assert (await cluster.node()).registration.action is NodeAction.NORMAL
    assert "NodeManagers of all hosts are accepted" in caplog.text


async def test_a_refresh_reads_the_lists_again(tmp_path: Path) -> None:
    files = Files(configuration(tmp_path))
    async with serving(files.conf, reload=files) as cluster:
        node, client, admin = await cluster.node(), await cluster.client(), await cluster.admin()
        await cluster.node("127.0.0.3")
        (tmp_path / "excluded").write_text("127.0.0.2\n")
        files.set(EXCLUDE, str(tmp_path / "excluded"))
        await admin.refresh_nodes(RefreshNodesRequest())
        states = {found.node_id: found.state for found in await client.get_cluster_nodes(frozenset())}
        assert states[node.node_id] is NodeState.DECOMMISSIONED
        assert (await node.beat()).action is NodeAction.SHUTDOWN
        files.set(EXCLUDE, str(tmp_path / "none"))
        with pytest.raises(YarnException, match=r"exclude-path = .*none: No such file"):
            await admin.refresh_nodes(RefreshNodesRequest())


@pytest.mark.parametrize(("asked_s", "waited_s"), [(8, 8), (None, 120), (-1, -1)])
async def test_a_graceful_refresh_waits_as_requested_or_as_configured(
    tmp_path: Path, asked_s: int | None, waited_s: int
) -> None:
    files = Files(configuration(tmp_path).overridden({TIMEOUT: "120"}))
    async with serving(files.conf, reload=files) as cluster:
        node, client, admin = await cluster.node(), await cluster.client(), await cluster.admin()
        (tmp_path / "excluded").write_text("127.0.0.2\n")
        files.set(EXCLUDE, str(tmp_path / "excluded"))
        await admin.refresh_nodes(RefreshNodesRequest(DecommissionType.GRACEFUL, asked_s))
        (report,) = await client.get_cluster_nodes(frozenset())
        assert (report.state, report.decommissioning_timeout_s) == (NodeState.DECOMMISSIONING, waited_s)
        assert await admin.check_for_decommissioning_nodes() == (node.node_id,)
        await admin.refresh_nodes(RefreshNodesRequest(DecommissionType.FORCEFUL))
        assert await admin.check_for_decommissioning_nodes() == ()


async def test_a_user_who_is_not_an_administrator_is_refused_by_name_and_call(tmp_path: Path) -> None:
    files = Files(configuration(tmp_path).overridden({ADMINS: "carol"}))
    async with serving(files.conf, reload=files) as cluster:
        bob, carol = await cluster.admin("bob"), await cluster.admin("carol")
        denied = "^org.apache.hadoop.security.AccessControlException: User bob doesn't have permission to call '{}'$"
        for call, name in (
            (bob.refresh_queues(), "refreshQueues"),
            (bob.refresh_nodes(RefreshNodesRequest()), "refreshNodes"),
            (bob.check_for_decommissioning_nodes(), "checkForDecommissioningNodes"),
            (bob.refresh_super_user_groups_configuration(), "refreshSuperUserGroupsConfiguration"),
            (bob.refresh_user_to_groups_mappings(), "refreshUserToGroupsMappings"),
            (bob.refresh_admin_acls(), "refreshAdminAcls"),
            (bob.refresh_cluster_max_priority(), "refreshClusterMaxPriority"),
            (bob.get_groups_for_user("bob"), "getGroupsForUser"),
            (bob.update_node_resource(()), "updateNodeResource"),
        ):
            with pytest.raises(YarnException, match=denied.format(name)):
                await call
        await carol.refresh_queues()
        files.set(ADMINS, "bob")
        await carol.refresh_admin_acls()
        await bob.refresh_queues()
        with pytest.raises(YarnException, match="User carol doesn't have permission"):
            await carol.refresh_admin_acls()


async def test_the_user_that_the_rm_runs_as_is_always_an_administrator(tmp_path: Path) -> None:
    conf = configuration(tmp_path).overridden({ADMINS: " "})
    async with serving(conf) as cluster:
        admin = await cluster.admin(getpass.getuser())
        await admin.refresh_user_to_groups_mappings()


async def test_a_refused_refresh_of_queues_reports_every_fault(tmp_path: Path) -> None:
    files = Files(configuration(tmp_path))
    async with serving(files.conf, reload=files) as cluster:
        admin = await cluster.admin(getpass.getuser())
        files.set("yarn.scheduler.capacity.root.default.capacity", "90")
        files.set("yarn.scheduler.capacity.root.default.minimum-user-limit-percent", "400")
        files.set("yarn.scheduler.capacity.root.nowhere.capacity", "10")
        with pytest.raises(YarnException) as refused:
            await admin.refresh_queues()
    lines = refused.value.message.splitlines()
    assert ["Illegal capacity sum of 0.9" in lines[0], *("warning: " in line for line in lines[1:])] == [True] * 3
    assert "400 is not a percentage of the queue" in lines[1]
    assert "there is no queue root.nowhere" in lines[2]


async def test_the_highest_priority_is_read_again(tmp_path: Path) -> None:
    files = Files(configuration(tmp_path).overridden({PRIORITY: "5"}))
    async with serving(files.conf, reload=files) as cluster:
        admin = await cluster.admin()
        assert cluster.rm.core.context.settings.application_priority_max == 5
        files.set(PRIORITY, "9")
        await admin.refresh_cluster_max_priority()
        assert cluster.rm.core.context.settings.application_priority_max == 9


async def test_refreshes_of_groups_and_services_are_answered_as_in_hadoop(tmp_path: Path) -> None:
    async with serving(configuration(tmp_path)) as cluster:
        admin = await cluster.admin()
        assert "root" in await admin.get_groups_for_user("root")
        assert await admin.get_groups_for_user("nosuchuser") == ()
        with pytest.raises(YarnException, match=r"^java.io.IOException: Service Authorization .* not enabled\.$"):
            await admin.refresh_service_acls()
