"""The calls of AMs about their own containers, as the core handles them (ContainerManagerImpl)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from nm.core import diagnostics
from nm.core.application import ApplicationContainerInit, InitApplication, NMApplication
from nm.core.container import NMContainer, UpdateContainerToken
from nm.core.context import NodeContext
from nm.core.effects import Signal
from nm.core.events import (
    GetContainerStatuses,
    SignalToContainer,
    StartContainers,
    StopContainers,
    UpdateContainers,
    VerifiedStart,
)
from nm.core.start_checks import StartedContainers, check_launch_context, check_owner, check_start, check_user
from nm.core.status_updater import NodeStatusUpdater
from yarn.containers import Container, ContainerStatus, ContainerTokenIdentifier, NMTokenIdentifier
from yarn.errors import NMNotYetReadyException, YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.machine import Warn
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    StartContainersResponse,
    StopContainersResponse,
    UpdateContainersResponse,
)
from yarn.protocols.tracker import REFUSAL_CHARS_MAX, RefusedStart
from yarn.states import ContainerExitStatus, SignalContainerCommand

T = TypeVar("T")

_SIGNALS = {
    SignalContainerCommand.OUTPUT_THREAD_DUMP: Signal.QUIT,
    SignalContainerCommand.GRACEFUL_SHUTDOWN: Signal.TERM,
    SignalContainerCommand.FORCEFUL_SHUTDOWN: Signal.KILL,
}


class ContainerService:
    """Handles the calls of AMs. In a call for several containers, an error for one does not affect the others."""

    def __init__(
        self,
        context: NodeContext,
        status: NodeStatusUpdater,
        containers: dict[ContainerId, NMContainer],
        applications: dict[ApplicationId, NMApplication],
    ) -> None:
        self.stopping = False
        self._context = context
        self._containers = containers
        self._applications = applications
        self._status = status
        self._started = StartedContainers(keeps_expired=context.recorder.enabled)
        self._auxiliary_services = dict(context.settings.auxiliary_services)

    def note_started_before(self, container_ids: tuple[ContainerId, ...]) -> None:
        """Remember containers that an earlier NM started, so that this node refuses to start them again.

        An AM whose call got no answer from the earlier NM may repeat the call.
        """
        self._started.note_started_before(container_ids)

    def recover_used_tokens(self, used_tokens: tuple[tuple[ContainerId, int], ...]) -> None:
        """Refuse the tokens that an earlier NM has stored as used: (container, expiry in ms)."""
        self._started.recover(used_tokens)

    def start(self, event: StartContainers) -> StartContainersResponse:
        """Start each requested container.

        Raises the error of a forged token, but only after the requests before the forged one have been carried out.
        """
        succeeded, failed = _each(
            (request.token.container_id, partial(self._start_one, event.caller, request)) for request in event.requests
        )
        for container_id, error in failed.items():
            self._report_refusal(event.caller, container_id, error)
        if event.forged is not None:
            raise event.forged
        return StartContainersResponse(succeeded, failed, self._auxiliary_services)

    def stop(self, event: StopContainers) -> StopContainersResponse:
        ids = event.container_ids
        return StopContainersResponse(*_each((each, partial(self._stop_one, event.caller, each)) for each in ids))

    def get_statuses(self, event: GetContainerStatuses) -> GetContainerStatusesResponse:
        ids = event.container_ids
        return GetContainerStatusesResponse(
            *_each((each, partial(self._status_of, event.caller, each)) for each in ids)
        )

    def update(self, event: UpdateContainers) -> UpdateContainersResponse:
        """Change containers to the sizes in the tokens, which the RM has signed."""
        return UpdateContainersResponse(
            *_each((token.container_id, partial(self._check_and_update, event.caller, token)) for token in event.tokens)
        )

    def order_update(self, token: ContainerTokenIdentifier) -> None:
        """Change a container because a heartbeat response of the RM says so; a failure is only logged."""
        try:
            self._update_one(token)
        except YarnException as error:
            self._context.dispatcher.emit(Warn(f"Unable to update container: {error.message}"))

    def signal(self, event: SignalToContainer) -> None:
        """Send a signal to a container for its AM.

        Only the container's own application may do this. Hadoop lets any caller with an NM token signal any container.
        """
        check_owner(event.caller, event.request.container_id, stop=True)
        self.order_signal(event.request.container_id, event.request.command)

    def order_signal(self, container_id: ContainerId, command: SignalContainerCommand) -> None:
        """Send a signal to a container for the RM. A signal for an unknown container is ignored, as in Hadoop."""
        container = self._containers.get(container_id)
        if container is not None:
            container.signal(_SIGNALS[command], command.name)

    def _start_one(self, caller: NMTokenIdentifier, request: VerifiedStart) -> ContainerId:
        token = request.token
        container_id, application_id = token.container_id, token.container_id.application_id
        context = self._context
        if context.recorder.enabled and not self._status.has_registered:
            raise NMNotYetReadyException(
                "Rejecting new containers as NodeManager has not yet connected with ResourceManager"
            )
        check_start(
            caller,
            token,
            started=self._started,
            rm_identifier=self._status.rm_identifier,
            now_ms=context.dispatcher.now_ms,
        )
        check_user(token.user)
        check_launch_context(request.launch_context, self._auxiliary_services)
        if container_id in self._containers:
            raise YarnException(f"Container {container_id} already is running on this node!!")
        if self.stopping:
            raise YarnException("Container start failed as the NodeManager is in the process of shutting down")
        self._status.add(NMContainer(token, request.launch_context, context))
        if application_id not in self._applications:
            self._applications[application_id] = NMApplication(
                application_id, token.user, context, request.launch_context.application_acls
            )
            context.recorder.application_started(application_id, token.user, request.launch_context.application_acls)
            context.dispatcher.send(InitApplication(application_id))
        context.recorder.container_accepted(token, request.launch_context)
        context.dispatcher.send(ApplicationContainerInit(container_id))
        self._started.add(token)
        context.recorder.token_used(token, self._started.take_expired())
        return container_id

    def _report_refusal(self, caller: NMTokenIdentifier, container_id: ContainerId, error: YarnException) -> None:
        """Report a refusal to the RM, unless the container is not the caller's or was started by an earlier call."""
        is_own = caller.attempt_id.application_id == container_id.application_id
        if is_own and not self._started.has(container_id, self._context.dispatcher.now_ms):
            self._status.report_refused_start(RefusedStart(container_id, error.message.strip()[:REFUSAL_CHARS_MAX]))

    def _check_and_update(self, caller: NMTokenIdentifier, token: ContainerTokenIdentifier) -> ContainerId:
        now_ms, rm_identifier = self._context.dispatcher.now_ms, self._status.rm_identifier
        check_start(caller, token, started=None, rm_identifier=rm_identifier, now_ms=now_ms)
        self._update_one(token)
        return token.container_id

    def _update_one(self, token: ContainerTokenIdentifier) -> None:
        """Apply a token with a newer version than the container's (updateContainerInternal).

        At most one increase of a container is accepted between two heartbeats.
        """
        container_id = token.container_id
        container = self._container(container_id)
        old = container.token
        if token.version <= old.version:
            raise YarnException(
                f"Container {container_id} has update version [{old.version}] >= requested version [{token.version}]"
            )
        if self.stopping:
            raise YarnException(
                "Unable to change container resource as the NodeManager is in the process of shutting down"
            )
        if old.resource != token.resource and old.resource.fits_in(token.resource):
            if container_id in self._status.increased:
                raise YarnException(
                    f"Container {container_id} resource is being increased -or- is undergoing ExecutionType promoted."
                )
            self._status.increased[container_id] = Container(
                container_id,
                self._status.node_id,
                "",
                token.resource,
                token.priority,
                execution_type=old.execution_type,
                version=token.version,
            )
        self._context.dispatcher.send(UpdateContainerToken(container_id, token))

    def _container(self, container_id: ContainerId) -> NMContainer:
        container = self._containers.get(container_id)
        if container is not None:
            return container
        if self._status.is_recently_stopped(container_id):
            raise YarnException(f"Container {container_id} was recently stopped on node manager.")
        raise YarnException(f"Container {container_id} is not handled by this NodeManager")

    def _stop_one(self, caller: NMTokenIdentifier, container_id: ContainerId) -> ContainerId:
        check_owner(caller, container_id, stop=True)
        container = self._containers.get(container_id)
        if container is not None:
            container.stop(ContainerExitStatus.KILLED_BY_APPMASTER, diagnostics.KILLED_BY_APPLICATION_MASTER)
        elif not self._status.is_recently_stopped(container_id):
            raise YarnException(f"Container {container_id} is not handled by this NodeManager")
        return container_id

    def _status_of(self, caller: NMTokenIdentifier, container_id: ContainerId) -> ContainerStatus:
        check_owner(caller, container_id, stop=False)
        container = self._container(container_id)
        # YARN services wait for the host of each container that was started (ContainerImpl.setIpAndHost).
        return replace(container.status(), host=self._status.node_id.host if container.launches else "")


def _each(
    calls: Iterable[tuple[ContainerId, Callable[[], T]]],
) -> tuple[tuple[T, ...], dict[ContainerId, YarnException]]:
    """Make all calls. Returns (the results of those that succeed, {container: error} of those that fail)."""
    results: list[T] = []
    failed: dict[ContainerId, YarnException] = {}
    for container_id, call in calls:
        try:
            results.append(call())
        except YarnException as error:
            failed[container_id] = error
    return tuple(results), failed
