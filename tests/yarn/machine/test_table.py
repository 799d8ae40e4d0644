"""Transition tables keyed by event classes, and the machines that follow them."""

from __future__ import annotations

from enum import Enum, auto

import pytest
from msgspec import Struct

from yarn.errors import InternalError
from yarn.machine import HISTORY_MAX, IllegalTransition, Lifecycle, Machine, Row, complement, event_name, ignored


class Door(Enum):
    OPEN = auto()
    SHUT = auto()
    LOCKED = auto()
    GONE = auto()


class CloseDoor(Struct, frozen=True):
    reason: str = ""


class OpenDoor(Struct, frozen=True):
    pass


class LockDoor(Struct, frozen=True):
    key: str = "right key"


class Knock(Struct, frozen=True):
    pass


class RemoveDoor(Struct, frozen=True):
    pass


class Hinge:
    """A subject that remembers what its actions saw."""

    def __init__(self) -> None:
        self.seen: list[tuple[Door, object]] = []
        self.machine = Machine(Door.OPEN)

    def __str__(self) -> str:
        return "door 7"

    def take(self, event: object, now_ms: int = 1) -> Door:
        return TABLE.handle(self, self.machine, event, now_ms)


def note(hinge: Hinge, event: CloseDoor | OpenDoor | Knock) -> None:
    hinge.seen.append((hinge.machine.state, event))


def try_key(_: Hinge, event: LockDoor) -> Door:
    return Door.LOCKED if event.key == "right key" else Door.SHUT


TABLE: Lifecycle[Hinge, Door] = Lifecycle(
    "Door",
    Door.OPEN,
    [
        Row(Door.OPEN, CloseDoor, Door.SHUT, note, "somebody leaves"),
        Row(Door.OPEN, RemoveDoor, Door.GONE),
        Row(Door.SHUT, OpenDoor, Door.OPEN, note, "somebody comes"),
        Row(Door.SHUT, LockDoor, (Door.LOCKED, Door.SHUT), try_key, "with the right key"),
        Row(Door.SHUT, Knock, Door.SHUT, note),
        *ignored(Door.LOCKED, (Knock, OpenDoor), "nobody hears"),
    ],
)


def test_an_action_runs_before_the_state_changes_and_gets_the_event() -> None:
    hinge = Hinge()
    assert hinge.take(CloseDoor("draught"), 5) is Door.SHUT
    assert hinge.seen == [(Door.OPEN, CloseDoor("draught"))]
    assert hinge.machine.state is Door.SHUT


@pytest.mark.parametrize(("key", "state"), [("right key", Door.LOCKED), ("wrong key", Door.SHUT)])
def test_an_action_chooses_where_the_row_names_several_targets(key: str, state: Door) -> None:
    hinge = Hinge()
    hinge.take(CloseDoor())
    assert hinge.take(LockDoor(key)) is state


def test_ignored_events_change_nothing_and_leave_no_history() -> None:
    hinge = Hinge()
    hinge.take(CloseDoor())
    hinge.take(LockDoor())
    history = list(hinge.machine.history)
    assert hinge.take(Knock()) is Door.LOCKED
    assert hinge.machine.history == history


@pytest.mark.parametrize(
    ("state", "event"), complement(TABLE), ids=lambda value: getattr(value, "__name__", str(value))
)
def test_an_illegal_event_raises_and_changes_nothing(state: Door, event: type) -> None:
    hinge = Hinge()
    hinge.machine.state = state
    with pytest.raises(IllegalTransition, match=f"Door door 7: {event_name(event)} is illegal in {state.name}"):
        hinge.take(event())
    assert hinge.machine.state is state
    assert hinge.seen == []
    assert hinge.machine.history == []


def test_the_complement_and_the_rows_are_all_pairs() -> None:
    assert len(complement(TABLE)) + len(TABLE.rows) == len(Door) * len(TABLE.events)


def test_an_error_carries_the_history() -> None:
    hinge = Hinge()
    hinge.take(CloseDoor(), 10)
    with pytest.raises(IllegalTransition, match="10: OPEN --CLOSE_DOOR--> SHUT"):
        hinge.take(RemoveDoor(), 11)


def test_the_history_is_bounded() -> None:
    hinge = Hinge()
    for at_ms in range(2 * HISTORY_MAX):
        hinge.take(CloseDoor() if at_ms % 2 == 0 else OpenDoor(), at_ms)
    assert [transition.at_ms for transition in hinge.machine.history] == list(range(HISTORY_MAX, 2 * HISTORY_MAX))


def test_a_target_that_the_row_does_not_name_is_our_bug() -> None:
    def astray(_: Hinge, __: LockDoor) -> Door:
        return Door.GONE

    table: Lifecycle[Hinge, Door] = Lifecycle(
        "Door", Door.OPEN, [Row(Door.OPEN, LockDoor, (Door.OPEN, Door.LOCKED), astray)]
    )
    with pytest.raises(InternalError, match="OPEN --LOCK_DOOR--> GONE"):
        table.handle(Hinge(), Machine(Door.OPEN), LockDoor(), 1)


def test_two_rows_for_one_event_are_refused() -> None:
    rows = [Row(Door.OPEN, CloseDoor, Door.SHUT), Row(Door.OPEN, CloseDoor, Door.LOCKED)]
    with pytest.raises(InternalError, match="two rows"):
        Lifecycle("Door", Door.OPEN, rows)


def test_several_targets_without_an_action_are_refused() -> None:
    with pytest.raises(InternalError, match="need an action"):
        Lifecycle("Door", Door.OPEN, [Row(Door.OPEN, CloseDoor, (Door.SHUT, Door.LOCKED))])


def test_final_states_are_those_without_a_way_out() -> None:
    assert [state for state in Door if TABLE.is_final(state)] == [Door.LOCKED, Door.GONE]


def test_the_diagram_joins_events_of_one_edge_and_leaves_out_ignored_ones() -> None:
    diagram = TABLE.mermaid()
    assert diagram.startswith("stateDiagram-v2\n    [*] --> OPEN\n")
    assert "    SHUT --> LOCKED: LOCK_DOOR\n" in diagram
    assert "    SHUT --> SHUT: LOCK_DOOR, KNOCK\n" in diagram
    assert "LOCKED --> LOCKED" not in diagram
    assert diagram.endswith("    LOCKED --> [*]\n    GONE --> [*]\n")


@pytest.mark.parametrize(
    ("name", "lifecycle", "shown"),
    [
        ("KillContainer", "NMContainer", "KILL_CONTAINER"),
        ("RMAppKill", "RMApp", "KILL"),
        ("RMAppAttemptLaunchFailed", "RMAppAttempt", "LAUNCH_FAILED"),
        ("NMDoneChangeResource", "RMContainer", "NM_DONE_CHANGE_RESOURCE"),
        ("FinishedContainersPulledByAM", "RMNode", "FINISHED_CONTAINERS_PULLED_BY_AM"),
    ],
)
def test_an_event_is_shown_under_hadoops_name(name: str, lifecycle: str, shown: str) -> None:
    assert event_name(type(name, (), {}), lifecycle) == shown
