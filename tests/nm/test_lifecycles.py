"""The tables of the NodeManager's objects: what is legal does something, what is illegal changes nothing."""

from __future__ import annotations

import copy

import pytest

from nm.applications import NMApplication
from nm.containers import NMContainer
from nm.context import NodeContext
from nm.lifecycles.application import APPLICATION_LIFECYCLE, NMApplicationEvent, NMApplicationState
from nm.lifecycles.container import CONTAINER_LIFECYCLE, NMContainerEvent, NMContainerState
from nm.settings import CoreSettings
from tests.nm.nodes import APP, container_token
from yarn.containers import ContainerLaunchContext
from yarn.lifecycle import IllegalTransition, complement


@pytest.mark.parametrize(
    ("state", "event"), complement(CONTAINER_LIFECYCLE), ids=lambda value: getattr(value, "name", "")
)
def test_an_illegal_event_of_a_container_raises_and_changes_nothing(
    state: NMContainerState, event: NMContainerEvent
) -> None:
    context = NodeContext(CoreSettings())
    container = NMContainer(container_token(1), ContainerLaunchContext(("true",)), context)
    container.machine.state = state
    before = (container.status(), container.launches, copy.copy(container.requested))

    with pytest.raises(IllegalTransition, match=f"{event.name} is illegal in {state.name}"):
        container.machine.handle(container, event, None, 1)

    assert (container.status(), container.launches, container.requested) == before
    assert context.outbox.take_effects() == []


@pytest.mark.parametrize(
    ("state", "event"), complement(APPLICATION_LIFECYCLE), ids=lambda value: getattr(value, "name", "")
)
def test_an_illegal_event_of_an_application_raises_and_changes_nothing(
    state: NMApplicationState, event: NMApplicationEvent
) -> None:
    context = NodeContext(CoreSettings())
    application = NMApplication(APP, "alice", context)
    application.machine.state = state

    with pytest.raises(IllegalTransition, match=f"{event.name} is illegal in {state.name}"):
        application.machine.handle(application, event, None, 1)

    assert application.machine.state is state
    assert application.containers == {}
    assert context.outbox.take_effects() == []


def test_every_state_can_be_reached_and_left_for_the_final_one() -> None:
    """From NEW a path leads to every state, and from every state one to DONE: no container hangs by its table."""
    edges = {(row.source, target) for row in CONTAINER_LIFECYCLE.rows for target in row.targets}
    assert _reached(NMContainerState.NEW, edges) == set(NMContainerState)
    backwards = {(target, source) for source, target in edges}
    assert _reached(NMContainerState.DONE, backwards) == set(NMContainerState)


def test_every_application_state_can_be_reached_and_left_for_the_final_one() -> None:
    edges = {(row.source, target) for row in APPLICATION_LIFECYCLE.rows for target in row.targets}
    assert _reached(NMApplicationState.NEW, edges) == set(NMApplicationState)
    backwards = {(target, source) for source, target in edges}
    assert _reached(NMApplicationState.FINISHED, backwards) == set(NMApplicationState)


def _reached(start: object, edges: set[tuple[object, object]]) -> set[object]:
    found = {start}
    waiting = [start]
    while waiting:
        source = waiting.pop()
        for target in (to for fro, to in edges if fro is source and to not in found):
            found.add(target)
            waiting.append(target)
    return found
