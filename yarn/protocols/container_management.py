"""ContainerManagementProtocol: an AM (or the RM, for masters) and an NM."""

from __future__ import annotations

from msgspec import Struct, field

from yarn.containers import ContainerLaunchContext, ContainerStatus, Token
from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarn.states import SignalContainerCommand


class StartContainerRequest(Struct, frozen=True):
    """What to run and the RM's promise that it may run here."""

    launch_context: ContainerLaunchContext
    token: Token


class StartContainersResponse(Struct, frozen=True):
    """Each container either started or refused with its own error."""

    succeeded: tuple[ContainerId, ...] = ()
    failed: dict[ContainerId, YarnException] = field(default_factory=dict)
    services_metadata: dict[str, bytes] = field(default_factory=dict)


class StopContainersResponse(Struct, frozen=True):
    """Each container either told to stop or refused with its own error."""

    succeeded: tuple[ContainerId, ...] = ()
    failed: dict[ContainerId, YarnException] = field(default_factory=dict)


class GetContainerStatusesResponse(Struct, frozen=True):
    """The statuses of those that are known here, an error for each other."""

    statuses: tuple[ContainerStatus, ...] = ()
    failed: dict[ContainerId, YarnException] = field(default_factory=dict)


class UpdateContainersResponse(Struct, frozen=True):
    """Each container either on its way to its new size (or kind) or refused with its own error."""

    succeeded: tuple[ContainerId, ...] = ()
    failed: dict[ContainerId, YarnException] = field(default_factory=dict)


class SignalContainerRequest(Struct, frozen=True):
    """A signal for a container's processes."""

    container_id: ContainerId
    command: SignalContainerCommand
