"""The RM's core hears of packed nodes exactly what it would hear of single ones, whatever is lost on the way."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from nm.core.events import HealthChecked, ShutDown, UtilizationSampled
from nm.pack.tracker import first_heartbeat_after_s
from tests.pack.conversation import FIRST, MACHINE, PlayedManager, PlayedNode, conversation
from wire.caller import Caller
from yarn.errors import AccessControlException, InvalidArgumentException
from yarn.nodes import NodeHealth, ResourceUtilization
from yarn.protocols.pack import Pack, PackHeartbeat
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import NodeAction, NodeState


def as_told(request: NodeHeartbeatRequest, heard: NodeHeartbeatRequest) -> NodeHeartbeatRequest:
    """What the node's core wants told, with what its process adds for all nodes."""
    return replace(
        request,
        node_utilization=MACHINE,
        container_token_key_id=heard.container_token_key_id,
        nm_token_key_id=heard.nm_token_key_id,
    )


def check_heard(node: PlayedNode, heard: list[NodeHeartbeatRequest]) -> None:
    """Each heartbeat that the RM's core got is one that the node's core sent, in their order."""
    sent = iter(node.sent)
    for beat in heard:
        assert any(as_told(request, beat) == beat for request in sent), f"{beat} was not sent, or not then"


def check(health: bool, ms: int) -> HealthChecked:
    return HealthChecked(NodeHealth(health, "" if health else "disk 7 is full", ms))


async def test_what_is_quiet_is_told_as_a_number_and_heard_in_full() -> None:
    async with conversation(5) as talk:
        await talk.beats(4)
        assert len([name for name, _ in talk.between.calls if name == "register_nodes"]) == 1
        first, *others = talk.between.beats
        assert sorted(first.full) == list(first.nodes) == [0, 1, 2, 3, 4]
        assert others
        assert all(not beat.full for beat in others)
        for node in talk.nodes:
            check_heard(node, talk.manager.heard[node.node_id])
            assert [beat.response_id for beat in talk.manager.heard[node.node_id][:4]] == [0, 1, 2, 3]


async def test_only_who_has_news_tells_them() -> None:
    async with conversation(5) as talk:
        await talk.beats(2)
        before = len(talk.between.beats)
        talk.nodes[3].shell.send(check(False, 77))
        await talk.until(lambda: talk.manager.core.context.nodes[talk.nodes[3].node_id].state is NodeState.UNHEALTHY)
        await talk.beats(2)
        assert [list(beat.full) for beat in talk.between.beats[before:] if beat.full] == [[3]]
        check_heard(talk.nodes[3], talk.manager.heard[talk.nodes[3].node_id])
        assert talk.manager.heard[talk.nodes[3].node_id][-1].health == NodeHealth(False, "disk 7 is full", 77)


@pytest.mark.parametrize("kind", ["containers", "nodes"])
async def test_a_new_key_reaches_nodes_that_are_quiet(kind: str) -> None:
    async with conversation(3) as talk:
        await talk.beats(2)
        rm, nm = getattr(talk.manager.keys, kind).keys, getattr(talk, f"{kind}_keys")
        rm.roll()
        await talk.until(lambda: nm.current.key_id == rm.next.key_id)
        before = len(talk.between.beats)
        await talk.beats(2)
        assert [beat.full for beat in talk.between.beats[before + 1 :]] == [{}] * (len(talk.between.beats) - before - 1)


async def test_nodes_that_emulate_tell_what_each_of_them_uses() -> None:
    """Without a word on the machine, a node's use is news of its own, and stays what it was while it is quiet."""
    async with conversation(3) as talk:
        talk.machine = None
        await talk.beats(2)
        used = ResourceUtilization(7, 8, 0.25)
        talk.nodes[1].shell.send(UtilizationSampled(ResourceUtilization(), used))
        before = len(talk.between.beats)
        await talk.beats(4)
        assert [list(beat.full) for beat in talk.between.beats[before:] if beat.full] == [[1]]
        heard = [talk.manager.heard[node.node_id][-1].node_utilization for node in talk.nodes]
        assert heard == [ResourceUtilization(), used, ResourceUtilization()]


async def test_nodes_have_their_chances_in_the_order_of_the_call() -> None:
    """Hadoop's scheduler looks at a node when it beats: the order of a call is the order of the events."""
    manager = PlayedManager()
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
async def test_whatever_is_lost_the_rm_hears_what_nodes_say_and_loses_none_of_them(chance_seed: int) -> None:
    """A third of the calls is lost, some before they arrive and some with their answer; meanwhile health changes."""
    chance = random.Random(chance_seed)

    def lose(name: str, number: int) -> str:
        return chance.choice(("", "", "", "", "request", "reply"))

    async with conversation(4, lose) as talk:
        for round_ in range(6):
            await talk.beats(2)
            node = chance.choice(talk.nodes)
            node.shell.send(check(chance.random() < 0.5, round_))
        talk.between.lose = lambda name, number: ""
        await talk.beats(3)
        for node in talk.nodes:
            check_heard(node, talk.manager.heard[node.node_id])
            known = talk.manager.core.context.nodes[node.node_id]
            assert known.health == node.core.status.health
            assert node.registered == 1
        assert not talk.manager.core.context.inactive_nodes


async def test_a_lost_reply_is_given_again_and_its_heartbeat_is_told_in_full() -> None:
    async with conversation(3) as talk:
        await talk.beats(2)
        before = len(talk.between.calls)
        talk.between.lose = lambda name, number: "reply" if number == before + 1 else ""
        await talk.until(lambda: len(talk.between.calls) > before)
        await talk.beats(3)
        lost, *later = (request for _, request in talk.between.calls[before:])
        assert not lost.full
        for number, response_id in zip(lost.nodes, lost.response_ids, strict=True):
            again, after = [beat for beat in later if number in beat.nodes][:2]
            assert number in again.full
            assert again.response_ids[again.nodes.index(number)] == response_id
            assert number not in after.full
            assert after.response_ids[after.nodes.index(number)] == response_id + 1
        assert [node.registered for node in talk.nodes] == [1, 1, 1]


