"""Which calls `yarnling watch` shows, and how they are printed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from wire.files.json_records import to_json
from yarn.containers import ContainerStatus, ResourceRequest
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeHealth, ResourceUtilization
from yarn.protocols.master import AllocateRequest, AllocateResponse
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse
from yarn.resource import Resource
from yarn.states import ContainerState, NodeAction
from yarnling.cli.watch import Filter, Heartbeats, brief, change_in_one_line, in_one_line
from yarnling.run.records import Call, StateChange
from yarnling.run.watched import watched

APP = ApplicationId(1, 1)
ATTEMPT = ApplicationAttemptId(APP, 1)
NODE = "127.0.0.2:7"


def call(**parts: Any) -> Call:
    request = AllocateRequest(3, 0.5, (ResourceRequest(1, "*", Resource(1024, 1), 4),), (ContainerId(ATTEMPT, 2),))
    line = {
        "at_ms": 1_700_000_000_042,
        "ms": 1.25,
        "from": str(ATTEMPT),
        "to": "ResourceManager",
        "rpc": "allocate",
        "request": to_json(request),
        "reply": None,
        "error": None,
    }
    record = watched({**line, **parts})
    assert isinstance(record, Call)
    return record


def test_a_call_in_one_line() -> None:
    line = in_one_line(call())
    assert line.partition(" ")[2].startswith(
        "appattempt_1_0001_000001 -> ResourceManager allocate 1.2 ms response_id=3"
    )
    assert "progress=0.5" in line
    assert "asks=(1)" in line
    assert "releases=container_1_0001_01_000002" in line
    assert "\n" not in line
    assert line.split(" ")[0].endswith(".042")


def test_an_error_is_shown_with_control_characters_escaped() -> None:
    line = in_one_line(call(error={"exception": "a.b.Odd", "message": "two\nlines \x1b[2J"}, request=None))
    assert line.endswith("! Odd: two\\x0alines \\x1b[2J")


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        (Filter(), True),
        (Filter(app=APP), True),
        (Filter(app=ApplicationId(1, 2)), False),
        (Filter(node=NODE), False),
        (Filter(rpcs=("ALLOC*",)), True),
        (Filter(rpcs=("nodeHeartbeat", "allocate")), True),
        (Filter(rpcs=("alloc",)), False),
        (Filter(errors=True), False),
        (Filter(app=APP, errors=True), False),
    ],
)
def test_filters(wanted: Filter, passes: bool) -> None:
    assert wanted.passes(call()) is passes


def test_an_application_is_found_in_ids_of_its_containers_and_attempts() -> None:
    bare = {"request": None, "from": "user ann"}
    other = ContainerId(ApplicationAttemptId(ApplicationId(1, 11), 1), 1)
    assert Filter(app=APP).passes(call(**{**bare, "from": f"ResourceManager for {ATTEMPT}"}))
    assert Filter(app=APP).passes(call(**{**bare, "reply": [str(ContainerId(ATTEMPT, 9))]}))
    assert Filter(app=APP).passes(call(**{**bare, "reply": {"failed": {str(ContainerId(ATTEMPT, 9)): 1}}}))
    assert not Filter(app=APP).passes(call(**{**bare, "reply": [str(other)]}))


def test_a_node_is_found_as_caller_as_callee_and_in_records() -> None:
    assert Filter(node=NODE).passes(call(**{"from": NODE}))
    assert Filter(node=NODE).passes(call(to=NODE))
    assert Filter(node=NODE).passes(call(reply=to_json(NodeId("127.0.0.2", 7))))
    assert Filter(errors=True).passes(call(error={"exception": "E", "message": ""}))


def test_an_unknown_record_is_shown_unchanged() -> None:
    odd = {"$": "yarn.nowhere.Odd", "x": 1}
    assert call(request=odd).request == odd


def test_empty_fields_are_left_out() -> None:
    assert brief({"a": 0, "b": "", "c": [], "d": {"x": 1, "y": None}, "e": [1, 2, 3, 4]}) == "d={x=1} e=(4)"
    assert brief({"text": "x" * 50}) == f"text={'x' * 39}…"


def test_numbers_are_rounded() -> None:
    assert brief({"cpu": 0.11599999666213989, "mb": 12.0, "share": 1e-9}) == "cpu=0.116 mb=12 share=0"


CHANGE = StateChange(
    1_700_000_000_042,
    "ResourceManager",
    kind="RMApp",
    subject=str(APP),
    event="ATTEMPT_REGISTERED",
    source="ACCEPTED",
    target="RUNNING",
)


def test_a_state_change_in_one_line() -> None:
    text = change_in_one_line(CHANGE).partition(" ")[2]
    assert text == "application_1_0001 ACCEPTED -> RUNNING (ATTEMPT_REGISTERED, ResourceManager)"


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        (Filter(), True),
        (Filter(app=APP), True),
        (Filter(app=ApplicationId(1, 2)), False),
        (Filter(node="ResourceManager"), True),
        (Filter(node=NODE), False),
        (Filter(rpcs=("allocate",)), False),
        (Filter(errors=True), False),
    ],
)
def test_filters_of_state_changes(wanted: Filter, passes: bool) -> None:
    assert wanted.passes_change(CHANGE) is passes


def beat(response_id: int, **parts: Any) -> Call:
    """A node's heartbeat and its reply with `parts`. `containers` are those in the request."""
    containers = parts.pop("containers", ())
    health = NodeHealth(True, "", response_id)
    measured = ResourceUtilization(response_id, response_id, 0.1)
    request = NodeHeartbeatRequest(NodeId("127.0.0.2", 7), response_id, containers, health, (), measured, measured)
    reply = NodeHeartbeatResponse(response_id + 1, NodeAction.NORMAL, **parts)
    return call(**{"from": NODE, "rpc": "nodeHeartbeat", "request": to_json(request), "reply": to_json(reply)})


