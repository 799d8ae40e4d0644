"""The RM's core receives from packed nodes exactly what it would receive from single ones, whatever is lost."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from nm.core.events import HealthChecked, ShutDown, UtilizationSampled
from nm.pack.tracker import first_heartbeat_after_s
from tests.pack.conversation import FIRST, MACHINE, FakeManager, FakeNode, conversation
from wire.caller import Caller
from yarn.errors import AccessControlException, InvalidArgumentException
from yarn.nodes import NodeHealth, ResourceUtilization
from yarn.protocols.pack import Pack, PackHeartbeat
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import NodeAction, NodeState


def with_shared_fields(request: NodeHeartbeatRequest, received: NodeHeartbeatRequest) -> NodeHeartbeatRequest:
    """The heartbeat of the node's core, with what its process adds for all nodes."""
    return replace(
        request,
        node_utilization=MACHINE,
        container_token_key_id=received.container_token_key_id,
        nm_token_key_id=received.nm_token_key_id,
    )


def check_received(node: FakeNode, received: list[NodeHeartbeatRequest]) -> None:
    """Check that each heartbeat that the RM's core got was sent by the node's core, in this order."""
    sent = iter(node.sent)
    for beat in received:
        assert any(with_shared_fields(request, beat) == beat for request in sent), f"{beat} was not sent, or not then"


def check(health: bool, ms: int) -> HealthChecked:
    return HealthChecked(NodeHealth(health, "" if health else "disk 7 is full", ms))


async def test_a_node_without_changes_is_sent_as_a_number_and_received_in_full() -> None:
    async with conversation(5) as talk:
        await talk.beats(4)
        assert len([name for name, _ in talk.proxy.calls if name == "register_nodes"]) == 1
        first, *others = talk.proxy.beats
        assert sorted(first.full) == list(first.nodes) == [0, 1, 2, 3, 4]
        assert others
        assert all(not beat.full for beat in others)
        for node in talk.nodes:
            check_received(node, talk.manager.received[node.node_id])
            assert [beat.response_id for beat in talk.manager.received[node.node_id][:4]] == [0, 1, 2, 3]


async def test_only_nodes_with_changes_are_sent_in_full() -> None:
    async with conversation(5) as talk:
        await talk.beats(2)
        before = len(talk.proxy.beats)
        talk.nodes[3].shell.send(check(False, 77))
        await talk.until(lambda: talk.manager.core.context.nodes[talk.nodes[3].node_id].state is NodeState.UNHEALTHY)
        await talk.beats(2)
        assert [list(beat.full) for beat in talk.proxy.beats[before:] if beat.full] == [[3]]
        check_received(talk.nodes[3], talk.manager.received[talk.nodes[3].node_id])
        assert talk.manager.received[talk.nodes[3].node_id][-1].health == NodeHealth(False, "disk 7 is full", 77)


@pytest.mark.parametrize("kind", ["containers", "nodes"])
async def test_a_new_key_reaches_nodes_without_changes(kind: str) -> None:
    async with conversation(3) as talk:
        await talk.beats(2)
        rm, nm = getattr(talk.manager.keys, kind).keys, getattr(talk, f"{kind}_keys")
        rm.roll()
        await talk.until(lambda: nm.current.key_id == rm.next.key_id)
        before = len(talk.proxy.beats)
        await talk.beats(2)
        assert [beat.full for beat in talk.proxy.beats[before + 1 :]] == [{}] * (len(talk.proxy.beats) - before - 1)


async def test_emulating_nodes_each_report_their_own_usage() -> None:
    """Without the machine's usage in the call, a node's own usage is sent when it changes."""
    async with conversation(3) as talk:
        talk.machine = None
        await talk.beats(2)
        used = ResourceUtilization(7, 8, 0.25)
        talk.nodes[1].shell.send(UtilizationSampled(ResourceUtilization(), used))
        before = len(talk.proxy.beats)
        await talk.beats(4)
        assert [list(beat.full) for beat in talk.proxy.beats[before:] if beat.full] == [[1]]
        received = [talk.manager.received[node.node_id][-1].node_utilization for node in talk.nodes]
        assert received == [ResourceUtilization(), used, ResourceUtilization()]


