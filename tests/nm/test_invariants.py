"""Each invariant of a node is reported when it is broken, and the daemon then stops."""

from __future__ import annotations

import asyncio
import logging

import pytest
from msgspec import structs

from nm.core import NodeManagerCore
from nm.core.container import NMContainer, NMContainerState
from nm.core.effects import LaunchContainer, SendHeartbeat, SendRegistration
from nm.core.events import ContainerLaunched, NodeHeartbeatAnswered, Start
from nm.core.invariants import NodeAudit
from nm.core.settings import CoreSettings, NodeFacts
from nm.shell.effects import NodeShell
from tests.nm.nodes import APP, NODE, NOW_MS, Node, container_id
from yarn.machine import Machine, Reply, Tick
from yarn.protocols.tracker import NodeHeartbeatResponse
from yarn.resource import Resource
from yarn.states import NodeAction


@pytest.fixture
def node() -> Node:
    """A node on which container 1 runs."""
    node = Node().register()
    node.start(1)
    launch = node.one(LaunchContainer)
    node.step(ContainerLaunched(launch.container_id, launch.launch))
    return node


def found(node: Node, effects: object = ()) -> list[str]:
    audit = NodeAudit(node.core.containers, node.core.applications, node.core.context.resources, lambda: 1)
    return [text.split(":")[0] for text in audit.violations(Tick(), effects, 0)]  # type: ignore[arg-type]


def container(node: Node) -> NMContainer:
    return node.core.containers[container_id(1)]


def test_a_node_at_work_breaks_no_invariant(node: Node) -> None:
    assert found(node) == []


def test_a_running_container_that_its_application_does_not_list_is_reported(node: Node) -> None:
    node.core.applications[APP].containers.clear()
    assert found(node) == ["N-01"]


def test_an_application_that_lists_a_done_container_is_reported(node: Node) -> None:
    container(node).machine.state = NMContainerState.DONE
    assert found(node) == ["N-02"]


@pytest.mark.parametrize("state", ["NEW", "LOCALIZING", "SCHEDULED", "RUNNING", "RELAUNCHING"])
def test_a_container_that_is_not_killed_with_its_application_is_reported(node: Node, state: str) -> None:
    node.after(1000, Tick())
    node.answer(applications_to_clean_up=(APP,))
    assert node.state(1) == "KILLING"
    assert found(node) == []
    container(node).machine.state = NMContainerState[state]
    assert "I-32" in found(node)


def test_a_container_that_is_localizing_without_files_is_reported(node: Node) -> None:
    container(node).machine.state = NMContainerState.LOCALIZING
    assert found(node) == ["N-03"]


def test_a_container_that_runs_without_a_launch_is_reported(node: Node) -> None:
    container(node).launches = 0
    assert found(node) == ["N-04"]


def test_cached_files_that_are_not_released_are_reported(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    held = {container_id(1): [object()], container_id(7): [object()]}
    monkeypatch.setattr(node.core.context.resources, "_held", held)
    container(node).machine.state = NMContainerState.DONE
    assert found(node) == ["N-05", "N-02", "N-06"]


def test_a_second_heartbeat_before_the_answer_to_the_first_is_reported(node: Node) -> None:
    audit = NodeAudit({}, {}, node.core.context.resources, lambda: 1)
    beat = SendHeartbeat(None)  # type: ignore[arg-type]
    answer = NodeHeartbeatAnswered(NodeHeartbeatResponse(1, NodeAction.NORMAL))
    assert audit.violations(Start(), [SendRegistration(None)], 0) == []  # type: ignore[arg-type]
    assert audit.violations(answer, [beat], 0) == []
    assert audit.violations(answer, [beat], 0) == []
    assert audit.violations(Tick(), [beat], 0) == ["I-24: 2 calls to the ResourceManager are outstanding after Tick"]


def test_a_call_that_is_answered_twice_or_not_at_all_is_reported(node: Node) -> None:
    assert found(node, [Reply(3, None)]) == ["N-08"]


def test_a_launch_that_is_ordered_twice_is_reported(node: Node) -> None:
    audit = NodeAudit(node.core.containers, node.core.applications, node.core.context.resources, lambda: 1)
    launch = LaunchContainer(container_id(1), 1, "alice", (), {}, {}, "", Resource(1, 1))
    again = structs.replace(launch, launch=2)
    assert audit.violations(Tick(), [launch, again], 0) == []
    assert [text.split(":")[0] for text in audit.violations(Tick(), [again], 0)] == ["N-09"]


async def test_a_daemon_logs_a_broken_invariant_and_stops(caplog: pytest.LogCaptureFixture) -> None:
    facts = NodeFacts(Resource(1024, 1), Resource(1024, 1))
    core = NodeManagerCore(NODE, facts, CoreSettings(check_invariants=True))
    core.containers[container_id(1)] = _Misplaced()  # type: ignore[assignment]
    shell = NodeShell(core, lambda: NOW_MS)
    shell.parts = _NoParts()  # type: ignore[assignment]
    with caplog.at_level(logging.CRITICAL):
        shell.send(Tick())
    async with asyncio.timeout(60):
        assert (await shell.stopped).startswith("invariants are broken: N-01: container 1 is RUNNING")
    assert [record.levelname for record in caplog.records] == ["CRITICAL"]
    shell.close()


class _Token:
    resource = Resource(1, 1)


class _Misplaced:
    """A running container whose application is not on the node."""

    id = container_id(1)
    launches = 1
    is_waiting_for_files = False
    is_done = False

    def __init__(self) -> None:
        self.machine = Machine(NMContainerState.RUNNING)
        self.token = _Token()

    def __str__(self) -> str:
        return "container 1"


class _NoParts:
    """Parts that carry out no effect."""

    recovery = None
