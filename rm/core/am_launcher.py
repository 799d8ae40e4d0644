"""Which containers of AMs are started and stopped now (Hadoop's ApplicationMasterLauncher), and what a start led to.

    launcher.handle(LaunchAM(...)) -> [StartAMContainer(LaunchAM(...))]
    launcher.handle(AMStartAnswered(attempt_id, response)) -> [AMLaunched(attempt_id)]

At most so many calls to NMs are under way at a time; further ones wait in order. The container of an AM whose start is
under way is stopped after that: otherwise the NM might start it afterwards.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

from msgspec import Struct

from rm.core.effects import CleanUpAM, LaunchAM
from rm.core.events import AMLaunched, AMLaunchFailed
from yarn.errors import InvalidContainerException, YarnException
from yarn.ids import ApplicationAttemptId
from yarn.protocols.container_management import StartContainersResponse


class AMStartAnswered(Struct, frozen=True):
    """The NM's answer to StartAMContainer."""

    attempt_id: ApplicationAttemptId
    response: StartContainersResponse


class AMStartFailed(Struct, frozen=True):
    """StartAMContainer failed. `problem`: the exception as diagnostics show it."""

    attempt_id: ApplicationAttemptId
    problem: str


class AMStopped(Struct, frozen=True):
    """StopAMContainer is over, successful or not."""


class StartAMContainer(Struct, frozen=True):
    """Call startContainers; AMStartAnswered or AMStartFailed follows."""

    launch: LaunchAM


class StopAMContainer(Struct, frozen=True):
    """Call stopContainers, best effort; AMStopped follows."""

    clean_up: CleanUpAM


LauncherEvent: TypeAlias = LaunchAM | CleanUpAM | AMStartAnswered | AMStartFailed | AMStopped
LauncherEffect: TypeAlias = StartAMContainer | StopAMContainer | AMLaunched | AMLaunchFailed
"""AMLaunched and AMLaunchFailed are events for the core of the RM."""


class AMLauncher:
    """The launches and clean-ups of one RM; `slots`: how many calls may be under way."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._waiting: deque[LaunchAM | CleanUpAM] = deque()
        self._launching: dict[ApplicationAttemptId, LaunchAM] = {}
        self._after_launch: dict[ApplicationAttemptId, list[CleanUpAM]] = {}

    def handle(self, event: LauncherEvent) -> list[LauncherEffect]:
        """Take an event; carry the effects out in order."""
        effects: list[LauncherEffect] = []
        match event:
            case LaunchAM():
                self._launching[event.attempt_id] = event
                self._waiting.append(event)
            case CleanUpAM() if event.attempt_id in self._launching:
                self._after_launch.setdefault(event.attempt_id, []).append(event)
            case CleanUpAM():
                self._waiting.append(event)
            case AMStartAnswered(attempt_id, response):
                error = _error_in(response, self._launching[attempt_id])
                effects.append(self._launched(attempt_id, shown(error) if error is not None else None))
            case AMStartFailed(attempt_id, problem):
                effects.append(self._launched(attempt_id, problem))
            case AMStopped():
                self._slots += 1
        return effects + self._next()

    def _launched(self, attempt_id: ApplicationAttemptId, problem: str | None) -> AMLaunched | AMLaunchFailed:
        self._slots += 1
        del self._launching[attempt_id]
        self._waiting.extend(self._after_launch.pop(attempt_id, ()))
        if problem is None:
            return AMLaunched(attempt_id)
        return AMLaunchFailed(attempt_id, f"Error launching {attempt_id}. Got exception: {problem}")

    def _next(self) -> list[LauncherEffect]:
        effects: list[LauncherEffect] = []
        while self._waiting and self._slots > 0:
            self._slots -= 1
            call = self._waiting.popleft()
            effects.append(StartAMContainer(call) if isinstance(call, LaunchAM) else StopAMContainer(call))
        return effects


def shown(error: YarnException) -> str:
    """An error as an application's diagnostics show it."""
    return f"{error.java_class}: {error.message}"


def _error_in(response: StartContainersResponse, launch: LaunchAM) -> YarnException | None:
    container = launch.container
    if container.id in response.succeeded:
        return None
    return response.failed.get(container.id) or InvalidContainerException(
        f"{container.node_id} did not report {container.id} as started"
    )
