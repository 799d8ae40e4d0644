"""Adds keys and tokens to the core's replies: the core names containers and nodes, the shell has the keys.

A repeated call must get the same reply. So the last signed reply to each AM is kept together with the core's reply from
which it was made: for a repeated call the core returns the same object again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from rm.shell.master_keys import MasterKeys
from wire.tokens import KeyRing
from yarn.containers import AMRMTokenIdentifier, Container, ContainerTokenIdentifier, Token
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.protocols.master import AllocateResponse, NMToken, RegisterApplicationMasterResponse, UpdatedContainer
from yarn.protocols.tracker import (
    MasterKey,
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerResponse,
)
from yarn.states import ContainerType, NodeAction


@dataclass(slots=True)
class _Issued:
    """The last answers to an AM: its last reply before and after signing, and {node: key id of its NM token}."""

    reply: AllocateResponse | None = None
    signed: AllocateResponse | None = None
    node_keys: dict[NodeId, int] = field(default_factory=dict)


class ResponseSigner:
    """Signs replies. `user_of` returns the user of an application, `clock` the wall-clock time in ms."""

    def __init__(
        self,
        keys: MasterKeys,
        *,
        rm_identifier: int,
        token_lifetime_ms: int,
        user_of: Callable[[ApplicationId], str],
        clock: Callable[[], int],
    ) -> None:
        self._keys = keys
        self._rm_identifier = rm_identifier
        self._token_lifetime_ms = token_lifetime_ms
        self._user_of = user_of
        self._clock = clock
        self._issued: dict[ApplicationAttemptId, _Issued] = {}

    def forget(self, attempt_id: ApplicationAttemptId) -> None:
        """Drop what is kept for an attempt that has ended."""
        self._issued.pop(attempt_id, None)

    def sign_node_registration(self, reply: RegisterNodeManagerResponse) -> RegisterNodeManagerResponse:
        """Add the keys that sign now; while keys change, the first heartbeat brings the next ones.

        With the next ones alone the node would refuse tokens that are signed until these are activated.
        """
        if reply.action is not NodeAction.NORMAL:
            return reply
        return replace(
            reply,
            container_token_key=self._keys.containers.keys.current,
            nm_token_key=self._keys.nodes.keys.current,
        )

    def are_newest(self, container_key_id: int, nm_key_id: int) -> bool:
        """True if these are the newest keys; then a reply without news needs no signing."""
        keys = self._keys
        return (
            _newer_key(keys.containers.keys, container_key_id) is None
            and _newer_key(keys.nodes.keys, nm_key_id) is None
        )

    def sign_heartbeat(self, request: NodeHeartbeatRequest, reply: NodeHeartbeatResponse) -> NodeHeartbeatResponse:
        """Add the keys that the node lacks, and tokens for updated containers. Most replies need neither."""
        container_key = _newer_key(self._keys.containers.keys, request.container_token_key_id)
        nm_key = _newer_key(self._keys.nodes.keys, request.nm_token_key_id)
        if reply.action is not NodeAction.NORMAL:
            return reply
        if container_key is None and nm_key is None and not reply.containers_to_update:
            return reply
        updates = tuple(
            self._with_token(container, container.id.attempt_id) for container in reply.containers_to_update
        )
        return replace(reply, container_token_key=container_key, nm_token_key=nm_key, containers_to_update=updates)

    def sign_registration(
        self, attempt_id: ApplicationAttemptId, reply: RegisterApplicationMasterResponse
    ) -> RegisterApplicationMasterResponse:
        if not reply.containers_from_previous_attempts and not reply.nm_tokens:
            return reply
        issued = self._issued.setdefault(attempt_id, _Issued())
        return replace(
            reply,
            containers_from_previous_attempts=tuple(
                self._with_token(container, attempt_id) for container in reply.containers_from_previous_attempts
            ),
            nm_tokens=self._nm_tokens(attempt_id, issued, [token.node_id for token in reply.nm_tokens]),
        )

    def sign_allocation(self, identifier: AMRMTokenIdentifier, reply: AllocateResponse) -> AllocateResponse:
        """Add tokens to an allocate response.

        `identifier` is that of the caller's token: if the token was signed with an old key, the response has a new one.
        """
        attempt_id = identifier.attempt_id
        issued = self._issued.setdefault(attempt_id, _Issued())
        if issued.reply is reply and issued.signed is not None:
            return issued.signed
        signed = self._signed_allocation(identifier, issued, reply)
        issued.reply, issued.signed = reply, signed
        return signed

    def _signed_allocation(
        self, identifier: AMRMTokenIdentifier, issued: _Issued, reply: AllocateResponse
    ) -> AllocateResponse:
        renewed = self._renewed(identifier)
        containers = (*reply.allocated, *reply.containers_from_previous_attempts)
        if not (containers or reply.nm_tokens or reply.updated_containers or renewed):
            return reply
        attempt_id = identifier.attempt_id
        nodes = [token.node_id for token in reply.nm_tokens]
        nodes += [container.node_id for container in containers if self._is_outdated(issued, container.node_id)]
        return replace(
            reply,
            allocated=tuple(self._with_token(container, attempt_id) for container in reply.allocated),
            containers_from_previous_attempts=tuple(
                self._with_token(container, attempt_id) for container in reply.containers_from_previous_attempts
            ),
            updated_containers=tuple(
                UpdatedContainer(updated.type, self._with_token(updated.container, attempt_id))
                for updated in reply.updated_containers
            ),
            nm_tokens=self._nm_tokens(attempt_id, issued, nodes),
            am_rm_token=renewed,
        )

    def master_token(self, attempt_id: ApplicationAttemptId) -> Token:
        """The AMRM token of an attempt's AM."""
        return self._keys.masters.create(attempt_id)

    def master_container_token(self, container: Container, user: str) -> Token:
        """The container token with which the NM starts an attempt's AM."""
        return self._container_token(container, user, ContainerType.APPLICATION_MASTER)

    def _renewed(self, identifier: AMRMTokenIdentifier) -> Token | None:
        newest = self._keys.masters.keys.newest()
        if newest is None or newest.key_id == identifier.master_key_id:
            return None
        return self._keys.masters.create(identifier.attempt_id)

    def _is_outdated(self, issued: _Issued, node_id: NodeId) -> bool:
        """True if the AM's token for the node was signed with a key that has been replaced."""
        current = self._keys.nodes.keys.current
        key_id = issued.node_keys.get(node_id)
        return key_id is not None and current is not None and key_id != current.key_id

    def _nm_tokens(self, attempt_id: ApplicationAttemptId, issued: _Issued, nodes: list[NodeId]) -> tuple[NMToken, ...]:
        user = self._user_of(attempt_id.application_id)
        current = self._keys.nodes.keys.current
        assert current is not None, "an RM has a key from its start"
        tokens = []
        for node_id in dict.fromkeys(nodes):
            issued.node_keys[node_id] = current.key_id
            tokens.append(NMToken(node_id, self._keys.nodes.create(attempt_id, node_id, user)))
        return tuple(tokens)

    def _with_token(self, container: Container, attempt_id: ApplicationAttemptId) -> Container:
        user = self._user_of(attempt_id.application_id)
        return replace(container, token=self._container_token(container, user, ContainerType.TASK))

    def _container_token(self, container: Container, user: str, kind: ContainerType) -> Token:
        return self._keys.containers.create(self.identifier_of(container, user, kind, self._clock()))

    def identifier_of(
        self, container: Container, user: str, kind: ContainerType, now_ms: int
    ) -> ContainerTokenIdentifier:
        """The content of a container token that is made at `now_ms`, but for the key that signs it."""
        return ContainerTokenIdentifier(
            container.id,
            container.node_id,
            user,
            container.resource,
            expiry_ms=now_ms + self._token_lifetime_ms,
            master_key_id=0,
            rm_identifier=self._rm_identifier,
            priority=container.priority,
            creation_time_ms=now_ms,
            container_type=kind,
            execution_type=container.execution_type,
            version=container.version,
            allocation_request_id=container.allocation_request_id,
        )


def _newer_key(keys: KeyRing, known_key_id: int) -> MasterKey | None:
    newest = keys.newest()
    return newest if newest is not None and newest.key_id != known_key_id else None