def status(state: ContainerState) -> tuple[ContainerStatus, ...]:
    return (ContainerStatus(ContainerId(ATTEMPT, 2), state),)


def test_heartbeats_without_news_are_quiet() -> None:
    heartbeats = Heartbeats()
    running, complete = status(ContainerState.RUNNING), status(ContainerState.COMPLETE)
    lines = [
        (beat(1), False),  # the first one that is seen
        (beat(2), True),
        (beat(3, containers=running), False),
        (beat(4, containers=running), True),
        (beat(5, containers=running, containers_to_clean_up=(ContainerId(ATTEMPT, 2),)), False),
        (beat(6, containers=complete), False),
        (beat(7), False),
        (beat(8), True),
        (replace(beat(9), source="127.0.0.3:7"), False),
        (replace(beat(10), error="E: "), False),
        (replace(beat(11), rpc="submitApplication"), False),
    ]
    assert [heartbeats.is_quiet(line) for line, _ in lines] == [quiet for _, quiet in lines]


def test_an_allocate_call_is_quiet_without_requests_and_containers() -> None:
    heartbeats = Heartbeats()

    def allocate(response_id: int, asks: tuple[ResourceRequest, ...] = (), progress: float = 0.5) -> Call:
        request = AllocateRequest(response_id, progress, asks)
        reply = AllocateResponse(response_id + 1, Resource(response_id, 1), 2)
        return call(request=to_json(request), reply=to_json(reply))

    asks = (ResourceRequest(1, "*", Resource(1024, 1), 4),)
    assert not heartbeats.is_quiet(allocate(1))
    assert heartbeats.is_quiet(allocate(2))
    assert not heartbeats.is_quiet(allocate(3, asks))
    assert not heartbeats.is_quiet(allocate(4, asks)), "the request was repeated"
    assert heartbeats.is_quiet(allocate(5))
    assert not heartbeats.is_quiet(allocate(6, progress=0.6))