async def test_another_resource_manager_has_the_pack_begin_anew() -> None:
    async with conversation(4) as talk:
        await talk.beats(3)
        talk.manager.shell.close()
        earlier, talk.between.manager = talk.manager, PlayedManager()
        talk.manager = talk.between.manager
        await talk.beats(3)
        assert [node.registered for node in talk.nodes] == [2, 2, 2, 2]
        assert talk.manager.core.context.nodes.keys() == earlier.core.context.nodes.keys()
        # What refers to a heartbeat that the new one has not got was told in full, and then answered RESYNC.
        for node in talk.nodes:
            check_heard(node, talk.manager.heard[node.node_id])


async def test_a_service_that_forgot_a_heartbeat_asks_for_it_and_does_nothing() -> None:
    async with conversation(3) as talk:
        await talk.beats(2)
        talk.manager.service._packs.clear()
        before = len(talk.between.beats)
        await talk.beats(3)
        for number, node in enumerate(talk.nodes):
            forgotten, again, *_ = [beat for beat in talk.between.beats[before:] if number in beat.nodes]
            if number not in forgotten.full:
                assert number in again.full
                asked = [beat.response_ids[beat.nodes.index(number)] for beat in (forgotten, again)]
                assert asked[0] == asked[1]
            ids = [beat.response_id for beat in talk.manager.heard[node.node_id]]
            assert ids == list(range(len(ids))), "each counted once"
            assert node.registered == 1
        assert any(not beat.full for beat in talk.between.beats[before : before + 1])


async def test_a_node_that_lost_count_is_told_to_begin_anew_and_the_others_go_on() -> None:
    async with conversation(3) as talk:
        await talk.beats(2)
        talk.manager.core.context.nodes[talk.nodes[1].node_id].reset_response_id()
        await talk.until(lambda: talk.nodes[1].registered == 2)
        await talk.beats(2)
        assert [node.registered for node in talk.nodes] == [1, 2, 1]


def test_the_first_beats_of_a_pack_are_spread_over_the_interval() -> None:
    """300 nodes in turns of a hundred: three calls an interval, and each node in one of them. A small pack is one."""
    after_s = [first_heartbeat_after_s(number, 300, 1.0) for number in range(300)]
    assert {delay: after_s.count(delay) for delay in sorted(set(after_s))} == {0.0: 100, 1 / 3: 100, 2 / 3: 100}
    assert {first_heartbeat_after_s(number, 99, 1.0) for number in range(99)} == {0.0}


async def test_a_pack_speaks_for_its_own_nodes_only() -> None:
    manager = PlayedManager()
    pack = Pack(FIRST, 2)
    caller = Caller("", None, "", pack)
    stranger = FIRST._replace(host="127.0.0.9")
    with pytest.raises(AccessControlException, match=r"may not act for 127\.0\.0\.9"):
        await manager.service.register_nodes(caller, (RegisterNodeManagerRequest(stranger, 0, Resource(1024, 1)),))
    beat = PackHeartbeat((1,), (0,), {1: NodeHeartbeatRequest(stranger, 0)})
    with pytest.raises(AccessControlException, match=r"node 1 of .* may not act for 127\.0\.0\.9"):
        await manager.service.pack_heartbeat(caller, beat)
    with pytest.raises(InvalidArgumentException, match="has nodes 0 to 1"):
        await manager.service.pack_heartbeat(caller, PackHeartbeat((2,), (0,)))
    with pytest.raises(InvalidArgumentException, match="has nodes 0 to 1"):
        await manager.service.unregister_nodes(caller, (2,))
    assert manager.order == []
    assert not manager.core.context.nodes


async def test_a_node_too_small_is_refused_and_the_others_are_taken() -> None:
    manager = PlayedManager()
    pack = Pack(FIRST, 3)
    requests = tuple(
        RegisterNodeManagerRequest(node_id, 0, Resource(8 if number == 1 else 2048, 1))
        for number, node_id in enumerate(pack.nodes())
    )
    outcomes = await manager.service.register_nodes(Caller("", None, "", pack), requests)
    actions = [getattr(outcome, "action", None) for outcome in outcomes]
    assert actions == [NodeAction.NORMAL, NodeAction.SHUTDOWN, NodeAction.NORMAL]


async def test_a_pack_that_leaves_is_shut_down_in_one_call() -> None:
    async with conversation(3) as talk:
        await talk.beats(2)
        for node in talk.nodes:
            node.shell.parts.tracker.send_unregistration()  # type: ignore[union-attr]
        context = talk.manager.core.context
        await talk.until(lambda: not context.nodes)
        assert {node.state for node in context.inactive_nodes.values()} == {NodeState.SHUTDOWN}
        assert [name for name, _ in talk.between.calls].count("unregister_nodes") == 1


@pytest.mark.parametrize("lost", ["", "request", "reply"])
async def test_nodes_that_leave_end_what_they_run_once_the_good_bye_is_over(lost: str) -> None:
    async with conversation(3, lambda rpc, number: lost if rpc == "unregister_nodes" else "") as talk:
        await talk.beats(2)
        for node in talk.nodes:
            node.shell.send(ShutDown())
        await talk.until(lambda: all(node.good_byes for node in talk.nodes))
        assert [name for name, _ in talk.between.calls].count("unregister_nodes") >= 1
        assert all(node.core.service.stopping for node in talk.nodes)
