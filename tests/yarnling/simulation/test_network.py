"""Calls over simulated links: outcomes, faults, order. A server that counts stands behind them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from tests.compiled import only_interpreted
from wire.caller import Caller
from wire.protocols.tracker import ResourceTracker
from wire.retry import NO_RETRY, RetryPolicy
from wire.tokens import NodeTokenSecretManager
from yarn.errors import CallOutcomeUnknown, InvalidToken, ServerUnavailable, YarnException
from yarn.ids import NodeId
from yarnling.cluster.network import NetworkFault
from yarnling.simulation.conditions import Conditions
from yarnling.simulation.engine import START_MS, Engine
from yarnling.simulation.network import Network, Served
from yarnling.simulation.process import PendingAnswer, Process
from yarnling.simulation.server import Server

NODE = NodeId("n1", 1)
SECRET = b"secret"


class Tracker:
    """Counts unregistrations; `hold` keeps them unanswered."""

    def __init__(self) -> None:
        self.calls = 0
        self.hold: PendingAnswer | None = None

    async def register_node_manager(self, caller: Caller[NodeId], request: object) -> None: ...
    async def node_heartbeat(self, caller: Caller[NodeId], request: object) -> None: ...
    async def unregister_node_manager(self, caller: Caller[NodeId], request: NodeId) -> None:
        assert caller.verified == request == NODE
        self.calls += 1
        if self.hold is not None:
            await self.hold


class Bench:
    def __init__(self, conditions: Conditions = Conditions(jitter_ms=0), *, encode: bool = True) -> None:  # noqa: B008
        self.engine = Engine(1)
        self.network = Network(self.engine, conditions, encode=encode)
        self.caller, self.process = Process(self.engine, "nm-1", 1), Process(self.engine, "rm", 0)
        self.caller.boot()
        self.tracker = Tracker()
        self.outcomes: list[tuple[int, object]] = []
        self.server: Server | None = None
        self.boot()

    def boot(self) -> None:
        self.process.boot()
        self.server = server = Server(encode=self.network.encode)
        tokens = NodeTokenSecretManager(SECRET)
        server.add(ResourceTracker.rpcs, self.tracker, lambda caller: tokens.check(caller.token))

    def served(self) -> Served | None:
        return (self.process, self.server) if self.process.is_up and self.server is not None else None

    def call(self, *, secret: bytes = SECRET, retry: RetryPolicy = NO_RETRY, timeout_s: float = 20.0) -> None:
        def done(outcome: YarnException | None) -> None:
            self.outcomes.append((self.engine.now_ms - START_MS, outcome))

        self.network.call(
            self.caller,
            "tracker-1",
            self.served,
            ResourceTracker.unregister_node_manager,
            NODE,
            done,
            token=NodeTokenSecretManager(secret).create(NODE),
            retry=retry,
            timeout_s=timeout_s,
        )

    def run(self, ms: int) -> None:
        self.engine.run(self.engine.now_ms + ms)

    def outcome(self) -> object:
        ((_, outcome),) = self.outcomes
        return outcome


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize("encode", [True, False])
def test_a_call_is_answered_after_a_connection_and_two_messages(encode: bool) -> None:
    bench = Bench(encode=encode)
    bench.call()
    bench.run(10)
    bench.call()
    bench.run(10)
    assert bench.outcomes == [(3, None), (12, None)]


def test_a_wrong_token_is_refused_before_the_service_sees_the_call(bench: Bench) -> None:
    bench.call(secret=b"another")
    bench.run(10)
    assert isinstance(bench.outcome(), InvalidToken)
    assert bench.tracker.calls == 0


def test_a_server_that_is_down_surely_did_nothing_and_is_tried_again(bench: Bench) -> None:
    bench.process.exit()
    bench.call()
    bench.run(10)
    outcome = bench.outcome()
    assert isinstance(outcome, ServerUnavailable)
    assert outcome.definite
    bench.outcomes.clear()
    bench.call(retry=RetryPolicy(10_000, 1000))
    bench.run(700)
    bench.boot()
    bench.run(2000)
    assert bench.outcome() is None
    assert bench.tracker.calls == 1


def test_a_server_that_is_killed_before_it_answers_leaves_the_outcome_unknown(bench: Bench) -> None:
    bench.tracker.hold = PendingAnswer()
    bench.call(retry=RetryPolicy(10_000, 1000))
    bench.run(5)
    bench.process.exit()
    bench.run(5)
    assert isinstance(bench.outcome(), CallOutcomeUnknown)
    assert bench.tracker.calls == 1


def test_a_silent_partition_holds_messages_back_and_tcp_delivers_them_later(bench: Bench) -> None:
    bench.call()
    bench.run(10)
    bench.outcomes.clear()
    link = bench.network.link("tracker-1")
    link.inject(1, NetworkFault(requests=True))
    bench.call()
    bench.run(3000)
    assert bench.tracker.calls == 1
    link.remove(1)
    bench.run(10)
    assert bench.outcome() is None
    assert bench.tracker.calls == 2


def test_a_reply_that_a_partition_loses_is_an_unknown_outcome_of_a_call_that_had_its_effect(bench: Bench) -> None:
    bench.call()
    bench.run(10)
    bench.outcomes.clear()
    link = bench.network.link("tracker-1")
    link.inject(1, NetworkFault(replies=True, forgets=True))
    bench.call()
    bench.run(3000)
    assert bench.tracker.calls == 2
    link.remove(1)
    bench.run(10)
    assert isinstance(bench.outcome(), CallOutcomeUnknown)


def test_without_a_reply_in_time_the_outcome_is_unknown_and_a_late_reply_goes_nowhere(bench: Bench) -> None:
    bench.tracker.hold = PendingAnswer()
    bench.call(timeout_s=1.0)
    bench.run(1500)
    ((at_ms, outcome),) = bench.outcomes
    assert (at_ms, type(outcome)) == (1000, CallOutcomeUnknown)
    bench.tracker.hold.give(None)
    bench.run(1500)
    assert len(bench.outcomes) == 1


def test_no_connection_to_a_paused_server_is_a_definite_failure_after_the_timeout(bench: Bench) -> None:
    bench.process.pause()
    bench.call()
    bench.run(6000)
    ((at_ms, outcome),) = bench.outcomes
    assert at_ms == 5000
    assert isinstance(outcome, ServerUnavailable)
    assert outcome.definite
    bench.process.resume()
    bench.run(10)
    assert bench.tracker.calls == 0


def test_a_call_on_a_connection_waits_for_a_paused_server(bench: Bench) -> None:
    bench.call()
    bench.run(10)
    bench.process.pause()
    bench.call()
    bench.run(3000)
    bench.process.resume()
    bench.run(10)
    assert [outcome for _, outcome in bench.outcomes] == [None, None]


def test_a_link_that_resets_refuses_new_connections_and_breaks_open_ones(bench: Bench) -> None:
    bench.tracker.hold = PendingAnswer()
    bench.call()
    bench.run(10)
    bench.network.link("tracker-1").inject(1, NetworkFault(reset=True))
    bench.run(10)
    bench.call()
    bench.run(10)
    unknown, refused = (outcome for _, outcome in bench.outcomes)
    assert isinstance(unknown, CallOutcomeUnknown)
    assert isinstance(refused, ServerUnavailable)
    assert refused.definite


def test_a_lost_packet_is_the_pause_until_its_retransmission(bench: Bench) -> None:
    bench.call()
    bench.run(10)
    bench.outcomes.clear()
    bench.network.link("tracker-1").inject(1, NetworkFault(loss=1.0, delay_s=0.05))
    bench.call()
    bench.run(1000)
    assert bench.outcomes == [(10 + 2 * (1 + 50 + 200), None)]


def test_messages_of_one_connection_stay_in_order_whatever_their_delays() -> None:
    bench = Bench(Conditions(jitter_ms=50))
    for _ in range(30):
        bench.call()
        bench.run(1)
    order: list[int] = []
    for number in range(20):

        def done(_: object, number: int = number) -> None:
            order.append(number)

        _call(bench, done)
    bench.run(1000)
    assert order == list(range(20))


def _call(bench: Bench, done: Callable[[object], None]) -> None:
    token = NodeTokenSecretManager(SECRET).create(NODE)
    row = ResourceTracker.unregister_node_manager
    bench.network.call(bench.caller, "tracker-1", bench.served, row, NODE, done, token=token)


def test_a_duplicate_is_served_and_its_reply_goes_nowhere() -> None:
    bench = Bench(Conditions(jitter_ms=0, duplicates=1.0))
    bench.call()
    bench.run(200)
    assert bench.outcome() is None
    assert bench.tracker.calls == 2


def test_a_message_that_breaks_its_connection_is_lost_with_the_calls_on_it() -> None:
    bench = Bench(Conditions(jitter_ms=0, breaks=1.0))
    bench.call()
    bench.run(200)
    assert isinstance(bench.outcome(), CallOutcomeUnknown)
    assert bench.tracker.calls == 0


def test_a_caller_that_has_exited_gets_no_answer(bench: Bench) -> None:
    bench.call()
    bench.run(2)
    bench.caller.exit()
    bench.caller.boot()
    bench.run(100)
    assert bench.outcomes == []


def test_a_connection_that_a_caller_waited_for_is_not_its_successors(bench: Bench) -> None:
    """The server was paused; when it goes on, the caller has been killed, and started again."""
    bench.process.pause()
    bench.call()
    bench.run(10)
    bench.caller.exit()
    bench.process.resume()
    bench.caller.boot()
    bench.call()
    bench.run(10)
    assert bench.outcome() is None
    assert bench.tracker.calls == 1


@only_interpreted
def test_a_server_does_not_keep_callers_that_have_exited() -> None:
    """A NodeManager has a connection of each AM that ever called it."""
    bench = Bench()
    bench.call()
    bench.run(100)
    assert bench.outcomes == [(3, None)]
    caller = weakref.ref(bench.caller)
    bench.caller.exit()
    bench.caller = Process(bench.engine, "nm-1", 1)
    bench.run(60_000)
    gc.collect()
    assert caller() is None
