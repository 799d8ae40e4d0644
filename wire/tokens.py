"""Tokens: statements of the RM, sealed with HMAC-SHA-256 under a key that only RM and NMs have.

A token's identifier says whom it is for; the password is the identifier's seal. Who holds the key checks the seal and
then believes the identifier, whoever brought it. Kinds and identifiers are Hadoop's; its seal is HMAC-SHA1.

    AMRM token       one attempt's master      to the RM        signed and checked by the RM
    NM token         one attempt's master      to one NM        signed by the RM, checked by the NM
    container token  one container on one NM   to start it      signed by the RM, checked by the NM
    node token       one NM                    to the RM        sealed with the cluster's secret (ours; Kerberos there)
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

from protos.yarn_protos_pb2 import NodeIdProto
from wire.codec.basic import read_node_id, write_node_id
from wire.codec.containers import (
    read_amrm_identifier,
    read_container_identifier,
    read_nm_identifier,
    write_amrm_identifier,
    write_container_identifier,
    write_nm_identifier,
)
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
    """A fresh key with a random number, so that keys of two RMs are told apart."""
    return MasterKey(1 + secrets.randbelow(INT32_MAX - 1), secrets.token_bytes(SECRET_BYTES))


def seal(secret: bytes, identifier: bytes) -> bytes:
    """The password that belongs to an identifier."""
    return hmac.new(secret, identifier, hashlib.sha256).digest()


class KeyRing:
    """The keys of one kind of token: `current` signs, and `next` or `previous` are taken as well while keys change.

    RM: `roll` makes the next key, which goes out with heartbeats, and `activate_next` signs with it once the nodes
    have it. NM: `accept` takes a new key from the RM and keeps the one before.
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

    def accept(self, key: MasterKey) -> None:
        """Take `key` as the current one; the same key again changes nothing."""
        if self.current is None or self.current.key_id != key.key_id:
            self.previous, self.current = self.current, key

    def newest(self) -> MasterKey | None:
        """The key that a node should have by now: the next one while it is rolled out."""
        return self.next or self.current

    def taken(self) -> tuple[MasterKey, ...]:
        """The current key, and the next one while there is one."""
        return tuple(key for key in (self.current, self.next) if key is not None)

    def find(self, key_id: int) -> MasterKey | None:
        """The key of that number, if it is still taken."""
        for key in (self.current, self.next, self.previous):
            if key is not None and key.key_id == key_id:
                return key
        return None


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
        return Token(data, seal(key.secret, data), self.kind, service)

    def check(self, token: Token | None) -> Identifier:
        """What the token proves. Raises InvalidToken for one that is missing, of another kind, or not ours."""
        if token is None:
            raise InvalidToken(f"no {self.kind} came with the call")
        if token.kind != self.kind:
            raise InvalidToken(f"a token of kind {token.kind[:40]!r} came with the call, it must be {self.kind}")
        try:
            identifier = self._read(token.identifier)
        except (DecodeError, InvalidArgumentException) as error:
            raise InvalidToken(f"the {self.kind}'s identifier cannot be read: {error}") from None
        key = self.key_for(identifier)
        if key is None:
            raise InvalidToken(
                f"the {self.kind} is sealed with key {identifier.master_key_id}, which is not taken (any more)"
            )
        if not hmac.compare_digest(seal(key.secret, token.identifier), token.password):
            raise InvalidToken(f"the {self.kind}'s seal is wrong")
        return identifier

    def signing_key(self) -> MasterKey | None:
        """The key that seals: not the next one while nodes may not have it yet."""
        return self.keys.current

    def key_for(self, identifier: Identifier) -> MasterKey | None:
        """The key that must have sealed it, None if that key is not taken."""
        return self.keys.find(identifier.master_key_id)


class AMRMTokenSecretManager(TokenSecretManager[AMRMTokenIdentifier]):
    """Tokens of masters.

    A token outlives its attempt: Hadoop looks at it once a connection, and what a master of an ended attempt then hears
    on that connection comes from ApplicationMasterService. Here each call is looked at, and the core says the same.
    """

    def __init__(self, keys: KeyRing) -> None:
        super().__init__(AMRM_KIND, keys, write_amrm_identifier, read_amrm_identifier)

    def create(self, attempt_id: ApplicationAttemptId) -> Token:
        """A token for the attempt's master."""
        return self.sign(AMRMTokenIdentifier(attempt_id, 0))

    def signing_key(self) -> MasterKey | None:
        """The next key as soon as there is one: only the RM checks these tokens."""
        return self.keys.newest()


