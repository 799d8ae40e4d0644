"""Each lesson runs, its pages are current, its number has an effect, and its answer is what the run measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from yarn.errors import InvalidArgumentException
from yarnling.cli.app import app
from yarnling.lessons.catalogue import LESSONS, find_lesson
from yarnling.lessons.page import INDEX, file_name, index, output, page
from yarnling.lessons.scene.lesson import Lesson, Number, Setting
from yarnling.lessons.scene.story import Rows
from yarnling.simulation.account import Told

DOCS = Path(__file__).resolve().parents[3] / "docs" / "lessons"
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


def test_the_lessons_are_in_the_order_of_their_numbers() -> None:
    numbers = [lesson.number for lesson in LESSONS]
    assert numbers == sorted(set(numbers))
    assert len({lesson.name for lesson in LESSONS}) == len(LESSONS)


@pytest.mark.slow
@pytest.mark.unmeasured
@each_lesson
def test_the_page_is_what_the_lesson_prints(lesson: Lesson) -> None:
    """Repair: scripts/lessons."""
    assert (DOCS / file_name(lesson)).read_text() == page(lesson)


def test_the_index_is_current_and_names_every_page() -> None:
    assert (DOCS / INDEX).read_text() == index()
    assert all(file_name(lesson) in index() for lesson in LESSONS)


def test_the_help_of_a_lesson_has_its_own_options() -> None:
    ran = CliRunner().invoke(app, ["lesson", "10", "--help"])
    assert ran.exit_code == 0
    assert "yarnling lesson 10 [--maximum-capacity " in ran.output
    for general in (["lesson", "--help"], ["lesson", "99", "--help"]):
        ran = CliRunner().invoke(app, general)
        assert ran.exit_code == 0
        assert "[--" not in ran.output


@pytest.mark.slow
@each_lesson
def test_a_lesson_is_the_same_in_every_run(lesson: Lesson) -> None:
    assert lesson.play(*lesson.defaults) == lesson.play(*lesson.defaults)


@pytest.mark.slow
@pytest.mark.unmeasured
@each_lesson
def test_each_option_changes_the_answer(lesson: Lesson) -> None:
    answers = {setting: lesson.play(*setting).question.answer for setting in lesson.settings}
    for place in range(len(lesson.options)):
        varied = {
            answer for setting, answer in answers.items() if _others(setting, place) == _others(lesson.defaults, place)
        }
        assert len(varied) > 1


def _others(setting: Setting, place: int) -> Setting:
    return setting[:place] + setting[place + 1 :]


@pytest.mark.slow
@each_lesson
def test_the_bounds_of_numbers_can_be_run(lesson: Lesson) -> None:
    for place, option in enumerate(lesson.options):
        for value in (option.minimum, option.maximum) if isinstance(option, Number) else ():
            assert lesson.play(*lesson.defaults[:place], value, *lesson.defaults[place + 1 :]).question.answer


@each_lesson
def test_the_command_prints_the_story(lesson: Lesson) -> None:
    ran = CliRunner().invoke(app, ["lesson", str(lesson.number), "--answer"])
    assert (ran.exit_code, ran.output) == (0, output(lesson, lesson.defaults, answered=True))


def test_the_answer_is_left_out_unless_it_is_wanted() -> None:
    ran = CliRunner().invoke(app, ["lesson", "1"])
    assert "Question:" in ran.output
    assert "Answer:" not in ran.output
    ran = CliRunner().invoke(app, ["lesson", "1", "--json"])
    assert set(json.loads(ran.output)["question"]) == {"text"}


def test_json_has_the_steps_and_the_measured_figures() -> None:
    ran = CliRunner().invoke(app, ["lesson", "register", "--memory=2048", "--answer", "--json"])
    plain = json.loads(ran.output)
    assert (plain["value"], plain["measured"]) == (2048, {"nodes": 2, "cluster_mb": 4096})
    assert plain["question"]["answer"] == "4096 MB"
    assert {"type": "Change", "subject": "node n1"}.items() <= next(
        part for part in plain["parts"] if part["type"] == "Change"
    ).items()


def test_the_list_names_the_options() -> None:
    listed = CliRunner().invoke(app, ["lesson"]).output
    assert "yarnling lesson 6 [--user-limit-factor 1..10]" in listed


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["0"], "unknown lesson '0'"),
        (["2", "--expiry", "2"], "--expiry 2 is out of bounds: give a whole number from 3 to 600"),
        (["2", "--expiry", "x"], "--expiry 'x' is not a whole number from 3 to 600"),
        (["2", "--memory", "9"], "its option is --expiry VALUE"),
        (["2", "--expiry"], "its option is --expiry VALUE"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_bound(arguments: list[str], fault: str) -> None:
    ran = CliRunner().invoke(app, ["lesson", *arguments])
    assert ran.exit_code != 0
    assert fault in str(ran.exception)


def test_an_unknown_lesson_is_refused() -> None:
    with pytest.raises(InvalidArgumentException, match=r"choose one of 1 \(register\)"):
        find_lesson("ten")


# Claims of the chapters, against the run


def test_a_node_below_the_minimum_allocation_is_shut_down() -> None:
    """ResourceTrackerService.registerNodeManager: SHUTDOWN for a node below the minimum allocation."""
    register = find_lesson("register")
    assert register.play(1024).measured == {"nodes": 2, "cluster_mb": 2048}
    story = register.play(1023)
    assert story.measured == {"nodes": 0, "cluster_mb": 0}
    assert any(isinstance(part, Told) and part.rpc and "SHUTDOWN" in part.text for part in story.parts)


@pytest.mark.parametrize("expiry_s", [3, 10, 60])
def test_a_silent_node_is_lost_between_one_interval_and_one_and_a_third(expiry_s: int) -> None:
    """AbstractLivelinessMonitor: it looks every third of the interval."""
    measured = find_lesson("heartbeat").play(expiry_s).measured
    silent_ms = int(measured["lost_ms"]) - int(measured["last_heartbeat_ms"])
    assert 1000 * expiry_s < silent_ms <= 1000 * expiry_s * 4 / 3


def test_the_headroom_is_what_is_free() -> None:
    allocate = find_lesson("allocate")
    assert [allocate.play(count).measured["headroom_mb"] for count in (6, 15, 20)] == [16384 - 7 * 1024, 0, 0]
    assert allocate.play(20).measured["containers"] == 15


def test_the_user_limit_factor_bounds_a_user_who_is_alone() -> None:
    """AbstractLeafQueue.canAssignToUser: at the limit one more container is allowed."""
    users = find_lesson("users")
    assert [users.play(factor).measured["alone_mb"] for factor in (1, 2, 3)] == [9216, 16384, 16384]


def test_a_request_is_rounded_up() -> None:
    submit = find_lesson("submit")
    assert [submit.play(mb).measured["am_mb"] for mb in (1, 1024, 1500, 4097)] == [1024, 1024, 2048, 5120]


def test_preemption_restores_the_guarantee_and_no_more() -> None:
    measured = find_lesson("preemption").play(10).measured
    assert (measured["a_mb"], measured["b_mb"], measured["preempted"]) == (8192, 8192, 8)


def test_a_longer_delay_finds_the_local_node() -> None:
    locality = find_lesson("locality")
    assert [locality.play(delay).measured["node"] for delay in (40, 0)] == ["n1", "n5"]


@pytest.mark.parametrize(("attempts", "made", "state"), [(1, 1, "FAILED"), (2, 2, "FAILED"), (3, 3, "RUNNING")])
def test_an_am_is_started_again_as_often_as_is_allowed(attempts: int, made: int, state: str) -> None:
    measured = find_lesson("failure").play(attempts).measured
    assert (measured["attempts"], measured["state"], measured["kept"]) == (made, state, 1)


def test_a_reservation_is_made_when_the_cluster_has_enough_but_no_node() -> None:
    """The queue's maximum counts reservations: at first bob's container would have exceeded it."""
    tables = [part for part in find_lesson("reservation").play(5120).parts if isinstance(part, Rows)]
    free_mb = [int(row[2].removesuffix(" MB")) for row in tables[1].rows]
    assert sum(free_mb) >= 5120 > max(free_mb)
    assert [row[3] for row in tables[1].rows] == ["", "bob-c2"]


def test_a_reservation_becomes_a_container_on_the_same_node() -> None:
    parts = find_lesson("reservation").play(5120).parts
    texts = [part.text for part in parts if isinstance(part, Told) and part.is_decision and "bob-c" in part.text]
    assert [text.split(":")[0] for text in texts] == [
        "reserves bob-c2 (5120 MB) on n2",
        "allocates bob-c2 (5120 MB) on n2",
    ]


def test_the_states_of_an_application_are_in_order() -> None:
    parts = find_lesson("submit").play(1024).parts
    changes = [part.change for part in parts if isinstance(part, Told) and part.change is not None]
    states = [change.target for change in changes if change.kind == "RMApp"]
    assert states == ["NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING", "FINAL_SAVING", "FINISHING", "FINISHED"]