async def test_nodes_are_scheduled_in_the_order_of_the_call() -> None:
    """CapacityScheduler.nodeUpdate follows each heartbeat: the order in a call is the order of the events."""
    manager = FakeManager()
    pack = Pack(FIRST, 40)
    caller = Caller("", None, "", pack)
    requests = tuple(RegisterNodeManagerRequest(node_id, 0, Resource(1024, 1)) for node_id in pack.nodes())
    await manager.service.register_nodes(caller, requests)
    numbers = list(range(40))
    random.Random(7).shuffle(numbers)
    told = {number: NodeHeartbeatRequest(pack.nodes()[number], 0) for number in numbers}
    await manager.service.pack_heartbeat(caller, PackHeartbeat(tuple(numbers), (0,) * 40, told))
    assert manager.order == [pack.nodes()[number] for number in numbers]


@pytest.mark.parametrize("chance_seed", range(12))
async def test_the_rm_receives_the_heartbeats_of_all_nodes_whatever_is_lost(chance_seed: int) -> None:
    """A third of the calls is lost, some before they arrive and some with their reply; meanwhile health changes."""
    chance = random.Random(chance_seed)

    def lose(name: str, number: int) -> str:
        return chance.choice(("", "", "", "", "request", "reply"))

    async with conversation(4, lose) as talk:
        for round_ in range(6):
            await talk.beats(2)
            node = chance.choice(talk.nodes)
            node.shell.send(check(chance.random() < 0.5, round_))
        talk.proxy.lose = lambda name, number: ""
        await talk.beats(3)
        for node in talk.nodes:
            check_received(node, talk.manager.received[node.node_id])
            known = talk.manager.core.context.nodes[node.node_id]
            assert known.health == node.core.status.health
            assert node.registered == 1
        assert not talk.manager.core.context.inactive_nodes


async def test_a_lost_reply_is_repeated_and_its_heartbeat_is_sent_in_full() -> None:
    async with conversation(3) as talk:
        await talk.beats(2)
        before = len(talk.proxy.calls)
        talk.proxy.lose = lambda name, number: "reply" if number == before + 1 else ""
        await talk.until(lambda: len(talk.proxy.calls) > before)
        await talk.beats(3)
        lost, *later = (request for _, request in talk.proxy.calls[before:])
        assert not lost.full
        for number, response_id in zip(lost.nodes, lost.response_ids, strict=True):
            again, after = [beat for beat in later if number in beat.nodes][:2]
            assert number in again.full
            assert again.response_ids[again.nodes.index(number)] == response_id
            assert number not in after.full
            assert after.response_ids[after.nodes.index(number)] == response_id + 1
        assert [node.registered for node in talk.nodes] == [1, 1, 1]


async def test_a_restarted_resource_manager_has_the_pack_register_again() -> None:
    async with conversation(4) as talk:
        await talk.beats(3)
        talk.manager.shell.close()
        earlier, talk.proxy.manager = talk.manager, FakeManager()
        talk.manager = talk.proxy.manager
        await talk.beats(3)
        assert [node.registered for node in talk.nodes] == [2, 2, 2, 2]
        assert talk.manager.core.context.nodes.keys() == earlier.core.context.nodes.keys()
        # Heartbeats without changes were requested in full by the new RM, and then answered with RESYNC.
        for node in talk.nodes:
            check_received(node, talk.manager.received[node.node_id])


async def test_a_service_without_the_earlier_heartbeat_requests_a_full_one_and_ignores_the_node() -> None:
    async with conversation(3) as talk:
        await talk.beats(2)
        talk.manager.service._packs.clear()
        before = len(talk.proxy.beats)
        await talk.beats(3)
        for number, node in enumerate(talk.nodes):
            forgotten, again, *_ = [beat for beat in talk.proxy.beats[before:] if number in beat.nodes]
            if number not in forgotten.full:
                assert number in again.full
                asked = [beat.response_ids[beat.nodes.index(number)] for beat in (forgotten, again)]
                assert asked[0] == asked[1]
            ids = [beat.response_id for beat in talk.manager.received[node.node_id]]
            assert ids == list(range(len(ids))), "each counted once"
            assert node.registered == 1
        assert any(not beat.full for beat in talk.proxy.beats[before : before + 1])


