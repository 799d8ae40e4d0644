"""The invariants of a node, checked after every step on its state alone.

N-01  a container that is not DONE is listed by its application
N-02  an application lists only containers of the node that are not DONE
N-03  a container that is LOCALIZING is waiting for a file
N-04  a container whose process was or is being launched has a launch number
N-05  a container that is DONE holds no cached files
N-06  a cached file is held only by containers of the node
I-24  at most one call to the ResourceManager is outstanding: a late answer never starts a second heartbeat loop
I-32  no container runs, or is about to, once the end of its application was ordered: it is being killed or has ended
I-33  a container is started only with a token of its own application, of the present RM, that has not expired
N-08  every call of an AM is answered exactly once, in its own step
N-10  a container whose process failed or was killed is not reported with exit status 0
N-09  the launches of a container are numbered 1, 2, 3..., each ordered once
N-11  a container whose update was accepted has the new size; the next heartbeat reports it if the container has grown
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from nm.core.application import NMApplication
from nm.core.container import NMContainer, NMContainerState
from nm.core.effects import Effect, LaunchContainer, ReacquireContainer, SendHeartbeat, SendRegistration
from nm.core.events import (
    ContainerExited,
    Event,
    NodeHeartbeatAnswered,
    NodeHeartbeatFailed,
    NodeRegistered,
    RegistrationFailed,
    StartContainers,
    UpdateContainers,
)
from nm.core.resource_cache import ResourceCaches
from yarn.ids import ApplicationId, ContainerId
from yarn.machine import Refuse, Reply
from yarn.protocols.container_management import StartContainersResponse, UpdateContainersResponse
from yarn.resource import Resource
from yarn.states import ContainerExitStatus

_S = NMContainerState
_LAUNCHED = frozenset({_S.SCHEDULED, _S.RUNNING, _S.RELAUNCHING, _S.EXITED_WITH_SUCCESS})
_NOT_KILLED = frozenset({_S.NEW, _S.LOCALIZING, _S.SCHEDULED, _S.RUNNING, _S.RELAUNCHING})

_Answer: TypeAlias = NodeHeartbeatAnswered | NodeHeartbeatFailed | NodeRegistered | RegistrationFailed


class NodeAudit:
    """Checks a node's state after each of its steps. The cost of a check is proportional to the size of the state."""

    def __init__(
        self,
        containers: dict[ContainerId, NMContainer],
        applications: dict[ApplicationId, NMApplication],
        resources: ResourceCaches,
        rm_identifier: Callable[[], int],
    ) -> None:
        self._rm_identifier = rm_identifier
        self._containers = containers
        self._applications = applications
        self._resources = resources
        self._outstanding = 0
        self._launches: dict[ContainerId, int] = {}
        self._sizes: dict[ContainerId, Resource] = {}
        """The size of each container after the last step."""
        self._grown: set[ContainerId] = set()
        """The containers that have grown since the last heartbeat."""

    def violations(self, event: Event, effects: Iterable[Effect], now_ms: int) -> list[str]:
        """The invariants that do not hold after a step, each with its number; empty if all hold."""
        effects = list(effects)
        return [
            *self._of_containers(),
            *self._of_applications(),
            *self._of_caches(),
            *self._of_calls_to_resource_manager(event, effects),
            *_of_calls(event, effects),
            *self._of_launches(effects),
            *self._of_starts(event, effects, now_ms),
            *self._of_exits(event),
            *self._of_updates(event, effects),
        ]

    def _of_containers(self) -> Iterator[str]:
        for container in self._containers.values():
            state = container.machine.state
            application = self._applications.get(container.id.application_id)
            listed = application is not None and container.id in application.containers
            if state is not _S.DONE and not listed:
                yield f"N-01: {container} is {state.name}, but its application does not list it"
            if state is _S.LOCALIZING and not container.is_waiting_for_files:
                yield f"N-03: {container} is LOCALIZING, but is not waiting for a file"
            if state in _LAUNCHED and container.launches == 0:
                yield f"N-04: {container} is {state.name} without a launch"
            if state is _S.DONE and self._resources.held_by(container.id):
                yield f"N-05: {container} is DONE and holds {self._resources.held_by(container.id)} cached files"

    def _of_applications(self) -> Iterator[str]:
        for application in self._applications.values():
            for container_id in application.containers:
                container = self._containers.get(container_id)
                if container is None or container.is_done:
                    yield f"N-02: {application} lists {container_id}, which is DONE or not on the node"
                elif application.is_stopped and container.machine.state in _NOT_KILLED:
                    yield f"I-32: {container} is {container.machine.state.name}, but its application has ended"

    def _of_caches(self) -> Iterator[str]:
        for container_id in self._resources.holders():
            if container_id not in self._containers:
                yield f"N-06: {container_id} holds cached files, but is not on the node"

    def _of_calls_to_resource_manager(self, event: Event, effects: list[Effect]) -> Iterator[str]:
        if isinstance(event, _Answer):
            self._outstanding = 0
        self._outstanding += sum(isinstance(effect, SendRegistration | SendHeartbeat) for effect in effects)
        if self._outstanding > 1:
            yield f"I-24: {self._outstanding} calls to the ResourceManager are outstanding after {type(event).__name__}"

    def _of_exits(self, event: Event) -> Iterator[str]:
        if isinstance(event, ContainerExited) and event.exit_code != ContainerExitStatus.SUCCESS:
            container = self._containers.get(event.container_id)
            if container is not None and container.launches == event.launch and not container.exit_status:
                yield f"N-10: {container} exited with {event.exit_code}, and has exit status 0"

    def _of_starts(self, event: Event, effects: list[Effect], now_ms: int) -> Iterator[str]:
        if not isinstance(event, StartContainers):
            return
        replies = [effect.value for effect in effects if isinstance(effect, Reply)]
        started = {one for reply in replies if isinstance(reply, StartContainersResponse) for one in reply.succeeded}
        for token in (request.token for request in event.requests):
            if token.container_id not in started:
                continue
            if token.expiry_ms < now_ms:
                yield f"I-33: {token.container_id} was started {now_ms - token.expiry_ms} ms after its token expired"
            if token.rm_identifier != self._rm_identifier():
                yield f"I-33: {token.container_id} was started, and an earlier ResourceManager allocated it"
            if token.container_id.application_id != event.caller.attempt_id.application_id:
                yield f"I-33: {token.container_id} was started by {event.caller.attempt_id}"

    def _of_updates(self, event: Event, effects: list[Effect]) -> Iterator[str]:
        """Check that a container that is being killed keeps its size."""
        tokens = event.tokens if isinstance(event, UpdateContainers) else ()
        replies = [effect.value for effect in effects if isinstance(effect, Reply)]
        accepted = {one for reply in replies if isinstance(reply, UpdateContainersResponse) for one in reply.succeeded}
        for token in tokens:
            container = self._containers.get(token.container_id)
            if token.container_id not in accepted or container is None or container.machine.state not in _NOT_KILLED:
                continue
            if container.token.version < token.version:
                yield f"N-11: an update of {container} to {token.resource} was accepted, and it has another size"
        yield from self._unreported(effects)
        sizes = {container.id: container.token.resource for container in self._containers.values()}
        self._grown |= {
            one for one, size in sizes.items() if (old := self._sizes.get(one, size)) != size and old.fits_in(size)
        }
        self._sizes = sizes

    def _unreported(self, effects: list[Effect]) -> Iterator[str]:
        """Check that a heartbeat reports all containers that have grown since the last one."""
        for effect in effects:
            if isinstance(effect, SendHeartbeat) and self._grown:
                reported = {container.id for container in effect.request.increased_containers}
                for container_id in sorted(self._grown - reported):
                    yield f"N-11: {container_id} has grown, and the heartbeat does not report it"
                self._grown.clear()

    def _of_launches(self, effects: list[Effect]) -> Iterator[str]:
        for effect in effects:
            if isinstance(effect, ReacquireContainer):
                self._launches[effect.effect.container_id] = effect.effect.launch
            elif isinstance(effect, LaunchContainer):
                before = self._launches.get(effect.container_id, 0)
                if effect.launch != before + 1:
                    yield f"N-09: launch {effect.launch} of {effect.container_id} follows launch {before}"
                self._launches[effect.container_id] = effect.launch
        for container_id in [known for known in self._launches if known not in self._containers]:
            del self._launches[container_id]


def _of_calls(event: Event, effects: list[Effect]) -> Iterator[str]:
    answered = [effect.call for effect in effects if isinstance(effect, Reply | Refuse)]
    call = getattr(event, "call", None)
    if answered != ([] if call is None else [call]):
        yield f"N-08: {type(event).__name__} with call {call} was answered by {answered}"
