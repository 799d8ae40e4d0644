"""What an AM may do with which container: the checks behind ContainerManagementProtocol, in Hadoop's order.

Signatures are checked before, by who has the keys; here identities are compared (ContainerManagerImpl).
"""

from __future__ import annotations

from yarn.containers import ContainerLaunchContext, ContainerTokenIdentifier, NMTokenIdentifier
from yarn.errors import InvalidAuxServiceException, InvalidContainerException, YarnException
from yarn.ids import ContainerId

_CHANGING = "increase container resource", "increasing resource of"


class StartedContainers:
    """Containers whose token was used, until it expires: a token starts one container once.

    Also across NMs over the same directories: what an earlier one had begun is known for as long as this one lives.
    """

    def __init__(self) -> None:
        self._expiry_ms: dict[ContainerId, int] = {}
        self._begun_before: frozenset[ContainerId] = frozenset()

    def note_begun(self, container_ids: tuple[ContainerId, ...]) -> None:
        self._begun_before = frozenset(container_ids)

    def add(self, token: ContainerTokenIdentifier) -> None:
        self._expiry_ms[token.container_id] = token.expiry_ms

    def has(self, container_id: ContainerId, now_ms: int) -> bool:
        # Tokens come nearly in the order in which they expire: what is behind a good one is looked at later.
        while self._expiry_ms:
            oldest = next(iter(self._expiry_ms))
            if self._expiry_ms[oldest] >= now_ms:
                break
            del self._expiry_ms[oldest]
        return container_id in self._expiry_ms or container_id in self._begun_before


def check_start(
    caller: NMTokenIdentifier,
    token: ContainerTokenIdentifier,
    *,
    started: StartedContainers | None,
    rm_identifier: int,
    now_ms: int,
) -> None:
    """Raise what Hadoop says of a start that is not authorised; of a change of one that runs if `started` is None."""
    container_id = token.container_id
    reason = ""
    what, doing = ("start container", "starting") if started is not None else _CHANGING
    if caller.attempt_id.application_id != container_id.application_id:
        reason = (
            f"\nNMToken for application attempt : {caller.attempt_id} was used for {doing} container with "
            f"container token issued for application attempt : {container_id.attempt_id}"
        )
    elif started is not None and started.has(container_id, now_ms):
        reason = f"\n Attempt to relaunch the same container with id {container_id}."
    elif token.expiry_ms < now_ms:
        reason = (
            f"\nThis token is expired. current time is {now_ms} found {token.expiry_ms}"
            "\nNote: System times on machines may be out of sync. Check system time and time zones."
        )
    if reason:
        raise YarnException(f"Unauthorized request to {what}." + reason)
    if token.rm_identifier != rm_identifier:
        raise InvalidContainerException(f"\nContainer {container_id} rejected as it is allocated by a previous RM")


def check_user(user: str) -> None:
    """Raise for a name that is no single part of a path: it becomes a directory. (The RM refuses it as well.)"""
    if user in ("", ".", "..") or any(letter in "/\0" or letter < " " for letter in user):
        raise YarnException(f"user {user!r} cannot be the name of a directory (use letters, digits, . _ -)")


def check_launch_context(launch: ContainerLaunchContext, auxiliary_services: dict[str, bytes]) -> None:
    """Raise if the context names a service that the node does not have, or a resource without a place."""
    for name in launch.service_data:
        if name not in auxiliary_services:
            raise InvalidAuxServiceException(f"The auxService:{name} does not exist")
    for link, resource in launch.local_resources.items():
        if not resource.url:
            raise YarnException(f"Null resource URL for local resource {link} : {resource}")


def check_owner(caller: NMTokenIdentifier, container_id: ContainerId, *, stop: bool) -> None:
    """Raise if the container is not one of the caller's application."""
    if caller.attempt_id.application_id == container_id.application_id:
        return
    what = "stop" if stop else "get status for"
    raise YarnException(f"{caller.attempt_id} attempted to {what} non-application container : {container_id}")