async def test_a_node_with_a_wrong_response_id_registers_again_and_the_others_go_on() -> None:
    async with conversation(3) as talk:
        await talk.beats(2)
        talk.manager.core.context.nodes[talk.nodes[1].node_id].reset_response_id()
        await talk.until(lambda: talk.nodes[1].registered == 2)
        await talk.beats(2)
        assert [node.registered for node in talk.nodes] == [1, 2, 1]


def test_the_first_heartbeats_of_a_pack_are_spread_over_the_interval() -> None:
    """300 nodes in groups of a hundred: three calls in an interval. A small pack makes one."""
    after_s = [first_heartbeat_after_s(number, 300, 1.0) for number in range(300)]
    assert {delay: after_s.count(delay) for delay in sorted(set(after_s))} == {0.0: 100, 1 / 3: 100, 2 / 3: 100}
    assert {first_heartbeat_after_s(number, 99, 1.0) for number in range(99)} == {0.0}


async def test_a_pack_may_only_send_its_own_nodes() -> None:
    manager = FakeManager()
    pack = Pack(FIRST, 2)
    caller = Caller("", None, "", pack)
    elsewhere = FIRST._replace(host="127.0.0.9")
    with pytest.raises(AccessControlException, match=r"may not act for 127\.0\.0\.9"):
        await manager.service.register_nodes(caller, (RegisterNodeManagerRequest(elsewhere, 0, Resource(1024, 1)),))
    beat = PackHeartbeat((1,), (0,), {1: NodeHeartbeatRequest(elsewhere, 0)})
    with pytest.raises(AccessControlException, match=r"node 1 of .* may not act for 127\.0\.0\.9"):
        await manager.service.pack_heartbeat(caller, beat)
    with pytest.raises(InvalidArgumentException, match="has nodes 0 to 1"):
        await manager.service.pack_heartbeat(caller, PackHeartbeat((2,), (0,)))
    with pytest.raises(InvalidArgumentException, match="has nodes 0 to 1"):
        await manager.service.unregister_nodes(caller, (2,))
    assert manager.order == []
    assert not manager.core.context.nodes


async def test_a_node_below_the_minimum_size_is_refused_and_the_others_are_accepted() -> None:
    manager = FakeManager()
    pack = Pack(FIRST, 3)
    requests = tuple(
        RegisterNodeManagerRequest(node_id, 0, Resource(8 if number == 1 else 2048, 1))
        for number, node_id in enumerate(pack.nodes())
    )
    outcomes = await manager.service.register_nodes(Caller("", None, "", pack), requests)
    actions = [getattr(outcome, "action", None) for outcome in outcomes]
    assert actions == [NodeAction.NORMAL, NodeAction.SHUTDOWN, NodeAction.NORMAL]


async def test_a_pack_unregisters_in_one_call() -> None:
    async with conversation(3) as talk:
        await talk.beats(2)
        for node in talk.nodes:
            node.shell.parts.tracker.send_unregistration()  # type: ignore[union-attr]
        context = talk.manager.core.context
        await talk.until(lambda: not context.nodes)
        assert {node.state for node in context.inactive_nodes.values()} == {NodeState.SHUTDOWN}
        assert [name for name, _ in talk.proxy.calls].count("unregister_nodes") == 1


@pytest.mark.parametrize("lost", ["", "request", "reply"])
async def test_stopping_nodes_end_their_containers_once_the_unregistration_is_over(lost: str) -> None:
    async with conversation(3, lambda rpc, number: lost if rpc == "unregister_nodes" else "") as talk:
        await talk.beats(2)
        for node in talk.nodes:
            node.shell.send(ShutDown())
        await talk.until(lambda: all(node.unregistered for node in talk.nodes))
        assert [name for name, _ in talk.proxy.calls].count("unregister_nodes") >= 1
        assert all(node.core.service.stopping for node in talk.nodes)
