"""The transition tables of the NodeManager: illegal events raise and change nothing."""

from __future__ import annotations

from typing import get_args

import pytest

from nm.core import NodeManagerCore
from nm.core.application import (
    APPLICATION_LIFECYCLE,
    ApplicationEvent,
    ContainerOfApplicationEvent,
    NMApplication,
    NMApplicationState,
)
from nm.core.container import NMContainer, NMContainerState
from nm.core.container_lifecycle import CONTAINER_LIFECYCLE, ContainerEvent
from nm.core.context import NodeContext
from nm.core.events import Event
from nm.core.settings import CoreSettings, NodeFacts
from tests.nm.nodes import APP, container_token
from yarn.containers import ContainerLaunchContext
from yarn.ids import NodeId
from yarn.machine import IllegalTransition, complement, event_name
from yarn.records import required_fields
from yarn.resource import Resource


def made(event: type) -> object:
    """An event of that class; its fields do not matter, because illegal events are not handled."""
    return event(*(None for _ in required_fields(event)))


@pytest.mark.parametrize(("state", "event"), complement(CONTAINER_LIFECYCLE), ids=str)
def test_an_illegal_event_of_a_container_raises_and_changes_nothing(state: NMContainerState, event: type) -> None:
    context = NodeContext(CoreSettings())
    container = NMContainer(container_token(1), ContainerLaunchContext(("true",)), context)
    container.machine.state = state
    before = (container.status(), container.launches, context.resources.held_by(container.id))

    with pytest.raises(IllegalTransition, match=f"{event_name(event)} is illegal in {state.name}"):
        CONTAINER_LIFECYCLE.handle(container, container.machine, made(event), 1)

    assert (container.status(), container.launches, context.resources.held_by(container.id)) == before
    assert context.dispatcher.take_effects() == []


@pytest.mark.parametrize(("state", "event"), complement(APPLICATION_LIFECYCLE), ids=str)
def test_an_illegal_event_of_an_application_raises_and_changes_nothing(state: NMApplicationState, event: type) -> None:
    context = NodeContext(CoreSettings())
    application = NMApplication(APP, "alice", {}, context)
    application.machine.state = state

    with pytest.raises(IllegalTransition, match=f"{event_name(event)} is illegal in {state.name}"):
        APPLICATION_LIFECYCLE.handle(application, application.machine, made(event), 1)

    assert application.machine.state is state
    assert application.containers == {}
    assert context.dispatcher.take_effects() == []


def test_every_event_has_a_handler_and_the_tables_know_their_events() -> None:
    core = NodeManagerCore(NodeId("n1", 1), NodeFacts(Resource(1024, 1), Resource(1024, 1)), CoreSettings())
    assert [event for event in get_args(Event) if not core.context.dispatcher.handles(event)] == []
    assert set(CONTAINER_LIFECYCLE.events) == set(get_args(ContainerEvent))
    assert set(APPLICATION_LIFECYCLE.events) == {*get_args(ApplicationEvent), *get_args(ContainerOfApplicationEvent)}


def test_every_container_state_is_reachable_and_leads_to_the_final_one() -> None:
    """Every state is reachable from NEW, and DONE from every state, so no container can get stuck."""
    edges = {(row.source, target) for row in CONTAINER_LIFECYCLE.rows for target in row.targets}
    assert _reached(NMContainerState.NEW, edges) == set(NMContainerState)
    backwards = {(target, source) for source, target in edges}
    assert _reached(NMContainerState.DONE, backwards) == set(NMContainerState)


def test_every_application_state_is_reachable_and_leads_to_the_final_one() -> None:
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
