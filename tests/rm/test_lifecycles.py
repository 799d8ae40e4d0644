"""The four lifecycles: an event that a state has no row for raises and changes nothing, for all pairs."""

from __future__ import annotations

import gc
from enum import Enum
from typing import Any, get_args

import pytest
from msgspec import Struct

from rm.core import lifecycle_events
from rm.core.applications import RMApp, RMAppAttempt
from rm.core.context import RMContext
from rm.core.events import Event
from rm.core.lifecycle_events import RMAppAttemptEvent, RMAppEvent, RMNodeEvent
from rm.core.rm_app_attempt_lifecycle import RM_APP_ATTEMPT_LIFECYCLE
from rm.core.rm_app_lifecycle import RM_APP_LIFECYCLE
from rm.core.rm_node import RMNode
from rm.core.rm_node_lifecycle import RM_NODE_LIFECYCLE
from rm.core.settings import RMSettings
from rm.core.states import RMAppAttemptState, RMAppState
from rm.scheduler.model.ended_containers import EndedContainers
from rm.scheduler.model.notices import Notice
from rm.scheduler.model.requests import SchedulerKey
from rm.scheduler.model.rm_container import LIFECYCLE as RM_CONTAINER_LIFECYCLE
from rm.scheduler.model.rm_container import RMContainer, RMContainerState
from tests.compiled import attribute_names
from tests.rm.builders import RM, done
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.containers import Container
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import IllegalTransition, Lifecycle, Machine, complement
from yarn.protocols.tracker import RegisterNodeManagerRequest
from yarn.records import required_fields
from yarn.resource import Resource
from yarn.states import NodeState

APP = ApplicationId(1, 1)
ATTEMPT = ApplicationAttemptId(APP, 1)
NODE = NodeId("n1", 1)
KEY = SchedulerKey(False, 1, -1)


def context() -> RMContext:
    return RMContext(RMSettings.of(Configuration()), cluster_timestamp=1, strict=True)


def app(of: RMContext) -> RMApp:
    submission = ApplicationSubmissionContext(APP)
    return RMApp(of, submission, user="ann", queue="root.default", placed=None, am_requests=(), priority=0)


def attempt(of: RMContext) -> RMAppAttempt:
    return RMAppAttempt(of, app(of), ATTEMPT)


def node(of: RMContext) -> RMNode:
    return RMNode(of, of.apps, RegisterNodeManagerRequest(NODE, 8042, Resource(1024, 1)), "/default-rack")


def made(event: type) -> Any:
    """An event of that class: nothing looks into one that is illegal."""
    return event(*(None for _ in required_fields(event)))


def fields(subject: object) -> dict[str, str]:
    """The fields of the subject, without its machine."""
    names = attribute_names(type(subject)) or vars(subject)
    return {name: repr(getattr(subject, name)) for name in names if name not in ("machine", "_machine")}


def check_nothing_changed(
    table: Lifecycle[Any, Any], subject: object, machine: Machine[Any], state: Enum, event: type
) -> None:
    """`event` in `state` raises; the subject's fields, state and history are what they were."""
    machine.state = state
    before = fields(subject)
    with pytest.raises(IllegalTransition, match=f"{table.event_name(event)} is illegal in {state.name}"):
        table.handle(subject, machine, made(event), 7)
    assert machine.state is state
    assert machine.history == []
    assert fields(subject) == before


def check_nothing_sent(of: RMContext) -> None:
    of.dispatcher.drain()
    assert of.dispatcher.take_effects() == []


@pytest.mark.parametrize(("state", "event"), complement(RM_APP_LIFECYCLE), ids=str)
def test_illegal_events_leave_an_application_unchanged(state: RMAppState, event: type) -> None:
    of = context()
    subject = app(of)
    check_nothing_changed(RM_APP_LIFECYCLE, subject, subject.machine, state, event)
    check_nothing_sent(of)


@pytest.mark.parametrize(("state", "event"), complement(RM_APP_ATTEMPT_LIFECYCLE), ids=str)
def test_illegal_events_leave_an_attempt_unchanged(state: RMAppAttemptState, event: type) -> None:
    of = context()
    subject = attempt(of)
    check_nothing_changed(RM_APP_ATTEMPT_LIFECYCLE, subject, subject.machine, state, event)
    check_nothing_sent(of)


