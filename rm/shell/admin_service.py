"""The RM's service for administrators: checks the caller, reads files again, and sends events to the core."""

from __future__ import annotations

import getpass
from collections.abc import Callable

from rm.core.administration import decommissioning_nodes
from rm.core.events import (
    AddClusterNodeLabels,
    Asker,
    RefreshClusterMaxPriority,
    RefreshNodes,
    RefreshQueues,
    RemoveClusterNodeLabels,
    ReplaceLabelsOnNodes,
    UpdateNodeResource,
)
from rm.core.host_lists import HostLists
from rm.core.resource_manager import ResourceManagerCore
from rm.scheduler.config.acls import AccessControlList
from rm.scheduler.config.mutation import Values, values_of, with_values
from rm.shell.configuration_files import host_lists, with_mapping_rules
from rm.shell.effects import ResourceManagerShell
from rm.shell.groups import forget_groups, groups_of
from rm.shell.mutable_configuration import MutableConfiguration
from wire.caller import Caller
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.rpc import handles
from yarn.configuration import Configuration
from yarn.errors import YarnException, YARNFeatureNotEnabledException
from yarn.ids import NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.admin import NodeResources, RefreshNodesRequest, ReplaceLabelsRequest
from yarn.settings import resourcemanager, scheduler
from yarn.states import DecommissionType


