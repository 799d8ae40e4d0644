"""ContainerManagementProtocol: requests and replies between an AM (or the RM, for AMs) and an NM."""

from __future__ import annotations

from msgspec import Struct, field

from yarn.containers import ContainerLaunchContext, ContainerStatus, Token
from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarn.states import SignalContainerCommand


class StartContainerRequest(Struct, frozen=True):
    """Start a container: what to run, and the container token."""

    launch_context: ContainerLaunchContext
    token: Token


class StartContainersResponse(Struct, frozen=True):
    """The reply to starting containers: each is either started, or refused with its own error."""

    succeeded: tuple[ContainerId, ...] = ()
    failed: dict[ContainerId, YarnException] = field(default_factory=dict)
    services_metadata: dict[str, bytes] = field(default_factory=dict)


class StopContainersResponse(Struct, frozen=True):
    """The reply to stopping containers: each is either being stopped, or refused with its own error."""

    succeeded: tuple[ContainerId, ...] = ()
    failed: dict[ContainerId, YarnException] = field(default_factory=dict)


class GetContainerStatusesResponse(Struct, frozen=True):
    """The statuses of known containers, and an error for each other container."""

    statuses: tuple[ContainerStatus, ...] = ()
    failed: dict[ContainerId, YarnException] = field(default_factory=dict)


class UpdateContainersResponse(Struct, frozen=True):
    """The reply to updating containers: each is either being updated, or refused with its own error."""

    succeeded: tuple[ContainerId, ...] = ()
    failed: dict[ContainerId, YarnException] = field(default_factory=dict)


class SignalContainerRequest(Struct, frozen=True):
    """Send a signal to a container's processes."""

    container_id: ContainerId
    command: SignalContainerCommand
