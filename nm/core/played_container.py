"""A container of a simulation whose life is known when it starts: it runs at once, and ends at once with exit code 0.

It skips the states in which a NodeManager fetches files, starts a process and deletes directories. Whatever else
happens to it, as a kill, goes through the lifecycle of all containers, from RUNNING on.
"""

from __future__ import annotations

from nm.core.container import NMContainer, NMContainerState, SlidingWindowRetryPolicy
from nm.core.context import NodeContext
from yarn.containers import (
    ContainerLaunchContext,
    ContainerRetryContext,
    ContainerStatus,
    ContainerTokenIdentifier,
)
from yarn.machine import Machine
from yarn.states import ContainerExitStatus, ContainerState, ContainerSubState

_LAUNCH_CONTEXT = ContainerLaunchContext()
_NO_RETRIES = SlidingWindowRetryPolicy(ContainerRetryContext(), 0)
_IS_PLAYED = "played"
"""The name of the emulation rule of such a container: it has no process."""


class PlayedContainer(NMContainer):
    """A container that NodeManagerCore.play_starts starts, and play_end ends."""

    def __init__(self, token: ContainerTokenIdentifier, context: NodeContext) -> None:
        # Not NMContainer's: most of what that prepares is for files and processes.
        self.id = token.container_id
        self.user = token.user
        self.token = token
        self.launch_context = _LAUNCH_CONTEXT
        self.exit_status = ContainerExitStatus.INVALID
        self.launches = 0
        self.retries = _NO_RETRIES
        self.emulation = _IS_PLAYED
        self.machine = Machine(NMContainerState.NEW)
        self._context = context
        self._diagnostics = ""
        self._relaunch_waits = False
        self._launched_ms = 0
        self.is_stopped = False
        self.is_reacquired = False
        self._running_status = ContainerStatus(
            self.id,
            ContainerState.RUNNING,
            ContainerExitStatus.INVALID,
            "",
            token.resource,
            token.execution_type,
            ContainerSubState.RUNNING,
        )

    @property
    def is_waiting_for_files(self) -> bool:
        return False

    def note_progress(self) -> None:
        """Emit no store effect: an emulated container has no process that could outlive its NodeManager."""

    def take_token(self, token: ContainerTokenIdentifier) -> None:
        self.token = token

    def status(self) -> ContainerStatus:
        return self._running_status if self.machine.state is NMContainerState.RUNNING else super().status()

    def play_start(self) -> None:
        """Become RUNNING, as InitContainer and ContainerLaunched do."""
        self.launches = 1
        self.machine.state = NMContainerState.RUNNING

    def play_end(self) -> None:
        """Become DONE, as ContainerExitedWithSuccess and ContainerResourcesCleanedup do."""
        self.exit_status = ContainerExitStatus.SUCCESS
        self.machine.state = NMContainerState.DONE
