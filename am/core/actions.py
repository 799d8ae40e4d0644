"""Actions that an application returns for an event (am.core.events). ApplicationMaster carries them out."""

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
    """Withdraw one outstanding request equal to `request`; no effect if a container was allocated for it already."""

    request: ContainerRequest


class ReleaseContainer(Struct, frozen=True):
    """Return a container to the RM. If the container runs, the RM has its NM stop it."""

    container_id: ContainerId


class ChangeBlacklist(Struct, frozen=True):
    """Get no more containers on the hosts in `additions`; allow those in `removals` again."""

    additions: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()


class Launch(Struct, frozen=True):
    """Start a container on its NM.

    ContainerStarted or ContainerStartFailed follows, unless the container has ended before.
    """

    container: Container
    launch_context: ContainerLaunchContext


class StopContainer(Struct, frozen=True):
    """Have the NM stop a container. The RM reports the container's end."""

    container_id: ContainerId
    node_id: NodeId


class Finish(Struct, frozen=True):
    """Unregister with this outcome and exit with `exit_code`. The application handles no events after this action."""

    final_status: FinalApplicationStatus
    diagnostics: str = ""
    exit_code: int = 0


class Leave(Struct, frozen=True):
    """Exit without unregistering, because the RM no longer knows this attempt or cannot be reached."""

    reason: str
    exit_code: int = 1


ContainerAction: TypeAlias = (
    RequestContainer | WithdrawRequest | ReleaseContainer | ChangeBlacklist | Launch | StopContainer
)
Termination: TypeAlias = Finish | Leave
Action: TypeAlias = ContainerAction | Termination | StateChanged


class Application(Protocol):
    """The interface of an application for ApplicationMaster: an ApplicationCore, or one with file access around it."""

    def handle(self, event: Event, now_ms: int) -> list[Action]:
        """Handle one event and return the actions, in order; none after Finish or Leave. `now_ms` never decreases."""
        ...

    def progress(self) -> float:
        """The progress from 0 to 1, which is sent to the RM with each heartbeat."""
        ...

    @property
    def heeds_heartbeats(self) -> bool:
        """True if HeartbeatDone may make it do something: it reads the headroom, or the time, or files.

        The progress of an application that heeds no heartbeats changes only with its events. Simulations can leave out
        its heartbeats that have nothing to say.
        """
        ...
