"""Puts keys and tokens into the core's replies: the core names containers and nodes, the shell holds the keys.

A reply that is sent again must be what it was, so a signed reply is remembered by the core's own object for it: the
core answers a repeated call with the very same one.
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
    """What one attempt's master was given: its last reply before and after signing, and {node: key of its token}."""

    reply: AllocateResponse | None = None
    signed: AllocateResponse | None = None
    node_keys: dict[NodeId, int] = field(default_factory=dict)


class ResponseSigner:
    """Signs replies. `user_of` tells whose an application is, `clock` the wall time in ms."""

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
        """The attempt has ended: nothing is signed for it any more."""
        self._issued.pop(attempt_id, None)

    # For nodes

    def sign_node_registration(self, reply: RegisterNodeManagerResponse) -> RegisterNodeManagerResponse:
        if reply.action is not NodeAction.NORMAL:
            return reply
        return replace(
            reply,
            container_token_key=self._keys.containers.keys.newest(),
            nm_token_key=self._keys.nodes.keys.newest(),
        )

    def are_newest(self, container_key_id: int, nm_key_id: int) -> bool:
        """Whether a node that has these keys is to get none: then a quiet reply to it needs no signing."""
        keys = self._keys
        return _news(keys.containers.keys, container_key_id) is None and _news(keys.nodes.keys, nm_key_id) is None

    def sign_heartbeat(self, request: NodeHeartbeatRequest, reply: NodeHeartbeatResponse) -> NodeHeartbeatResponse:
        """With the keys that the node has not got and tokens for containers that change; most replies have none."""
        container_key = _news(self._keys.containers.keys, request.container_token_key_id)
        nm_key = _news(self._keys.nodes.keys, request.nm_token_key_id)
        if reply.action is not NodeAction.NORMAL:
            return reply
        if container_key is None and nm_key is None and not reply.containers_to_update:
            return reply
        updates = tuple(
            self._with_token(container, container.id.attempt_id) for container in reply.containers_to_update
        )
        return replace(reply, container_token_key=container_key, nm_token_key=nm_key, containers_to_update=updates)

    # For masters

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
        """`identifier` is what the master showed: if it is of an old key, a new token goes with the reply."""
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
        """What an attempt's master shows the RM."""
        return self._keys.masters.create(attempt_id)

    def master_container_token(self, container: Container, user: str) -> Token:
        """What the NM wants to see to start an attempt's master."""
        return self._container_token(container, user, ContainerType.APPLICATION_MASTER)

    def _renewed(self, identifier: AMRMTokenIdentifier) -> Token | None:
        newest = self._keys.masters.keys.newest()
        if newest is None or newest.key_id == identifier.master_key_id:
            return None
        return self._keys.masters.create(identifier.attempt_id)

    def _is_outdated(self, issued: _Issued, node_id: NodeId) -> bool:
        """Whether the master's token for the node was sealed with a key that has been replaced since."""
        current = self._keys.nodes.keys.current
        key_id = issued.node_keys.get(node_id)
        return key_id is not None and current is not None and key_id != current.key_id

    def _nm_tokens(self, attempt_id: ApplicationAttemptId, issued: _Issued, nodes: list[NodeId]) -> tuple[NMToken, ...]:
        user = self._user_of(attempt_id.application_id)
        current = self._keys.nodes.keys.current
        assert current is not None, "an RM has a key from the start"
        tokens = []
        for node_id in dict.fromkeys(nodes):
            issued.node_keys[node_id] = current.key_id
            tokens.append(NMToken(node_id, self._keys.nodes.create(attempt_id, node_id, user)))
        return tuple(tokens)

    def _with_token(self, container: Container, attempt_id: ApplicationAttemptId) -> Container:
        user = self._user_of(attempt_id.application_id)
        return replace(container, token=self._container_token(container, user, ContainerType.TASK))

    def _container_token(self, container: Container, user: str, kind: ContainerType) -> Token:
        now_ms = self._clock()
        identifier = ContainerTokenIdentifier(
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
        return self._keys.containers.create(identifier)


def _news(keys: KeyRing, known_key_id: int) -> MasterKey | None:
    newest = keys.newest()
    return newest if newest is not None and newest.key_id != known_key_id else None
