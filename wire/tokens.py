"""Tokens: identifiers signed with HMAC-SHA-256 under a key that only the RM and its NMs have.

A token's identifier says whom it is for; its password is the signature of the identifier. A server that has the key
checks the signature and then trusts the identifier, no matter who sent the token. Kinds and identifiers are Hadoop's;
Hadoop signs with HMAC-SHA1.

    AMRM token       one attempt's AM          to the RM        signed and checked by the RM
    NM token         one attempt's AM          to one NM        signed by the RM, checked by the NM
    container token  one container on one NM   to start it      signed by the RM, checked by the NM
    node token       one NM                    to the RM        signed with the cluster's secret (Hadoop: Kerberos)
    pack token       the NMs of one process    to the RM        likewise (wire.protocols.pack)
    client token     clients, administrators   to the RM        likewise
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from google.protobuf.message import DecodeError, Message
from msgspec.structs import replace

from wire.codec.basic import read_node_id, write_node_id
from wire.codec.containers import (
    read_amrm_identifier,
    read_container_identifier,
    read_nm_identifier,
    write_amrm_identifier,
    write_container_identifier,
    write_nm_identifier,
)
from wire.generated.yarn_protos_pb2 import NodeIdProto
from yarn.containers import (
    AMRM_KIND,
    CLIENT_KIND,
    CONTAINER_KIND,
    NM_KIND,
    NODE_KIND,
    AMRMTokenIdentifier,
    ContainerTokenIdentifier,
    NMTokenIdentifier,
    Token,
)
from yarn.errors import InvalidArgumentException, InvalidToken
from yarn.ids import ApplicationAttemptId, NodeId
from yarn.protocols.tracker import MasterKey
from yarn.resource import INT32_MAX

SECRET_BYTES = 32

Proven = TypeVar("Proven")
Identifier = TypeVar("Identifier", bound=AMRMTokenIdentifier | NMTokenIdentifier | ContainerTokenIdentifier)


def new_master_key() -> MasterKey:
    """A new key with a random id, so that keys of two RMs differ."""
    return MasterKey(1 + secrets.randbelow(INT32_MAX - 1), secrets.token_bytes(SECRET_BYTES))


def signature(secret: bytes, identifier: bytes) -> bytes:
    """The signature (password) of an identifier."""
    return hmac.new(secret, identifier, hashlib.sha256).digest()


class KeyRing:
    """The keys of one kind of token: `current` signs; `next` and `previous` are accepted too while keys change.

    RM: `roll` creates the next key, which is sent with heartbeats, and `activate_next` makes it current once the nodes
    have it. NM: `accept` stores a new key from the RM and keeps the previous one.
    """

    def __init__(self, current: MasterKey | None = None) -> None:
        self.current = current
        self.next: MasterKey | None = None
        self.previous: MasterKey | None = None

    def roll(self, key: MasterKey | None = None) -> None:
        self.next = key or new_master_key()

    def activate_next(self) -> None:
        if self.next is not None:
            self.current, self.next = self.next, None

    def accept(self, key: MasterKey) -> bool:
        """Make `key` the current one. Returns False if it is that already."""
        if self.current is not None and self.current.key_id == key.key_id:
            return False
        self.previous, self.current = self.current, key
        return True

    def newest(self) -> MasterKey | None:
        """The next key while it is being rolled out, otherwise the current one."""
        return self.next or self.current

    def accepted(self) -> tuple[MasterKey, ...]:
        """The current key, and the next one if there is one."""
        return tuple(key for key in (self.current, self.next) if key is not None)

    def find(self, key_id: int) -> MasterKey | None:
        """The key with this id, if it is still accepted; None otherwise."""
        for key in (self.current, self.next, self.previous):
            if key is not None and key.key_id == key_id:
                return key
        return None


class WrongSignature(InvalidToken):
    """The token is readable, but not signed by us."""


class TokenSecretManager(Generic[Identifier]):
    """Signs and checks tokens of one kind."""

    def __init__(
        self, kind: str, keys: KeyRing, write: Callable[[Identifier], bytes], read: Callable[[bytes], Identifier]
    ) -> None:
        self.kind = kind
        self.keys = keys
        self._write = write
        self._read = read

    def sign(self, identifier: Identifier, service: str = "") -> Token:
        """A token for `identifier`, whose master_key_id is set to that of the key used."""
        key = self.signing_key()
        assert key is not None, f"no key to sign a {self.kind} with"
        data = self._write(replace(identifier, master_key_id=key.key_id))
        return Token(data, signature(key.secret, data), self.kind, service)

    def check(self, token: Token | None) -> Identifier:
        """The identifier that the token proves.

        Raises InvalidToken if it is missing, of another kind, or not signed by us.
        """
        if token is None:
            raise InvalidToken(f"the call has no {self.kind}")
        if token.kind != self.kind:
            raise InvalidToken(f"the call has a token of kind {token.kind[:40]!r}, it must be {self.kind}")
        identifier, key = self._read_with_key(token.identifier)
        if not hmac.compare_digest(signature(key.secret, token.identifier), token.password):
            raise WrongSignature(f"the {self.kind} has a wrong signature")
        return identifier

    def token_of(self, identifier: bytes) -> Token:
        """The token with this identifier, as its holder has it: to check a caller who proves to know its password.

        Raises InvalidToken if no token with it is accepted.
        """
        _, key = self._read_with_key(identifier)
        return Token(identifier, signature(key.secret, identifier), self.kind, "")

    def _read_with_key(self, data: bytes) -> tuple[Identifier, MasterKey]:
        """The identifier, and the key that must have signed it. Raises InvalidToken."""
        try:
            identifier = self._read(data)
        except (DecodeError, InvalidArgumentException) as error:
            raise InvalidToken(f"the {self.kind}'s identifier cannot be read: {error}") from None
        key = self.key_for(identifier)
        if key is None:
            raise InvalidToken(
                f"the {self.kind} is signed with key {identifier.master_key_id}, which is unknown or has expired"
            )
        return identifier, key

    def signing_key(self) -> MasterKey | None:
        """The key to sign with: not the next one, which some nodes may not have yet."""
        return self.keys.current

    def key_for(self, identifier: Identifier) -> MasterKey | None:
        """The key with which the identifier must have been signed; None if that key is not accepted."""
        return self.keys.find(identifier.master_key_id)


class AMRMTokenSecretManager(TokenSecretManager[AMRMTokenIdentifier]):
    """Tokens of AMs.

    A token outlives its attempt: Hadoop checks it once per connection, and the AM of a finished attempt then gets its
    error from ApplicationMasterService. Here each call is checked, and the core returns the same error. Only a new
    connection of Hadoop's RPC is refused (rm.daemon).
    """

    def __init__(self, keys: KeyRing) -> None:
        super().__init__(AMRM_KIND, keys, write_amrm_identifier, read_amrm_identifier)

    def create(self, attempt_id: ApplicationAttemptId) -> Token:
        """A token for the attempt's AM."""
        return self.sign(AMRMTokenIdentifier(attempt_id, 0))

    def signing_key(self) -> MasterKey | None:
        """The newest key: only the RM checks these tokens."""
        return self.keys.newest()


