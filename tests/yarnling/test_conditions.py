"""Waiting for conditions: values, errors, and the message of a timeout."""

from __future__ import annotations

import asyncio
import itertools
from typing import cast

import pytest

from tests.yarnling.cli.test_top import NODE
from yarn.applications import ApplicationAttemptReport, ApplicationReport, ContainerReport
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.nodes import ClusterMetrics, NodeReport
from yarn.protocols.inspection import Explanation, SettingInForce, VerdictReport
from yarn.resource import NONE
from yarn.states import ContainerState, NodeState, YarnApplicationAttemptState, YarnApplicationState
from yarnling.cluster import client as client_module
from yarnling.cluster.client import Client, WaitTimeout
from yarnling.cluster.conditions import until, until_blocking, wait_containers, wait_nodes

APP = ApplicationId(1, 1)


async def test_the_first_true_value_is_returned() -> None:
    counted = itertools.count()
    assert await until(lambda: next(counted) >= 2 and "done") == "done"
    assert next(counted) == 3


async def test_a_condition_may_be_a_coroutine_function() -> None:
    counted = itertools.count()

    async def counts() -> bool:
        return next(counted) == 2

    assert await until(counts) is True


async def test_a_timeout_reports_the_last_value() -> None:
    with pytest.raises(WaitTimeout, match=r"not met within 0 s; its last value was \[\]"):
        await until(list, timeout_s=0)


async def test_errors_of_a_condition_are_raised() -> None:
    def fails() -> bool:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        await until(fails)


def test_without_asyncio() -> None:
    counted = itertools.count()
    assert until_blocking(lambda: next(counted) >= 2 and "done") == "done"
    with pytest.raises(WaitTimeout, match=r"not met within 0 s; its last value was 0"):
        until_blocking(int, timeout_s=0)


