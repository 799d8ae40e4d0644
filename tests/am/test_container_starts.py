"""Which starts share a call, and what follows a lost or refused one: events in, effects out, no clock."""

from __future__ import annotations

from am.core.container_starts import (
    ContainerFound,
    ContainerStarts,
    FindContainer,
    FindFailed,
    SendStarts,
    StartAbandoned,
    StartEffect,
    StartEvent,
    StartsAnswered,
    StartSettled,
    StartsFailed,
    StartWanted,
)
from tests.am.builders import container_id
from yarn.containers import ContainerLaunchContext, Token
from yarn.errors import CallOutcomeUnknown, InvalidToken, NMNotYetReadyException, ServerUnavailable, YarnException
from yarn.machine import Tick
from yarn.protocols.container_management import StartContainerRequest, StartContainersResponse

LOST = CallOutcomeUnknown("no answer")
FORGED = InvalidToken("forged")
IDS = [container_id(number) for number in range(2, 6)]
REQUESTS = [StartContainerRequest(ContainerLaunchContext((str(i),)), Token(b"", b"", "", "")) for i in IDS]


class Starts:
    def __init__(self, max_wait_ms: int = 500, interval_ms: int = 100) -> None:
        self.core = ContainerStarts(max_wait_ms, interval_ms)
        self.now_ms = 1000

    def take(self, event: StartEvent) -> list[StartEffect]:
        return self.core.handle(event, self.now_ms)

    def want(self, *numbers: int) -> None:
        for number in numbers:
            assert self.take(StartWanted(number, IDS[number], REQUESTS[number])) == []

    def wait(self) -> tuple[int, list[StartEffect]]:
        deadline_ms = self.core.next_deadline_ms()
        assert deadline_ms is not None, "nothing is planned"
        waited_ms, self.now_ms = deadline_ms - self.now_ms, deadline_ms
        return waited_ms, self.take(Tick())


def sent(*numbers: int) -> list[StartEffect]:
    return [SendStarts(tuple(REQUESTS[number] for number in numbers))]


def started(*numbers: int) -> StartsAnswered:
    return StartsAnswered(StartContainersResponse(tuple(IDS[number] for number in numbers), {}, {}))


def test_starts_of_one_moment_share_a_call_and_later_ones_the_next() -> None:
    starts = Starts()
    starts.want(0, 1)
    assert starts.wait() == (0, sent(0, 1))
    starts.want(2)
    assert starts.core.next_deadline_ms() is None
    assert starts.take(started(0, 1)) == [StartSettled(0, None), StartSettled(1, None), *sent(2)]


def test_a_lost_call_is_followed_by_a_query_and_repeated_only_where_nothing_runs() -> None:
    starts = Starts()
    starts.want(0, 1)
    starts.wait()
    assert starts.take(StartsFailed(LOST)) == [FindContainer(0, IDS[0]), FindContainer(1, IDS[1])]
    assert starts.take(ContainerFound(0, True)) == [StartSettled(0, None)]
    assert starts.take(ContainerFound(1, False)) == []
    assert starts.wait() == (100, sent(1))


def test_once_a_call_was_lost_a_later_refusal_is_examined_too() -> None:
    """The first call may have started it: the second is then refused because it runs."""
    starts = Starts()
    starts.want(0)
    starts.wait()
    starts.take(StartsFailed(LOST))
    starts.take(ContainerFound(0, False))
    starts.wait()
    refused = StartContainersResponse((), {IDS[0]: YarnException("already runs")}, {})
    assert starts.take(StartsAnswered(refused)) == [FindContainer(0, IDS[0])]
    assert starts.take(ContainerFound(0, True)) == [StartSettled(0, None)]


def test_an_nm_that_is_not_ready_is_called_again_until_the_time_is_over() -> None:
    not_ready = NMNotYetReadyException("not yet")
    starts = Starts()
    starts.want(0)
    waited = []
    effects = starts.wait()[1]
    while effects == sent(0):
        effects = starts.take(StartsFailed(not_ready))
        if not effects:
            waited_ms, effects = starts.wait()
            waited.append(waited_ms)
    assert effects == [StartSettled(0, not_ready)]
    assert waited == [100] * 5


def test_a_negative_wait_has_no_end() -> None:
    starts = Starts(max_wait_ms=-1)
    starts.want(0)
    starts.wait()
    for _ in range(100):
        assert starts.take(StartsFailed(LOST)) == [FindContainer(0, IDS[0])]
        starts.take(ContainerFound(0, False))
        assert starts.wait() == (100, sent(0))


def test_an_nm_that_cannot_be_asked_settles_the_start_with_that_error() -> None:
    gone = ServerUnavailable("gone")
    starts = Starts()
    starts.want(0)
    starts.wait()
    starts.take(StartsFailed(LOST))
    assert starts.take(FindFailed(0, gone)) == [StartSettled(0, gone)]


def test_starts_that_were_refused_together_are_sent_one_by_one() -> None:
    starts = Starts()
    starts.want(0, 1, 2)
    starts.wait()
    assert starts.take(StartsFailed(FORGED)) == [FindContainer(0, IDS[0])]
    assert starts.take(ContainerFound(0, True)) == [StartSettled(0, None), FindContainer(1, IDS[1])]
    assert starts.take(ContainerFound(1, False)) == sent(1)
    assert starts.take(StartsFailed(FORGED)) == [StartSettled(1, FORGED), FindContainer(2, IDS[2])]
    assert starts.take(FindFailed(2, LOST)) == [StartSettled(2, FORGED)]


def test_an_abandoned_start_is_not_sent() -> None:
    starts = Starts()
    starts.want(0, 1)
    starts.take(StartAbandoned(0))
    assert starts.wait() == (0, sent(1))
    starts.take(StartsFailed(LOST))
    starts.take(ContainerFound(1, False))
    starts.take(StartAbandoned(1))
    assert starts.wait() == (100, [])


def test_the_answer_for_an_abandoned_start_goes_nowhere() -> None:
    starts = Starts()
    starts.want(0)
    starts.wait()
    starts.take(StartAbandoned(0))
    assert starts.take(started(0)) == []
    assert starts.core.next_deadline_ms() is None