class NMTokenSecretManager(TokenSecretManager[NMTokenIdentifier]):
    """Tokens that let an AM call an NM.

    At the NM an attempt keeps the key of its first token, however often keys change (NMTokenSecretManagerInNM): call
    `remember` when a container of the attempt is started, `forget` when its application ends.
    """

    def __init__(self, keys: KeyRing) -> None:
        super().__init__(NM_KIND, keys, write_nm_identifier, read_nm_identifier)
        self._remembered: dict[ApplicationAttemptId, MasterKey] = {}

    def create(self, attempt_id: ApplicationAttemptId, node_id: NodeId, user: str) -> Token:
        """A token for the attempt's AM to call the node."""
        return self.sign(NMTokenIdentifier(attempt_id, node_id, user, 0), service=str(node_id))

    def remember(self, identifier: NMTokenIdentifier) -> MasterKey | None:
        """Remember the key of the attempt's token. Returns the key if it is a new one for the attempt."""
        key = self.keys.find(identifier.master_key_id)
        if key is None or self._remembered.get(identifier.attempt_id) == key:
            return None
        self._remembered[identifier.attempt_id] = key
        return key

    @property
    def remembered(self) -> dict[ApplicationAttemptId, MasterKey]:
        """The keys of attempts that are remembered."""
        return dict(self._remembered)

    def recover(self, attempt_id: ApplicationAttemptId, key: MasterKey) -> None:
        """Remember a key that an earlier NM has stored."""
        self._remembered[attempt_id] = key

    def forget(self, attempt_id: ApplicationAttemptId) -> None:
        self._remembered.pop(attempt_id, None)

    def node_of(self, token: Token | None) -> NodeId | None:
        """The node that the token claims to be for, not yet verified; None if it cannot be read."""
        if token is None or token.kind != self.kind:
            return None
        try:
            return read_nm_identifier(token.identifier).node_id
        except (DecodeError, InvalidArgumentException):
            return None

    def check_for(self, token: Token | None, node_id: NodeId) -> NMTokenIdentifier:
        """The identifier that the token proves at this node. Raises InvalidToken also if it is for another node."""
        identifier = self.check(token)
        if identifier.node_id != node_id:
            raise InvalidToken(
                f"Given NMToken for application : {identifier.attempt_id} is not valid for current node manager."
                f"expected : {node_id} found : {identifier.node_id}"
            )
        return identifier

    def key_for(self, identifier: NMTokenIdentifier) -> MasterKey | None:
        remembered = self._remembered.get(identifier.attempt_id)
        if remembered is not None and remembered.key_id == identifier.master_key_id:
            return remembered
        return self.keys.find(identifier.master_key_id)


