"""The parts of lessons: options, settings of queues, labels and samples."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from yarn.errors import InvalidArgumentException
from yarn.resource import Resource
from yarnling.cli.lesson import chosen, show_list
from yarnling.lessons.catalogue import find_lesson
from yarnling.lessons.chapters import users
from yarnling.lessons.page import command, page, predict_line
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Number, WordChoice
from yarnling.lessons.scene.samples import Samples, used_gb
from yarnling.lessons.scene.settings import preemption, queues
from yarnling.lessons.scene.stage import Stage
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Mark

POLICY = WordChoice("policy", ("fifo", "fair"), "ordering-policy of the queue")
FACTOR = Number("factor", 1.0, 0.1, 100.0, "user-limit-factor", (1.0, 0.25))


def _play(policy: str, factor: float = 1.0) -> Story:
    return Story(("RM",), (), Question("Who is served?", f"{policy} {factor}", ()), {})


LESSON = Lesson(99, "two", "Two options", (), {}, POLICY, lambda *_: Stage(), _play, (), (FACTOR,))


def test_a_lesson_may_have_a_word_and_a_number() -> None:
    assert LESSON.defaults == ("fifo", 1.0)
    assert LESSON.settings == (("fifo", 1.0), ("fair", 1.0), ("fifo", 0.25))
    assert chosen(LESSON, []) == ("fifo", 1.0)
    assert chosen(LESSON, ["--factor", "0.5", "--policy=fair"]) == ("fair", 0.5)


def test_a_command_names_what_differs_from_the_defaults() -> None:
    assert command(LESSON, ("fifo", 1.0)) == "yarnling lesson 99 --policy fifo"
    assert command(LESSON, ("fifo", 0.25)) == "yarnling lesson 99 --factor 0.25"
    assert command(LESSON, ("fair", 0.25)) == "yarnling lesson 99 --policy fair --factor 0.25"
    assert predict_line(LESSON, ("fair", 0.25)) == (
        "Now predict the answer for --factor 0.25: yarnling lesson 99 --factor 0.25 --answer"
    )


def test_a_page_describes_each_option_and_answers_each_setting() -> None:
    text = page(LESSON)
    assert "`--policy VALUE` (fifo or fair, default fifo): ordering-policy of the queue." in text
    assert "`--factor VALUE` (0.1 to 100.0, default 1.0): user-limit-factor. Predict" in text
    assert re.findall(r"\*\*`(.*?)`", text) == ["--policy fifo", "--policy fair", "--factor 0.25"]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--policy", "fare"], "--policy 'fare': did you mean fair? give fifo or fair"),
        (["--factor", "0.01"], "--factor 0.01 is out of bounds: give a number from 0.1 to 100.0"),
        (["--factor", "nan"], "--factor nan is out of bounds"),
        (["--policy", "fair", "--policy", "fifo"], "each at most once, are --policy VALUE, --factor VALUE"),
        (["--speed", "2"], "lesson 99 does not take '--speed 2'"),
    ],
)
def test_a_wrong_option_is_refused_with_what_is_possible(arguments: list[str], fault: str) -> None:
    with pytest.raises(InvalidArgumentException, match=re.escape(fault)):
        chosen(LESSON, arguments)


def test_the_list_has_a_line_for_each_option(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(import_module("yarnling.cli.lesson"), "LESSONS", (LESSON,))
    show_list(as_json=False)
    listed = capsys.readouterr().out
    assert "yarnling lesson 99 [--policy fifo|fair]  ordering-policy" in listed
    assert "yarnling lesson 99 [--factor 0.1..100.0]  user-limit-factor" in listed
    show_list(as_json=True)
    assert '"choices": [' in capsys.readouterr().out


def test_queues_are_given_by_their_paths() -> None:
    assert queues({"a": "60", "b": {"capacity": "40", "priority": "2"}, "b.c": "100"}) == {
        "yarn.scheduler.capacity.root.queues": "a,b",
        "yarn.scheduler.capacity.root.b.queues": "c",
        "yarn.scheduler.capacity.root.a.capacity": "60",
        "yarn.scheduler.capacity.root.b.capacity": "40",
        "yarn.scheduler.capacity.root.b.priority": "2",
        "yarn.scheduler.capacity.root.b.c.capacity": "100",
    }


def test_preemption_is_enabled_with_the_properties_of_its_policy() -> None:
    settings = preemption({"max_wait_before_kill": "1000"})
    assert settings["yarn.resourcemanager.scheduler.monitor.enable"] == "true"
    assert settings["yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill"] == "1000"


def test_a_request_with_a_label_is_placed_in_its_partition() -> None:
    wide = {"capacity": "100", "accessible-node-labels": "gpu", "accessible-node-labels.gpu.capacity": "100"}
    root = {"yarn.scheduler.capacity.root.accessible-node-labels.gpu.capacity": "100"}
    labels = {"yarn.node-labels.enabled": "true"}
    stage = Stage(nodes=3, settings={**labels, **root, **queues({"a": wide})})
    stage.label("gpu", 3)
    stage.submit(3.0, "ann", (Wanted(2, Resource(1024, 1), label="gpu"),), queue="a")
    stage.run(12)
    assert {each.node_id for each in stage.containers("ann")} == {stage.node_id(3)}
    assert stage.queue("a", "gpu").used.memory_mb == 2048


def test_sampling_does_not_change_the_run() -> None:
    plain, sampled = users.set_up(1), users.set_up(1)
    plain.run(20)
    samples = Samples(sampled, {"ann": lambda: used_gb(sampled, "ann")})
    samples.run(20)
    assert sampled.account.told == plain.account.told
    drawn = samples.curves("Memory", "GB", bounds={"ann": 8.0}, marks=(Mark(2000, "ann comes"),))
    assert drawn.times_ms == tuple(range(0, 21_000, 1000))
    assert drawn.curves[0].values[-1] == used_gb(plain, "ann") == 9.0
    assert find_lesson("users").play(1).measured["alone_mb"] == 9216