@pytest.mark.parametrize(("state", "event"), complement(RM_NODE_LIFECYCLE), ids=str)
def test_illegal_events_leave_a_node_unchanged(state: NodeState, event: type) -> None:
    of = context()
    subject = node(of)
    check_nothing_changed(RM_NODE_LIFECYCLE, subject, subject.machine, state, event)
    check_nothing_sent(of)


@pytest.mark.parametrize(("state", "event"), complement(RM_CONTAINER_LIFECYCLE), ids=str)
def test_illegal_events_leave_a_container_unchanged(state: RMContainerState, event: type) -> None:
    notices: list[Notice] = []
    record = Container(ContainerId(ATTEMPT, 1), NODE, "n1:8042", Resource(1024, 1), priority=1)
    subject = RMContainer(
        record, KEY, user="ann", queue="root.default", partition="", started_ms=0, notify=notices.append
    )
    check_nothing_changed(RM_CONTAINER_LIFECYCLE, subject, subject._machine, state, event)
    assert notices == []


@pytest.mark.parametrize(
    ("table", "final"),
    [
        (RM_APP_LIFECYCLE, {"FINISHED", "FAILED", "KILLED"}),
        (RM_APP_ATTEMPT_LIFECYCLE, {"FINISHED", "FAILED", "KILLED"}),
        (RM_CONTAINER_LIFECYCLE, {"COMPLETED", "EXPIRED", "RELEASED", "KILLED"}),
        (RM_NODE_LIFECYCLE, {"LOST", "REBOOTED", "SHUTDOWN", "DECOMMISSIONED"}),
    ],
    ids=lambda value: value.name if isinstance(value, Lifecycle) else "",
)
def test_each_table_has_the_expected_final_states(table: Lifecycle[Any, Any], final: set[str]) -> None:
    assert {state.name for state in table.states if table.is_final(state)} == final


@pytest.mark.parametrize(
    "table",
    [RM_APP_LIFECYCLE, RM_APP_ATTEMPT_LIFECYCLE, RM_CONTAINER_LIFECYCLE, RM_NODE_LIFECYCLE],
    ids=lambda table: table.name,
)
def test_every_row_has_its_reason(table: Lifecycle[Any, Any]) -> None:
    assert [row for row in table.rows if not row.reason] == []


def test_every_event_has_a_handler_and_the_tables_know_their_events() -> None:
    dispatcher = RM().core.context.dispatcher
    assert [event for event in get_args(Event) if not dispatcher.handles(event)] == []
    sent = [each for each in vars(lifecycle_events).values() if isinstance(each, type) and issubclass(each, Struct)]
    own = [each for each in sent if each.__module__ == lifecycle_events.__name__ and each.__name__[0] != "_"]
    assert [event for event in own if not dispatcher.handles(event)] == []
    assert set(RM_APP_LIFECYCLE.events) == set(get_args(RMAppEvent))
    assert set(RM_APP_ATTEMPT_LIFECYCLE.events) == set(get_args(RMAppAttemptEvent))
    assert set(RM_NODE_LIFECYCLE.events) == set(get_args(RMNodeEvent))


def test_a_completed_container_is_freed_at_once() -> None:
    """Not when garbage is collected: that visits all objects of thousands of nodes, and stalls the process."""
    rm = RM()
    rm.node("n1")
    app = rm.submit()
    rm.run_am(app)
    ending = [container.id for container in rm.get(app, 3)]
    held = rm.core.scheduler.containers_of(app)
    places = {id(held[container_id]) for container_id in ending}
    del held
    gc.disable()
    try:
        rm.beat(ended=[done(container_id) for container_id in ending])
        rm.allocate(app)
        rm.allocate(app)
        rm.beat()
        rm.log.clear()
        # Kept for explanations, up to a number.
        rm.core.scheduler.context.ended = EndedContainers()
        assert not [each for each in gc.get_objects() if isinstance(each, RMContainer) and id(each) in places]
    finally:
        gc.enable()