class ContainerTokenSecretManager(TokenSecretManager[ContainerTokenIdentifier]):
    """Signs and checks container tokens: signature and node. The NM itself checks expiry and repeated use."""

    def __init__(self, keys: KeyRing) -> None:
        super().__init__(CONTAINER_KIND, keys, write_container_identifier, read_container_identifier)

    def create(self, identifier: ContainerTokenIdentifier) -> Token:
        """The token with which the NM starts the container (its `service` is the NM's address)."""
        return self.sign(identifier, service=str(identifier.node_id))

    def check_for(self, token: Token | None, node_id: NodeId) -> ContainerTokenIdentifier:
        """The identifier that the token proves at this node. Raises InvalidToken also if it is for another node."""
        try:
            identifier = self.check(token)
        except WrongSignature:
            raise InvalidToken(f"Invalid container token used for starting container on : {node_id}") from None
        if identifier.node_id != node_id:
            raise InvalidToken(
                f"Given Container {identifier.container_id} identifier is not valid for current Node manager. "
                f"Expected : {node_id} Found : {identifier.node_id}"
            )
        return identifier


class ClusterSecretManager(Generic[Proven]):
    """Tokens that prove to the RM who calls, signed with the cluster's secret."""

    def __init__(
        self,
        cluster_secret: bytes,
        kind: str,
        proto: type[Message],
        write: Callable[[Proven, Any], None],
        read: Callable[[Any], Proven],
    ) -> None:
        self._secret = cluster_secret
        self._kind = kind
        self._proto = proto
        self._write = write
        self._read = read

    def create(self, who: Proven) -> Token:
        proto = self._proto()
        self._write(who, proto)
        data = proto.SerializeToString(deterministic=True)
        return Token(data, self._signature(data), self._kind, "")

    def check(self, token: Token | None) -> Proven:
        """The caller that the token proves. Raises InvalidToken."""
        if token is None or token.kind != self._kind:
            raise InvalidToken(f"the call has no {self._kind} (does the NodeManager have the cluster's secret?)")
        if not hmac.compare_digest(self._signature(token.identifier), token.password):
            raise InvalidToken(
                f"the {self._kind} has a wrong signature: the NodeManager has the secret of another cluster"
            )
        try:
            return self._read(self._proto.FromString(token.identifier))
        except (DecodeError, InvalidArgumentException) as error:
            raise InvalidToken(f"the {self._kind}'s identifier cannot be read: {error}") from None

    def _signature(self, data: bytes) -> bytes:
        return _signature_of_kind(self._secret, self._kind, data)


class NodeTokenSecretManager(ClusterSecretManager[NodeId]):
    """Signs and checks node tokens, which prove which node calls."""

    def __init__(self, cluster_secret: bytes) -> None:
        super().__init__(cluster_secret, NODE_KIND, NodeIdProto, write_node_id, read_node_id)


class ClientTokenSecretManager:
    """Client tokens: they prove that a client can read the cluster's secret, not who it is."""

    def __init__(self, cluster_secret: bytes) -> None:
        self._secret = cluster_secret

    def create(self) -> Token:
        """The token for calls to the client and admin ports; its identifier is empty."""
        return Token(b"", _signature_of_kind(self._secret, CLIENT_KIND, b""), CLIENT_KIND, "")

    def check(self, token: Token | None) -> None:
        """Raises InvalidToken for a token that is missing, of another kind, or of another cluster."""
        if token is None or token.kind != CLIENT_KIND:
            raise InvalidToken(f"the call has no {CLIENT_KIND}")
        if not hmac.compare_digest(_signature_of_kind(self._secret, CLIENT_KIND, token.identifier), token.password):
            raise InvalidToken(f"the {CLIENT_KIND} is signed with the secret of another cluster")


def _signature_of_kind(secret: bytes, kind: str, identifier: bytes) -> bytes:
    """A signature that includes the kind, so that a token of one kind cannot be used as another."""
    return signature(secret, kind.encode() + b"\0" + identifier)
