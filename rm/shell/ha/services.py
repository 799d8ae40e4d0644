"""The services that a ResourceManager always has: HAServiceProtocol, and the administration of the active one."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from functools import partial
from typing import Any

from rm.scheduler.config.acls import AccessControlList
from rm.shell.groups import groups_of
from rm.shell.ha.candidate import HACandidate
from wire.caller import Caller
from wire.protocols.ha import HAServiceProtocol
from wire.rpc import Rpc, handles
from yarn.configuration import Configuration
from yarn.errors import AccessControlException
from yarn.protocols.ha import HAServiceStatus
from yarn.settings.high_availability import AUTOMATIC_FAILOVER_ENABLED
from yarn.settings.resourcemanager import ADMIN_ACL
from yarn.states import HAServiceState, RequestSource

_MANUAL_REFUSED = "Manual failover for this ResourceManager is disallowed, because automatic failover is enabled."


class HAService:
    """HAServiceProtocol (AdminService). Only administrators may call."""

    def __init__(self, conf: Configuration, candidate: HACandidate) -> None:
        self._candidate = candidate
        self._automatic = AUTOMATIC_FAILOVER_ENABLED.of(conf)
        self._admins = AccessControlList.parse(ADMIN_ACL.of(conf))

    @handles(HAServiceProtocol.monitor_health)
    async def monitor_health(self, caller: Caller[None], request: None) -> None:
        """Healthy if it answers: a ResourceManager whose services fail is not active any more."""
        self._check(caller, "monitorHealth")

    @handles(HAServiceProtocol.transition_to_active)
    async def transition_to_active(self, caller: Caller[None], request: RequestSource) -> None:
        if self._candidate.state is HAServiceState.ACTIVE:
            return
        self._check(caller, "transitionToActive")
        self._check_source(caller, request)
        await self._candidate.become_active()

    @handles(HAServiceProtocol.transition_to_standby)
    async def transition_to_standby(self, caller: Caller[None], request: RequestSource) -> None:
        self._check(caller, "transitionToStandby")
        self._check_source(caller, request)
        await self._candidate.become_standby()

    @handles(HAServiceProtocol.get_service_status)
    async def get_service_status(self, caller: Caller[None], request: None) -> HAServiceStatus:
        self._check(caller, "getServiceState")
        state = self._candidate.state
        ready = state in (HAServiceState.ACTIVE, HAServiceState.STANDBY)
        return HAServiceStatus(state, ready, "" if ready else f"State is {state.name}")

    def _check(self, caller: Caller[None], method: str) -> None:
        """Raises AccessControlException unless the caller is an administrator (RMServerUtils.verifyAdminAccess)."""
        user = caller.user
        if user != getpass.getuser() and not self._admins.allows(user, groups_of(user)):
            raise AccessControlException(f"User {user} doesn't have permission to call '{method}'")

    def _check_source(self, caller: Caller[None], source: RequestSource) -> None:
        """Raises AccessControlException for what automatic failover decides (AdminService.checkHaStateChange)."""
        if source is RequestSource.REQUEST_BY_USER and self._automatic:
            raise AccessControlException(_MANUAL_REFUSED)
        if source is RequestSource.REQUEST_BY_ZKFC and not self._automatic:
            raise AccessControlException(
                f"Request from ZK failover controller at {caller.peer} denied since automatic failover is not enabled"
            )


class WhenActive:
    """A service whose methods are those of another one, which exists only while this ResourceManager is active.

    `service` returns it, or raises StandbyException; it is asked again before the reply.
    """

    def __init__(self, rpcs: tuple[Rpc[Any, Any], ...], service: Callable[[], object]) -> None:
        self._service = service
        for rpc in rpcs:
            setattr(self, rpc.method, partial(self._forward, rpc.method))

    async def _forward(self, method: str, caller: Caller[Any], request: object) -> object:
        reply = await getattr(self._service(), method)(caller, request)
        self._service()
        return reply
