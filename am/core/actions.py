"""Actions that an application wants done: the counterpart of am.core.events, carried out by ApplicationMaster."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from msgspec import Struct

from am.core.events import Event
from am.core.requests import ContainerRequest
from yarn.containers import Container, ContainerLaunchContext
from yarn.ids import ContainerId, NodeId
from yarn.machine import StateChanged
from yarn.states import FinalApplicationStatus


class RequestContainer(Struct, frozen=True):
    """Request one more container."""

    request: ContainerRequest


class WithdrawRequest(Struct, frozen=True):
    """Withdraw one such request, unless a container has been allocated for it already."""

    request: ContainerRequest


class ReleaseContainer(Struct, frozen=True):
    """Return a container to the RM, which has it stopped if it runs."""

    container_id: ContainerId


class ChangeBlacklist(Struct, frozen=True):
    """Get no more containers on the hosts of `additions`; allow those of `removals` again."""

    additions: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()


class Launch(Struct, frozen=True):
    """Start a container on its NM. ContainerStarted or ContainerStartFailed follows, unless it has ended by then."""

    container: Container
    launch_context: ContainerLaunchContext


class StopContainer(Struct, frozen=True):
    """Have the NM stop a container. Its end is reported by the RM."""

    container_id: ContainerId
    node_id: NodeId


class Finish(Struct, frozen=True):
    """Unregister with this outcome and exit with `exit_code`. Nothing is handled after it."""

    final_status: FinalApplicationStatus
    diagnostics: str = ""
    exit_code: int = 0


class Leave(Struct, frozen=True):
    """Exit without unregistering: the RM no longer knows this attempt, or cannot be reached."""

    reason: str
    exit_code: int = 1


ContainerAction: TypeAlias = (
    RequestContainer | WithdrawRequest | ReleaseContainer | ChangeBlacklist | Launch | StopContainer
)
Termination: TypeAlias = Finish | Leave
Action: TypeAlias = ContainerAction | Termination | StateChanged


class Application(Protocol):
    """What ApplicationMaster runs: an ApplicationCore, or one with file access around it."""

    def handle(self, event: Event, now_ms: int) -> list[Action]:
        """The actions for one event, in order; none after Finish or Leave. `now_ms` never goes back."""
        ...

    def progress(self) -> float:
        """0..1, sent to the RM with each heartbeat."""
        ...