class AdminService:
    """ResourceManagerAdministrationProtocol (Hadoop's AdminService).

    `reload` reads the configuration files again. The users of yarn.admin.acl and the user that the RM runs as may call.
    `mutable`: the scheduler's configuration, if clients can change it; queues are then not read from a file.
    """

    def __init__(
        self,
        core: ResourceManagerCore,
        shell: ResourceManagerShell,
        conf: Configuration,
        reload: Callable[[], Configuration] | None,
        mutable: MutableConfiguration | None = None,
    ) -> None:
        self._core = core
        self._shell = shell
        self._conf = conf
        self._reload = reload
        self._mutable = mutable
        self._admins = _admins(conf)

    @handles(ResourceManagerAdministrationProtocol.refresh_queues)
    async def refresh_queues(self, caller: Caller[None], request: None) -> None:
        self._check(caller, "refreshQueues")
        if self._mutable is not None:
            problem = "Scheduler configuration is mutable. refreshQueues is not allowed in this scenario."
            raise YarnException(f"java.io.IOException: {problem}")
        conf = self._reloaded()
        await self._shell.ask(lambda call: RefreshQueues(call, conf))

    async def apply_values(self, values: Values) -> None:
        """Refresh the queues with values of the scheduler's keys; the caller has been checked.

        Raises ConfigurationException; then nothing was applied.
        """
        conf = self.configuration_with(values)
        await self._shell.ask(lambda call: RefreshQueues(call, conf))

    def configuration_with(self, values: Values) -> Configuration:
        """The configuration as it is in the files now, with these values of the scheduler's keys."""
        return with_mapping_rules(with_values(self._site(), values))

    def values_in_file(self) -> Values:
        """The values of the scheduler's keys in capacity-scheduler.xml as it is now."""
        return values_of(self._site())

    @handles(ResourceManagerAdministrationProtocol.refresh_nodes)
    async def refresh_nodes(self, caller: Caller[None], request: RefreshNodesRequest) -> None:
        self._check(caller, "refreshNodes")
        forceful = request.type is DecommissionType.FORCEFUL
        conf = self._conf if forceful else self._reloaded()
        hosts = HostLists() if forceful else host_lists(conf)
        timeout_s = request.timeout_s
        if timeout_s is None:
            timeout_ms = resourcemanager.GRACEFUL_DECOMMISSION_TIMEOUT.of(conf)
            timeout_s = timeout_ms if timeout_ms < 0 else timeout_ms // 1000
        await self._shell.ask(lambda call: RefreshNodes(call, hosts, request.type, timeout_s))

    @handles(ResourceManagerAdministrationProtocol.check_for_decommissioning_nodes)
    async def check_for_decommissioning_nodes(self, caller: Caller[None], request: None) -> tuple[NodeId, ...]:
        self._check(caller, "checkForDecommissioningNodes")
        return decommissioning_nodes(self._core.context)

    @handles(ResourceManagerAdministrationProtocol.refresh_super_user_groups_configuration)
    async def refresh_super_user_groups_configuration(self, caller: Caller[None], request: None) -> None:
        """A no-op: impersonation is not supported, so there is no configuration to read."""
        self._check(caller, "refreshSuperUserGroupsConfiguration")

    @handles(ResourceManagerAdministrationProtocol.refresh_user_to_groups_mappings)
    async def refresh_user_to_groups_mappings(self, caller: Caller[None], request: None) -> None:
        self._check(caller, "refreshUserToGroupsMappings")
        forget_groups()

    @handles(ResourceManagerAdministrationProtocol.refresh_admin_acls)
    async def refresh_admin_acls(self, caller: Caller[None], request: None) -> None:
        self._check(caller, "refreshAdminAcls")
        self._admins = _admins(self._reloaded())

    @handles(ResourceManagerAdministrationProtocol.refresh_service_acls)
    async def refresh_service_acls(self, caller: Caller[None], request: None) -> None:
        """Refused with Hadoop's error for disabled service authorization, which yarnling does not have."""
        raise YarnException("java.io.IOException: Service Authorization (hadoop.security.authorization) not enabled.")

    @handles(ResourceManagerAdministrationProtocol.refresh_cluster_max_priority)
    async def refresh_cluster_max_priority(self, caller: Caller[None], request: None) -> None:
        self._check(caller, "refreshClusterMaxPriority")
        priority = scheduler.MAX_APPLICATION_PRIORITY.of(self._reloaded())
        await self._shell.ask(lambda call: RefreshClusterMaxPriority(call, priority))

    @handles(ResourceManagerAdministrationProtocol.get_groups_for_user)
    async def get_groups_for_user(self, caller: Caller[None], request: str) -> tuple[str, ...]:
        self._check(caller, "getGroupsForUser")
        return groups_of(request)

    @handles(ResourceManagerAdministrationProtocol.add_to_cluster_node_labels)
    async def add_to_cluster_node_labels(self, caller: Caller[None], request: tuple[NodeLabel, ...]) -> None:
        self._check(caller, "addToClusterNodeLabels")
        await self._shell.ask(lambda call: AddClusterNodeLabels(call, request))

    @handles(ResourceManagerAdministrationProtocol.remove_from_cluster_node_labels)
    async def remove_from_cluster_node_labels(self, caller: Caller[None], request: tuple[str, ...]) -> None:
        self._check(caller, "removeFromClusterNodeLabels")
        await self._shell.ask(lambda call: RemoveClusterNodeLabels(call, request))

    @handles(ResourceManagerAdministrationProtocol.replace_labels_on_nodes)
    async def replace_labels_on_nodes(self, caller: Caller[None], request: ReplaceLabelsRequest) -> None:
        self._check(caller, "replaceLabelsOnNode")
        await self._shell.ask(lambda call: ReplaceLabelsOnNodes(call, request.labels, request.fail_on_unknown_nodes))

    @handles(ResourceManagerAdministrationProtocol.update_node_resource)
    async def update_node_resource(self, caller: Caller[None], request: NodeResources) -> None:
        self._check(caller, "updateNodeResource")
        await self._shell.ask(lambda call: UpdateNodeResource(call, request))

    def _check(self, caller: Caller[None], method: str) -> None:
        """Raises YarnException, with the text of RMServerUtils.verifyAdminAccess, unless the caller is an
        administrator.
        """
        user = caller.user
        if not self.is_admin((user, groups_of(user))):
            raise YarnException(
                f"org.apache.hadoop.security.AccessControlException: User {user} doesn't have permission to call "
                f"'{method}'"
            )

    def is_admin(self, asker: Asker) -> bool:
        """True for an administrator, as of the last refresh of the administrators' list."""
        user, groups = asker
        return user == getpass.getuser() or self._admins.allows(user, groups)

    def _site(self) -> Configuration:
        return self._conf if self._reload is None else self._reload()

    def _reloaded(self) -> Configuration:
        if self._reload is None:
            raise YARNFeatureNotEnabledException(
                "this ResourceManager was started without configuration files, so there is nothing to read again"
            )
        return self._reload()


def _admins(conf: Configuration) -> AccessControlList:
    return AccessControlList.parse(resourcemanager.ADMIN_ACL.of(conf))
