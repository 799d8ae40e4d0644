"""Tokens: what their signature proves, and everything that must be refused."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from wire.caller import TOKEN_BYTES_MAX, TOKEN_KEY, caller_metadata, read_caller
from wire.tokens import (
    AMRMTokenSecretManager,
    ContainerTokenSecretManager,
    KeyRing,
    NMTokenSecretManager,
    NodeTokenSecretManager,
    new_master_key,
)
from yarn.containers import ContainerTokenIdentifier, Token
from yarn.errors import InvalidArgumentException, InvalidToken
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.protocols.tracker import MasterKey
from yarn.resource import Resource

ATTEMPT = ApplicationAttemptId(ApplicationId(1_700_000_000_000, 1), 1)
OTHER_ATTEMPT = ApplicationAttemptId(ApplicationId(1_700_000_000_000, 2), 1)
NODE, OTHER_NODE = NodeId("127.0.0.2", 45454), NodeId("127.0.0.3", 45454)
PROMISE = ContainerTokenIdentifier(ContainerId(ATTEMPT, 2), NODE, "ann", Resource(1024, 1), 1000, 0, 77, 1, 500)


@pytest.fixture
def masters() -> AMRMTokenSecretManager:
    return AMRMTokenSecretManager(KeyRing(new_master_key()))


@pytest.fixture
def nodes() -> NMTokenSecretManager:
    return NMTokenSecretManager(KeyRing(new_master_key()))


def test_an_am_is_known_by_its_token(masters: AMRMTokenSecretManager) -> None:
    assert masters.check(masters.create(ATTEMPT)).attempt_id == ATTEMPT


def test_a_call_without_a_token_is_refused(masters: AMRMTokenSecretManager) -> None:
    with pytest.raises(InvalidToken, match="the call has no YARN_AM_RM_TOKEN"):
        masters.check(None)


def test_the_identifier_cannot_be_exchanged(masters: AMRMTokenSecretManager) -> None:
    """F49: an AM cannot pose as that of another attempt."""
    mine, theirs = masters.create(ATTEMPT), masters.create(OTHER_ATTEMPT)
    with pytest.raises(InvalidToken, match="has a wrong signature"):
        masters.check(replace(mine, identifier=theirs.identifier))


def test_no_bit_of_a_token_can_be_changed(masters: AMRMTokenSecretManager) -> None:
    token = masters.create(ATTEMPT)
    for field in ("identifier", "password"):
        data = getattr(token, field)
        for position in range(len(data)):
            changed = bytes(byte ^ (1 if at == position else 0) for at, byte in enumerate(data))
            with pytest.raises(InvalidToken):
                masters.check(replace(token, **{field: changed}))
        for length in range(len(data)):
            with pytest.raises(InvalidToken):
                masters.check(replace(token, **{field: data[:length]}))


def test_a_token_of_another_kind_or_cluster_is_refused(
    masters: AMRMTokenSecretManager, nodes: NMTokenSecretManager
) -> None:
    with pytest.raises(InvalidToken, match="kind 'NMToken', it must be YARN_AM_RM_TOKEN"):
        masters.check(nodes.create(ATTEMPT, NODE, "ann"))
    elsewhere = AMRMTokenSecretManager(KeyRing(new_master_key()))
    with pytest.raises(InvalidToken, match="which is unknown"):
        masters.check(elsewhere.create(ATTEMPT))


def test_a_key_with_a_known_number_but_another_secret_is_refused(masters: AMRMTokenSecretManager) -> None:
    assert masters.keys.current is not None
    forged = AMRMTokenSecretManager(KeyRing(MasterKey(masters.keys.current.key_id, b"guess")))
    with pytest.raises(InvalidToken, match="has a wrong signature"):
        masters.check(forged.create(ATTEMPT))


def test_a_node_token_is_for_one_node_and_cluster() -> None:
    ours = NodeTokenSecretManager(b"s" * 32)
    assert ours.check(ours.create(NODE)) == NODE
    with pytest.raises(InvalidToken, match="the secret of another cluster"):
        ours.check(NodeTokenSecretManager(b"t" * 32).create(NODE))
    with pytest.raises(InvalidToken, match="the secret of another cluster"):
        ours.check(replace(ours.create(NODE), identifier=ours.create(OTHER_NODE).identifier))
    with pytest.raises(InvalidToken, match="does the NodeManager have the cluster"):
        ours.check(None)


def test_an_nm_token_is_for_one_node(nodes: NMTokenSecretManager) -> None:
    token = nodes.create(ATTEMPT, NODE, "ann")
    assert nodes.check_for(token, NODE).user == "ann"
    with pytest.raises(InvalidToken, match=r"expected : 127[.]0[.]0[.]3:45454 found : 127[.]0[.]0[.]2:45454"):
        nodes.check_for(token, OTHER_NODE)


@pytest.mark.parametrize("other", [NodeId(NODE.host, NODE.port + 1), NodeId("localhost", NODE.port)], ids=str)
def test_another_port_or_name_of_the_host_is_another_node(nodes: NMTokenSecretManager, other: NodeId) -> None:
    """Several NodeManagers run on one machine, and each has tokens of its own."""
    with pytest.raises(InvalidToken, match=f"expected : {re.escape(str(other))} found : "):
        nodes.check_for(nodes.create(ATTEMPT, NODE, "ann"), other)
    containers = ContainerTokenSecretManager(KeyRing(new_master_key()))
    with pytest.raises(InvalidToken, match=f"Expected : {re.escape(str(other))} Found : "):
        containers.check_for(containers.create(PROMISE), other)


def test_a_container_token_is_for_one_node() -> None:
    manager = ContainerTokenSecretManager(KeyRing(new_master_key()))
    token = manager.create(PROMISE)
    found = manager.check_for(token, NODE)
    assert replace(found, master_key_id=0) == PROMISE
    with pytest.raises(InvalidToken, match=r"Expected : 127[.]0[.]0[.]3:45454 Found : 127[.]0[.]0[.]2:45454"):
        manager.check_for(token, OTHER_NODE)


# Keys change


def test_tokens_of_the_old_key_are_accepted_until_the_next_is_current(masters: AMRMTokenSecretManager) -> None:
    old = masters.create(ATTEMPT)
    masters.keys.roll()
    assert masters.check(old).attempt_id == ATTEMPT
    renewed = masters.create(ATTEMPT)
    assert renewed != old
    assert masters.check(renewed).attempt_id == ATTEMPT
    masters.keys.activate_next()
    assert masters.check(renewed).attempt_id == ATTEMPT
    with pytest.raises(InvalidToken, match="unknown or has expired"):
        masters.check(old)


def test_a_node_takes_the_key_before_as_well(nodes: NMTokenSecretManager) -> None:
    at_node = NMTokenSecretManager(KeyRing(nodes.keys.current))
    old = nodes.create(ATTEMPT, NODE, "ann")
    nodes.keys.roll()
    assert nodes.keys.next is not None
    at_node.keys.accept(nodes.keys.next)
    assert at_node.check_for(old, NODE).attempt_id == ATTEMPT
    assert at_node.check_for(nodes.create(ATTEMPT, NODE, "ann"), NODE).attempt_id == ATTEMPT


def test_a_node_keeps_the_key_of_an_attempts_first_token(nodes: NMTokenSecretManager) -> None:
    """NMTokenSecretManagerInNM: an NM token is valid for the life of its attempt."""
    at_node = NMTokenSecretManager(KeyRing(nodes.keys.current))
    old = nodes.create(ATTEMPT, NODE, "ann")
    at_node.remember(at_node.check_for(old, NODE))
    for _ in range(2):
        at_node.keys.accept(new_master_key())
    assert at_node.check_for(old, NODE).attempt_id == ATTEMPT
    at_node.forget(ATTEMPT)
    with pytest.raises(InvalidToken, match="unknown or has expired"):
        at_node.check_for(old, NODE)


def test_the_same_key_again_changes_nothing() -> None:
    ring, key = KeyRing(), new_master_key()
    ring.accept(key)
    ring.accept(key)
    assert ring.previous is None


# Beside a call


def test_a_caller_travels_in_metadata(masters: AMRMTokenSecretManager) -> None:
    token = masters.create(ATTEMPT)
    caller = read_caller(caller_metadata("ann", token), "ipv4:127.0.0.1:1")
    assert (caller.user, caller.token) == ("ann", token)


@pytest.mark.parametrize("user", ["é", "a\nb", "a\x00b", "x" * 257])
def test_a_name_that_cannot_travel_is_refused_before_the_call(user: str) -> None:
    with pytest.raises(InvalidArgumentException, match="invalid user name"):
        caller_metadata(user)


def test_metadata_that_is_not_a_token_is_refused() -> None:
    with pytest.raises(InvalidToken, match="malformed token"):
        read_caller([(TOKEN_KEY, b"\xff\xff")], "")
    with pytest.raises(InvalidToken, match=f"at most {TOKEN_BYTES_MAX} are accepted"):
        read_caller([(TOKEN_KEY, b"x" * (TOKEN_BYTES_MAX + 1))], "")


def test_secrets_are_not_shown(masters: AMRMTokenSecretManager) -> None:
    token = masters.create(ATTEMPT)
    assert masters.keys.current is not None
    shown = repr(token) + repr(masters.keys.current) + repr(read_caller(caller_metadata("ann", token), ""))
    assert repr(token.password) not in shown
    assert repr(masters.keys.current.secret) not in shown
    assert isinstance(token, Token)
