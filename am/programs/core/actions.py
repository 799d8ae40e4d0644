"""What a program wants done: the counterpart of am.core.events. Pure; am.programs.master carries it out."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from msgspec import Struct

from am.core.events import Event
from am.core.requests import ContainerRequest
from yarn.containers import Container, ContainerLaunchContext
from yarn.ids import ContainerId, NodeId
from yarn.states import FinalApplicationStatus


class AskFor(Struct, frozen=True):
    """Ask for one more container."""

    request: ContainerRequest


class Withdraw(Struct, frozen=True):
    """Take one such request back, if it has not been met yet."""

    request: ContainerRequest


class GiveBack(Struct, frozen=True):
    """Release a container to the RM, which has it stopped if it runs."""

    container_id: ContainerId


class ChangeBlacklist(Struct, frozen=True):
    """Keep away from hosts, or come back to them."""

    additions: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()


class Launch(Struct, frozen=True):
    """Start a container on its NM. ContainerStarted or ContainerStartFailed follows, unless it has ended by then."""

    container: Container
    launch_context: ContainerLaunchContext


class Stop(Struct, frozen=True):
    """Have a container's NM stop it; its end is told by the RM."""

    container_id: ContainerId
    node_id: NodeId


class Finish(Struct, frozen=True):
    """Unregister with this outcome and leave with `exit_code`; nothing is handled after it."""

    final_status: FinalApplicationStatus
    diagnostics: str = ""
    exit_code: int = 0


class Leave(Struct, frozen=True):
    """Exit without unregistering: the RM does not know this attempt any more, or cannot be reached."""

    reason: str
    exit_code: int = 1


Deed: TypeAlias = AskFor | Withdraw | GiveBack | ChangeBlacklist | Launch | Stop
Ending: TypeAlias = Finish | Leave
Action: TypeAlias = Deed | Ending


class Program(Protocol):
    """An application's logic: events in, actions out. Time is ms on a monotonic clock."""

    def handle(self, event: Event, now_ms: int) -> list[Action]: ...

    def progress(self) -> float:
        """0..1, told to the RM with each heartbeat."""
        ...
