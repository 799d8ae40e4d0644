"""An ApplicationMaster of one's own: its callbacks and calls, its file, its journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from am.core.actions import Finish, Launch, Leave, ReleaseContainer, RequestContainer
from am.core.events import (
    AllocatedContainer,
    ContainersAllocated,
    ContainersCompleted,
    ContainerStarted,
    ContainerStartFailed,
    HeartbeatDone,
    Registered,
    ShutdownOrdered,
)
from am.programs.custom.core import ACTIONS_MAX, MasterMistake, TaskMaster, TaskMasterApplication
from am.programs.custom.journal import JournalFile, read_journal
from am.programs.custom.source import load_master, odd_methods
from yarn.containers import Container, ContainerLaunchContext, ContainerStatus
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.resource import Resource
from yarn.states import ContainerState, FinalApplicationStatus

SIZE = Resource(128, 1)
ATTEMPT = ApplicationAttemptId(ApplicationId(1, 1), 1)
C2, C3 = (ContainerId(ATTEMPT, number) for number in (2, 3))
MINE = "from am.programs.custom.core import TaskMaster\nclass Mine(TaskMaster):\n"
REGISTERED = Registered(Resource(1024, 8), "root.default")


class Confirmed:
    """A journal in memory."""

    def __init__(self, *tasks: int) -> None:
        self.tasks = tasks
        self.lines: list[object] = []

    def confirmed(self) -> frozenset[int]:
        return frozenset(self.tasks)

    def confirm(self, task: int, *, was_known: bool) -> None:
        self.lines.append((task, was_known))

    def finish(self, held: Sequence[ContainerId]) -> None:
        self.lines.append(tuple(held))


class Plain(TaskMaster):
    """Runs task 1 in each container that it gets, and notes its callbacks."""

    told: list[object]

    def registered(self) -> None:
        self.told = []
        self.request()

    def allocated(self, container: ContainerId) -> None:
        self.start(container, 1)

    def started(self, container: ContainerId) -> None:
        self.told.append((container, self.host_of(container)))

    def start_failed(self, container: ContainerId, reason: str) -> None:
        self.told.append(reason)
        self.release(container)

    def ended(self, container: ContainerId, exit_status: int, diagnostics: str) -> None:
        self.told.append(exit_status)
        self.release(container)
        self.confirm(1)
        if not self.missing():
            self.finish()


def application(master: type[TaskMaster], tasks: int = 1, journal: Confirmed | None = None) -> TaskMasterApplication:
    context = ContainerLaunchContext(("work",))
    return TaskMasterApplication(master, tasks, SIZE, lambda task: context, journal or Confirmed(), source=__file__)


def given(*containers: ContainerId) -> ContainersAllocated:
    return ContainersAllocated(
        tuple(AllocatedContainer(Container(each, NodeId("n1", 1), "", SIZE, 0), None) for each in containers)
    )


def ended(container: ContainerId, status: int = 0) -> ContainersCompleted:
    return ContainersCompleted((ContainerStatus(container, ContainerState.COMPLETE, status),))


def test_callbacks_become_actions_and_lines_of_the_journal() -> None:
    journal = Confirmed()
    app = application(Plain, 1, journal)
    assert [type(each) for each in app.handle(REGISTERED, 0)] == [RequestContainer]
    (launch, again) = app.handle(given(C2, C3), 1)
    assert isinstance(launch, Launch)
    assert launch.container.id == C2
    assert isinstance(again, Launch)
    assert app.handle(ContainerStarted(C2), 2) == []
    assert app.progress() == 0
    assert app.handle(ended(C2), 3) == [Finish(FinalApplicationStatus.SUCCEEDED)]
    assert journal.lines == [(1, False), (C3,)]
    assert app.progress() == 1
    assert app.heeds_heartbeats
    assert application(Plain).handle(HeartbeatDone(SIZE, 1), 4) == []


def test_a_start_that_failed_is_told_of_a_held_container_only() -> None:
    app = application(Plain)
    app.handle(REGISTERED, 0)
    app.handle(given(C2, C3), 1)
    assert app.handle(ContainerStartFailed(C2, "no answer"), 2) == [ReleaseContainer(C2)]
    assert app.handle(ContainerStartFailed(C2, "no answer"), 3) == []


def test_a_later_attempt_knows_what_is_confirmed() -> None:
    journal = Confirmed(1)
    app = application(Plain, 2, journal)
    app.handle(REGISTERED, 0)
    app.handle(given(C2), 1)
    app.handle(ended(C2), 2)
    assert journal.lines == [(1, True)]


def test_an_attempt_that_the_resource_manager_does_not_know_leaves() -> None:
    assert application(Plain).handle(ShutdownOrdered("unknown"), 0) == [Leave("unknown")]


class StartsTwice(Plain):
    def allocated(self, container: ContainerId) -> None:
        self.start(container, 1)
        self.start(container, 1)


class StartsUnknown(Plain):
    def allocated(self, container: ContainerId) -> None:
        self.start(C3, 1)


class WrongTask(Plain):
    def allocated(self, container: ContainerId) -> None:
        self.start(container, 7)


class SwapsArguments(Plain):
    def allocated(self, container: ContainerId) -> None:
        self.start(1, container)  # type: ignore[arg-type]


class Requests(Plain):
    def allocated(self, container: ContainerId) -> None:
        while True:
            self.request()


class Raises(Plain):
    def allocated(self, container: ContainerId) -> None:
        raise KeyError(5)


@pytest.mark.parametrize(
    ("master", "message"),
    [
        (StartsTwice, "was started before"),
        (StartsUnknown, "is not held"),
        (WrongTask, "there is no task 7 (tasks are 1 to 1)"),
        (SwapsArguments, "start(container, task): a task is a number, not a ContainerId"),
        (Requests, f"more than {ACTIONS_MAX} calls in one callback"),
        (Raises, "KeyError: 5"),
    ],
)
def test_a_mistake_names_the_line(master: type[TaskMaster], message: str) -> None:
    app = application(master)
    app.handle(REGISTERED, 0)
    with pytest.raises(MasterMistake) as mistake:
        app.handle(given(C2), 1)
    assert message in mistake.value.message
    assert "of test_custom.py, in allocated)" in mistake.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "no class of TaskMaster"),
        (
            "from am.programs.custom.core import TaskMaster\nclass A(TaskMaster): pass\nclass B(TaskMaster): pass",
            "several classes (A, B) of TaskMaster",
        ),
        (f"{MINE}    def alocated(self, container): pass", "has no callback 'allocated' (is 'alocated' meant?)"),
        (f"{MINE}    def allocated(self, container): pass", "has no callback 'ended': without it no job can succeed"),
        (
            f"{MINE}    def allocated(self): pass\n    def ended(self, *what): pass",
            "Mine.allocated is called as allocated(self, container): too many positional arguments",
        ),
    ],
)
def test_a_file_without_one_class_that_can_be_called_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "master.py"
    path.write_text(text)
    with pytest.raises(InvalidArgumentException) as error:
        load_master(path)
    assert message in error.value.message


def test_a_method_with_a_name_like_a_callback_is_odd(tmp_path: Path) -> None:
    path = tmp_path / "master.py"
    callbacks = "    def allocated(self, *_): pass\n    def ended(self, *_): pass\n"
    path.write_text(f"{MINE}{callbacks}    def start_fail(self, *_): pass\n    def wait(self): pass\n")
    assert odd_methods(load_master(path)) == ["Mine.start_fail is not a callback (is 'start_failed' meant?)"]
    path.write_text(f"{MINE}{callbacks}    def start_failed(self, *_): pass\n    def start_fail(self, *_): pass\n")
    assert odd_methods(load_master(path)) == []


def test_a_file_is_executed_for_each_attempt(tmp_path: Path) -> None:
    path = tmp_path / "master.py"
    path.write_text(f"{MINE}    def allocated(self, *_): pass\n    def ended(self, *_): pass\n")
    first, second = load_master(path), load_master(path)
    assert first is not second
    assert first.__name__ == second.__name__ == "Mine"
    with pytest.raises(InvalidArgumentException, match="No such file"):
        load_master(tmp_path / "other.py")


def test_the_journal_file_of_two_attempts(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    assert JournalFile(path, 1).confirmed() == frozenset()
    JournalFile(path, 1).confirm(2, was_known=False)
    JournalFile(path, 2).confirm(3, was_known=False)
    JournalFile(path, 2).finish((C2,))
    path.write_bytes(path.read_bytes() + b'{"attempt":3')
    assert JournalFile(path, 3).confirmed() == {2, 3}
    entries = read_journal(path)
    assert [(one.attempt, one.task, one.held) for one in entries] == [(1, 2, ()), (2, 3, ()), (2, 0, (str(C2),))]