class NMTokenSecretManager(TokenSecretManager[NMTokenIdentifier]):
    """Tokens that let a master talk to an NM.

    At the NM an attempt goes on with the key it first came with, however often keys change (NMTokenSecretManagerInNM):
    `remember` when a container of the attempt is started, `forget` when its application ends.
    """

    def __init__(self, keys: KeyRing) -> None:
        super().__init__(NM_KIND, keys, write_nm_identifier, read_nm_identifier)
        self._remembered: dict[ApplicationAttemptId, MasterKey] = {}

    def create(self, attempt_id: ApplicationAttemptId, node_id: NodeId, user: str) -> Token:
        """A token for the attempt's master to talk to the node."""
        return self.sign(NMTokenIdentifier(attempt_id, node_id, user, 0), service=str(node_id))

    def remember(self, identifier: NMTokenIdentifier) -> None:
        key = self.keys.find(identifier.master_key_id)
        if key is not None:
            self._remembered[identifier.attempt_id] = key

    def forget(self, attempt_id: ApplicationAttemptId) -> None:
        self._remembered.pop(attempt_id, None)

    def node_of(self, token: Token | None) -> NodeId | None:
        """Whom the token says it is for, which proves nothing yet; None if that cannot be read."""
        if token is None or token.kind != self.kind:
            return None
        try:
            return read_nm_identifier(token.identifier).node_id
        except (DecodeError, InvalidArgumentException):
            return None

    def check_for(self, token: Token | None, node_id: NodeId) -> NMTokenIdentifier:
        """What the token proves at this node. Raises InvalidToken also if it is for another."""
        identifier = self.check(token)
        if identifier.node_id != node_id:
            raise InvalidToken(f"Given NMToken for application : {identifier.attempt_id} is not valid for {node_id}")
        return identifier

    def key_for(self, identifier: NMTokenIdentifier) -> MasterKey | None:
        remembered = self._remembered.get(identifier.attempt_id)
        if remembered is not None and remembered.key_id == identifier.master_key_id:
            return remembered
        return self.keys.find(identifier.master_key_id)


class ContainerTokenSecretManager(TokenSecretManager[ContainerTokenIdentifier]):
    """Promises of containers. Expiry and a second use are the NM's to see: this checks the seal and the node."""

    def __init__(self, keys: KeyRing) -> None:
        super().__init__(CONTAINER_KIND, keys, write_container_identifier, read_container_identifier)

    def create(self, identifier: ContainerTokenIdentifier) -> Token:
        """The token that the NM wants to see (its `service` is the NM's address)."""
        return self.sign(identifier, service=str(identifier.node_id))

    def check_for(self, token: Token | None, node_id: NodeId) -> ContainerTokenIdentifier:
        """What the token promises at this node. Raises InvalidToken also if it is for another."""
        identifier = self.check(token)
        if identifier.node_id != node_id:
            raise InvalidToken(
                f"the token of {identifier.container_id} is for {identifier.node_id}, this NodeManager is {node_id}"
            )
        return identifier


class ClusterSecretManager(Generic[Proven]):
    """Proofs to the RM of belonging to the cluster: who one is, under the secret that both were started with."""

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
        return Token(data, self._seal(data), self._kind, "")

    def check(self, token: Token | None) -> Proven:
        """Who calls. Raises InvalidToken."""
        if token is None or token.kind != self._kind:
            raise InvalidToken(f"no {self._kind} came with the call (has the NodeManager the cluster's secret?)")
        if not hmac.compare_digest(self._seal(token.identifier), token.password):
            raise InvalidToken(f"the {self._kind}'s seal is wrong: the NodeManager has the secret of another cluster")
        try:
            return self._read(self._proto.FromString(token.identifier))
        except (DecodeError, InvalidArgumentException) as error:
            raise InvalidToken(f"the {self._kind}'s identifier cannot be read: {error}") from None

    def _seal(self, data: bytes) -> bytes:
        return _seal_of_kind(self._secret, self._kind, data)


class NodeTokenSecretManager(ClusterSecretManager[NodeId]):
    """A node's proof."""

    def __init__(self, cluster_secret: bytes) -> None:
        super().__init__(cluster_secret, NODE_KIND, NodeIdProto, write_node_id, read_node_id)


class ClientTokenSecretManager:
    """Proves that a client may read the cluster's secret. It says nothing about the user, whom the caller names."""

    def __init__(self, cluster_secret: bytes) -> None:
        self._secret = cluster_secret

    def create(self) -> Token:
        """The token to send with calls to clients' ports; its identifier is empty."""
        return Token(b"", _seal_of_kind(self._secret, CLIENT_KIND, b""), CLIENT_KIND, "")

    def check(self, token: Token | None) -> None:
        """Raises InvalidToken for a token that is missing, of another kind, or of another cluster."""
        if token is None or token.kind != CLIENT_KIND:
            raise InvalidToken(f"no {CLIENT_KIND} came with the call")
        if not hmac.compare_digest(_seal_of_kind(self._secret, CLIENT_KIND, token.identifier), token.password):
            raise InvalidToken(f"the {CLIENT_KIND} was made with another secret than this cluster's")


def _seal_of_kind(secret: bytes, kind: str, identifier: bytes) -> bytes:
    """A seal that includes the kind, so that a token of one kind cannot be shown as one of another."""
    return seal(secret, kind.encode() + b"\0" + identifier)