class RunningContainers:
    """A client of an application whose containers run."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._attempt = ApplicationAttemptId(APP, 1)

    async def report(self, app_id: ApplicationId) -> ApplicationReport:
        return ApplicationReport(APP, "ann", "root.a", "n", YarnApplicationState.RUNNING, self._attempt)

    async def attempts(self, app_id: ApplicationId) -> tuple[ApplicationAttemptReport, ...]:
        am = ContainerId(self._attempt, 1)
        return (ApplicationAttemptReport(self._attempt, YarnApplicationAttemptState.RUNNING, am),)

    async def containers(self, attempt_id: ApplicationAttemptId) -> tuple[ContainerReport, ...]:
        ids = [ContainerId(attempt_id, number) for number in range(1, self._count + 2)]
        return tuple(ContainerReport(one, NONE, NodeId("h", 1), 0, ContainerState.RUNNING) for one in ids)

    async def explain(self, app_id: ApplicationId) -> Explanation:
        return Explanation(APP, "ann", "root.a", YarnApplicationState.RUNNING, 0)


async def test_more_containers_are_enough_unless_the_number_is_exact() -> None:
    client = cast(Client, RunningContainers(15))
    assert len(await wait_containers(client, APP, 12, 60)) == 15
    assert len(await wait_containers(client, APP, 15, 60, exactly=True)) == 15
    with pytest.raises(WaitTimeout, match="15 containers of application_1_0001 run, not 16: it is RUNNING"):
        await wait_containers(client, APP, 16, 0)
    with pytest.raises(WaitTimeout, match="15 containers of application_1_0001 run, not exactly 12: it is RUNNING"):
        await wait_containers(client, APP, 12, 0, exactly=True)


class WaitingApplication(RunningContainers):
    """A client of an application that waits for its queue, until the ResourceManager refuses to explain it."""

    def __init__(self, refused: str = "") -> None:
        super().__init__(1)
        self._refused = refused

    async def explain(self, app_id: ApplicationId) -> Explanation:
        if self._refused:
            raise YarnException(self._refused)
        settings = (SettingInForce("a.b", "50"),)
        verdict = VerdictReport(1, 0, "QUEUE", "waits because the queue is full", 0, settings, ("a note",))
        return Explanation(APP, "ann", "root.a", YarnApplicationState.RUNNING, 0, verdicts=(verdict,))


async def test_a_timeout_says_why_the_application_waits() -> None:
    with pytest.raises(WaitTimeout) as raised:
        await wait_containers(cast(Client, WaitingApplication()), APP, 2, 0)
    assert raised.value.message.splitlines() == [
        "after 0 s 1 containers of application_1_0001 run, not 2: it is RUNNING",
        "it waits because the queue is full",
        "a.b = 50",
        "a note",
    ]


async def test_a_timeout_is_reported_even_if_nothing_explains_it() -> None:
    with pytest.raises(WaitTimeout, match=r"not 2: it is RUNNING$"):
        await wait_containers(cast(Client, WaitingApplication("not yours")), APP, 2, 0)


class DeadResourceManager(RunningContainers):
    """A client whose ResourceManager answers the first report and list, and is dead from then on."""

    async def report(self, app_id: ApplicationId) -> ApplicationReport:
        if self._is_dead:
            await asyncio.Event().wait()
        return await super().report(app_id)

    async def attempts(self, app_id: ApplicationId) -> tuple[ApplicationAttemptReport, ...]:
        self._is_dead = True
        return await super().attempts(app_id)

    async def explain(self, app_id: ApplicationId) -> Explanation:
        await asyncio.Event().wait()
        raise AssertionError

    _is_dead = False


async def test_a_timeout_is_reported_even_if_the_resource_manager_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "EXPLAIN_S", 0.0)
    async with asyncio.timeout(60):
        with pytest.raises(WaitTimeout, match=r"1 containers of application_1_0001 run, not 2: it is RUNNING$"):
            await wait_containers(cast(Client, DeadResourceManager(1)), APP, 2, 0.1)
        dead = DeadResourceManager(1)
        dead._is_dead = True
        with pytest.raises(WaitTimeout, match=r"has not answered how many containers of application_1_0001 run$"):
            await wait_containers(cast(Client, dead), APP, 2, 0)


class StartingApplication(RunningContainers):
    """The client of an application of which only the ApplicationMaster's container runs, from the first list on."""

    def __init__(self) -> None:
        super().__init__(0)
        self._has_started = False

    async def attempts(self, app_id: ApplicationId) -> tuple[ApplicationAttemptReport, ...]:
        if self._has_started:
            return await super().attempts(app_id)
        return (ApplicationAttemptReport(self._attempt, YarnApplicationAttemptState.SCHEDULED),)

    async def containers(self, attempt_id: ApplicationAttemptId) -> tuple[ContainerReport, ...]:
        self._has_started = True
        return await super().containers(attempt_id)


async def test_the_am_of_a_starting_application_is_not_one_of_its_tasks() -> None:
    with pytest.raises(WaitTimeout, match="0 containers of application_1_0001 run, not 1"):
        await wait_containers(cast(Client, StartingApplication()), APP, 1, 0)


class RegisteringNodes:
    """A client of a cluster in which one more node is RUNNING at each look. `lists`: how often all were listed."""

    def __init__(self) -> None:
        self.running = 0
        self.lists = 0

    async def metrics(self) -> ClusterMetrics:
        self.running += 1
        return ClusterMetrics(total=self.running, active=self.running)

    async def nodes(self, states: frozenset[NodeState]) -> tuple[NodeReport, ...]:
        assert states == {NodeState.RUNNING}
        self.lists += 1
        return (NODE,) * self.running


async def test_nodes_are_counted_until_there_are_enough_and_then_listed() -> None:
    client = RegisteringNodes()
    assert len(await wait_nodes(cast(Client, client), 5, NodeState.RUNNING, 60)) == 5
    assert client.lists == 1


async def test_a_timeout_of_nodes_names_their_number() -> None:
    with pytest.raises(WaitTimeout, match="after 0 s 1 nodes are RUNNING, not 5"):
        await wait_nodes(cast(Client, RegisteringNodes()), 5, NodeState.RUNNING, 0)
