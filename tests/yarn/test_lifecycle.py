"""Lifecycle tables and the machines that follow them."""

from __future__ import annotations

from enum import Enum, auto

import pytest

from yarn.errors import InternalError
from yarn.lifecycle import HISTORY_MAX, IllegalTransition, Lifecycle, Machine, Row, complement, ignored


class Door(Enum):
    OPEN = auto()
    SHUT = auto()
    LOCKED = auto()
    GONE = auto()


class Push(Enum):
    CLOSE = auto()
    OPEN = auto()
    LOCK = auto()
    KNOCK = auto()
    REMOVE = auto()


class Hinge:
    """A subject that remembers what its actions saw."""

    def __init__(self) -> None:
        self.seen: list[tuple[Door, object]] = []
        self.jams = False
        self.machine: Machine[Door, Push] = Machine(TABLE)

    def __str__(self) -> str:
        return "door 7"


def note(hinge: Hinge, detail: object) -> None:
    hinge.seen.append((hinge.machine.state, detail))


def choose(_: Hinge, key: object) -> Door:
    return Door.LOCKED if key == "right key" else Door.SHUT


def stray(_: Hinge, __: object) -> Door:
    return Door.GONE


TABLE: Lifecycle[Door, Push] = Lifecycle(
    "Door",
    initial=Door.OPEN,
    rows=[
        Row(Door.OPEN, Push.CLOSE, Door.SHUT, note, "somebody leaves"),
        Row(Door.OPEN, Push.REMOVE, Door.GONE),
        Row(Door.SHUT, Push.OPEN, Door.OPEN, note, "somebody comes"),
        Row(Door.SHUT, Push.LOCK, (Door.LOCKED, Door.SHUT), choose, "with the right key"),
        Row(Door.SHUT, Push.KNOCK, Door.SHUT, note),
        *ignored(Door.LOCKED, (Push.KNOCK, Push.OPEN), "nobody hears"),
    ],
)


def test_an_action_runs_before_the_state_changes() -> None:
    hinge = Hinge()
    assert hinge.machine.handle(hinge, Push.CLOSE, "draught", 5) is Door.SHUT
    assert hinge.seen == [(Door.OPEN, "draught")]
    assert hinge.machine.state is Door.SHUT


@pytest.mark.parametrize(("key", "state"), [("right key", Door.LOCKED), ("wrong key", Door.SHUT)])
def test_an_action_chooses_where_the_row_names_several(key: str, state: Door) -> None:
    hinge = Hinge()
    hinge.machine.handle(hinge, Push.CLOSE, None, 1)
    assert hinge.machine.handle(hinge, Push.LOCK, key, 2) is state


def test_ignored_events_change_nothing_and_leave_no_story() -> None:
    hinge = Hinge()
    hinge.machine.handle(hinge, Push.CLOSE, None, 1)
    hinge.machine.handle(hinge, Push.LOCK, "right key", 2)
    story = hinge.machine.story()
    assert hinge.machine.handle(hinge, Push.KNOCK, None, 3) is Door.LOCKED
    assert hinge.machine.story() == story


@pytest.mark.parametrize(("state", "event"), complement(TABLE), ids=lambda member: member.name)
def test_an_illegal_event_raises_and_changes_nothing(state: Door, event: Push) -> None:
    hinge = Hinge()
    hinge.machine.state = state
    with pytest.raises(IllegalTransition, match=f"Door door 7: {event.name} is illegal in {state.name}"):
        hinge.machine.handle(hinge, event, None, 1)
    assert hinge.machine.state is state
    assert hinge.seen == []
    assert hinge.machine.history == []


def test_the_complement_and_the_rows_are_all_pairs() -> None:
    assert len(complement(TABLE)) + len(TABLE.rows) == len(Door) * len(Push)


def test_an_error_tells_the_story() -> None:
    hinge = Hinge()
    hinge.machine.handle(hinge, Push.CLOSE, None, 10)
    with pytest.raises(IllegalTransition, match="10: OPEN --CLOSE--> SHUT"):
        hinge.machine.handle(hinge, Push.REMOVE, None, 11)


def test_the_story_is_bounded() -> None:
    hinge = Hinge()
    for at_ms in range(2 * HISTORY_MAX):
        hinge.machine.handle(hinge, Push.CLOSE if at_ms % 2 == 0 else Push.OPEN, None, at_ms)
    assert [transition.at_ms for transition in hinge.machine.history] == list(range(HISTORY_MAX, 2 * HISTORY_MAX))


def test_a_target_that_the_row_does_not_name_is_our_bug() -> None:
    table = Lifecycle("Door", Door.OPEN, [Row(Door.OPEN, Push.LOCK, (Door.OPEN, Door.LOCKED), stray)])
    machine = Machine(table)
    with pytest.raises(InternalError, match="OPEN --LOCK--> GONE"):
        machine.handle(Hinge(), Push.LOCK, None, 1)


def test_two_rows_for_one_event_are_refused() -> None:
    rows = [Row(Door.OPEN, Push.CLOSE, Door.SHUT), Row(Door.OPEN, Push.CLOSE, Door.LOCKED)]
    with pytest.raises(InternalError, match="two rows for OPEN --CLOSE-->"):
        Lifecycle("Door", Door.OPEN, rows)


def test_several_targets_without_an_action_are_refused() -> None:
    with pytest.raises(InternalError, match="nobody to choose"):
        Lifecycle("Door", Door.OPEN, [Row(Door.OPEN, Push.CLOSE, (Door.SHUT, Door.LOCKED))])


def test_final_states_are_those_without_a_way_out() -> None:
    assert [state for state in Door if TABLE.is_final(state)] == [Door.LOCKED, Door.GONE]


def test_the_diagram_joins_events_of_one_edge_and_leaves_out_ignored_ones() -> None:
    diagram = TABLE.mermaid()
    assert diagram.startswith("stateDiagram-v2\n    [*] --> OPEN\n")
    assert "    SHUT --> LOCKED: LOCK\n" in diagram
    assert "    SHUT --> SHUT: LOCK, KNOCK\n" in diagram
    assert "LOCKED --> LOCKED" not in diagram
    assert diagram.endswith("    LOCKED --> [*]\n    GONE --> [*]\n")
