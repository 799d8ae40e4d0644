"""Every event that a state has no row for raises and changes nothing: all pairs of the four tables."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from rm.core import rm_app, rm_app_attempt, rm_node
from rm.core.context import RMContext
from rm.core.lifecycle_events import RMAppAttemptEventType, RMAppEventType, RMNodeEventType
from rm.core.rm_app import RMApp
from rm.core.rm_app_attempt import RMAppAttempt
from rm.core.rm_node import RMNode
from rm.core.settings import RMSettings
from rm.core.states import RMAppAttemptState, RMAppState
from rm.scheduler.model import rm_container
from rm.scheduler.model.notices import Notice
from rm.scheduler.model.requests import SchedulerKey
from rm.scheduler.model.rm_container import RMContainer
from tests.rm.builders import RM, done
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.containers import Container
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.lifecycle import IllegalTransition, complement
from yarn.protocols.tracker import RegisterNodeManagerRequest
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
    return RMNode(of, RegisterNodeManagerRequest(NODE, 8042, Resource(1024, 1)), "/default-rack")


def fields(subject: object) -> dict[str, Any]:
    """What the subject holds, without its place in the table."""
    names = getattr(subject, "__slots__", None) or vars(subject)
    return {name: getattr(subject, name) for name in names if name not in ("machine", "_machine")}


def check_nothing_changed(subject: object, machine: Any, state: object, event: object) -> None:
    """`event` in `state` raises; the subject's fields, state and story are what they were."""
    machine.state = state
    before = {name: repr(value) for name, value in fields(subject).items()}
    with pytest.raises(IllegalTransition, match=f"{event.name} is illegal in {state.name}"):  # type: ignore[attr-defined]
        machine.handle(subject, event, None, 7)
    assert machine.state is state
    assert machine.history == []
    assert {name: repr(value) for name, value in fields(subject).items()} == before


def names(member: Any) -> str:
    return str(member.name)


@pytest.mark.parametrize(("state", "event"), complement(rm_app.LIFECYCLE), ids=names)
def test_illegal_events_of_an_application(state: RMAppState, event: RMAppEventType) -> None:
    of = context()
    subject = app(of)
    check_nothing_changed(subject, subject.machine, state, event)
    assert of.effects == []
    assert not of.has_work


@pytest.mark.parametrize(("state", "event"), complement(rm_app_attempt.LIFECYCLE), ids=names)
def test_illegal_events_of_an_attempt(state: RMAppAttemptState, event: RMAppAttemptEventType) -> None:
    of = context()
    subject = attempt(of)
    check_nothing_changed(subject, subject.machine, state, event)
    assert of.effects == []
    assert not of.has_work


@pytest.mark.parametrize(("state", "event"), complement(rm_node.LIFECYCLE), ids=names)
def test_illegal_events_of_a_node(state: NodeState, event: RMNodeEventType) -> None:
    of = context()
    subject = node(of)
    check_nothing_changed(subject, subject.machine, state, event)
    assert of.effects == []
    assert not of.has_work


@pytest.mark.parametrize(("state", "event"), complement(rm_container.LIFECYCLE), ids=names)
def test_illegal_events_of_a_container(state: Any, event: Any) -> None:
    notices: list[Notice] = []
    record = Container(ContainerId(ATTEMPT, 1), NODE, "n1:8042", Resource(1024, 1), priority=1)
    subject = RMContainer(
        record, KEY, user="ann", queue="root.default", partition="", started_ms=0, notify=notices.append
    )
    check_nothing_changed(subject, subject._machine, state, event)
    assert notices == []


@pytest.mark.parametrize(
    ("table", "final"),
    [
        (rm_app.LIFECYCLE, {"FINISHED", "FAILED", "KILLED"}),
        (rm_app_attempt.LIFECYCLE, {"FINISHED", "FAILED", "KILLED"}),
        (rm_container.LIFECYCLE, {"COMPLETED", "EXPIRED", "RELEASED", "KILLED"}),
        (rm_node.LIFECYCLE, {"LOST", "REBOOTED", "SHUTDOWN", "DECOMMISSIONED"}),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
def test_where_a_life_ends(table: Any, final: set[str]) -> None:
    """A node's DECOMMISSION* states have no rows yet: nothing leads there before nodes can be decommissioned."""
    assert {state.name for state in table.states if table.is_final(state)} == final


@pytest.mark.parametrize(
    "table", [rm_app.LIFECYCLE, rm_app_attempt.LIFECYCLE, rm_container.LIFECYCLE, rm_node.LIFECYCLE]
)
def test_every_row_has_its_reason(table: Any) -> None:
    assert [row for row in table.rows if not row.reason] == []


def test_a_container_that_is_over_is_freed_at_once() -> None:
    """Not when garbage is collected: that looks at all there is, of thousands of nodes, and nobody is served then."""
    rm = RM()
    rm.node("n1")
    app = rm.submit()
    rm.run_master(app)
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
        assert not [each for each in gc.get_objects() if isinstance(each, RMContainer) and id(each) in places]
    finally:
        gc.enable()
