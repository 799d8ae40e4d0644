"""The quiz: the answer of each question is what the cores do, and agrees with the rule that the topic teaches."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from yarn.errors import InvalidArgumentException
from yarnling.cli.app import app
from yarnling.lessons.quiz.question import QuizQuestion, Topic, normalized
from yarnling.lessons.quiz.topics import TOPICS, find_topic
from yarnling.lessons.scene.story import Rows, Text

SEEDS = 50
each_topic = pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)


# The rule of each topic, from what the reader sees: independent of the run that gave the answer


def _text(question: QuizQuestion) -> str:
    return " ".join(part.text for part in question.state if isinstance(part, Text)) + " " + question.text


def _rows(question: QuizQuestion) -> list[list[str]]:
    return [list(row) for part in question.state if isinstance(part, Rows) for row in part.rows]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"(?<![\w.])\d+(?![\w.]*\d)", text)]


def _mb(cell: str) -> int:
    return int(cell.removesuffix(" MB"))


def _found(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found is not None, (pattern, text)
    return int(found[1])


def _register(question: QuizQuestion) -> str:
    minimum_mb = _found(r"allocation-mb is (\d+)", _text(question))
    return str(sum(_mb(size) for _, size in _rows(question) if _mb(size) >= minimum_mb))


def _heartbeat(question: QuizQuestion) -> str:
    last, sent = (
        _found(r"had the response id (\d+)", _text(question)),
        _found(r"with response id (\d+)", _text(question)),
    )
    return {0: str(last + 1), 1: str(last)}.get(last - sent, "resync")


def _lost(question: QuizQuestion) -> str:
    expiry_s = _found(r"interval is (\d+) s", _text(question))
    last = re.search(r"heartbeat of n2 arrived at ([\d.]+) s", _text(question))
    assert last is not None
    looks = [float(choice.removesuffix(" s")) for choice in question.choices]
    return f"{min(look for look in looks if look - float(last[1]) > expiry_s):g}"


def _submit(question: QuizQuestion) -> str:
    step_mb = _found(r"allocation-mb is (\d+)", _text(question))
    wanted_mb = _found(r"AM requests (\d+) MB", _text(question))
    return str(-(-wanted_mb // step_mb) * step_mb)


def _headroom(question: QuizQuestion) -> str:
    text, used = _text(question), {row[0]: _mb(row[2]) for row in _rows(question)}
    guarantee_mb, maximum_mb = _found(r"guaranteed (\d+) MB", text), _found(r"maximum is (\d+) MB", text)
    factor, nodes = _found(r"factor (\d+)", text), _found(r"^(\d+) nodes", text)
    base_mb = guarantee_mb if used["ann"] < guarantee_mb else used["ann"] + 1024
    limit_mb = -(-min(base_mb, factor * guarantee_mb) // 1024) * 1024
    lefts = (limit_mb - used["ann"], maximum_mb - used["ann"], nodes * 8192 - sum(used.values()))
    return str(max(0, min(lefts)) // 1024 * 1024)


def _placement(question: QuizQuestion) -> str:
    big_mb = _found(r"one container of (\d+) MB", _text(question))
    ages = {row[0]: float(row[2].split()[0]) for row in _rows(question)}
    fits = [row[0] for row in _rows(question) if _mb(row[1]) >= big_mb]
    return max(fits, key=lambda name: ages[name])


def _user_limit(question: QuizQuestion) -> str:
    text = _text(question)
    nodes, guarantee_mb = _found(r"^(\d+) nodes", text), _found(r"guaranteed (\d+) MB", text)
    limit_mb = -(-_found(r"factor (\d+)", text) * guarantee_mb // 1024) * 1024
    return str(min(nodes * 8192, limit_mb + 1024))


def _queue(question: QuizQuestion) -> str:
    return min(_rows(question), key=lambda row: _mb(row[1]) / _mb(row[2]))[0]


def _preemption(question: QuizQuestion) -> str:
    return max(_rows(question), key=lambda row: int(row[2].removesuffix(" s")))[0]


def _failure(question: QuizQuestion) -> str:
    text = _text(question)
    bounds = [_found(r"am.max-attempts is (\d+)", text)]
    bounds += [int(number) for number in re.findall(r"max-app-attempts (\d+)", text)]
    return "failed" if _found(r"killed (\d+) time", text) >= min(bounds) else "running"


RULES: dict[str, Callable[[QuizQuestion], str]] = {
    "register": _register,
    "heartbeat": _heartbeat,
    "lost": _lost,
    "submit": _submit,
    "headroom": _headroom,
    "placement": _placement,
    "user-limit": _user_limit,
    "queue": _queue,
    "preemption": _preemption,
    "failure": _failure,
}


def _check(topic: Topic, seed: int) -> None:
    question = topic.question(seed)
    assert normalized(RULES[topic.name](question)) == normalized(question.answer), (topic.name, seed, question)
    assert not question.choices or question.choices.count(question.answer) == 1
    assert question.is_right(question.answer)
    assert question.why


@pytest.mark.slow
@each_topic
def test_the_answer_follows_from_what_the_reader_sees(topic: Topic) -> None:
    for seed in range(4):
        _check(topic, seed)


@pytest.mark.soak
@each_topic
def test_the_answer_follows_in_fifty_states(topic: Topic) -> None:
    for seed in range(SEEDS):
        _check(topic, seed)


@pytest.mark.slow
@each_topic
def test_a_seed_is_always_the_same_question_and_others_differ(topic: Topic) -> None:
    assert topic.question(1) == topic.question(1)
    assert len({topic.question(seed).answer for seed in range(8)}) > 1


def test_every_topic_has_a_lesson() -> None:
    assert all(1 <= topic.chapter <= 9 for topic in TOPICS)
    assert set(RULES) == {topic.name for topic in TOPICS}


@pytest.mark.parametrize("given", ["2048 MB", "2048", " 2048mb "])
def test_an_answer_may_leave_out_its_unit(given: str) -> None:
    question = QuizQuestion((), "?", "2048 MB", ("because",))
    assert question.is_right(given)
    assert not question.is_right("204")


@pytest.mark.parametrize("given", ["a", "root.a", "queue A"])
def test_a_queue_may_be_given_by_its_name_or_its_path(given: str) -> None:
    assert QuizQuestion((), "?", "a", ("because",)).is_right(given)


def test_the_command_judges_an_answer() -> None:
    question = find_topic("placement").question(7)
    right = CliRunner().invoke(app, ["quiz", "placement", "--seed", "7", "--answer", question.answer])
    assert (right.exit_code, f"Right: {question.answer}." in right.output) == (0, True)
    wrong = CliRunner().invoke(app, ["quiz", "placement", "--seed", "7", "--answer", "n99"])
    assert (wrong.exit_code, f"Wrong: not n99, but {question.answer}." in wrong.output) == (1, True)
    assert "yarnling lesson 4" in wrong.output


def test_the_answer_is_read_from_standard_input() -> None:
    question = find_topic("submit").question(3)
    ran = CliRunner().invoke(app, ["quiz", "submit", "--seed", "3"], input=f"{question.answer}\n")
    assert (ran.exit_code, "Right:" in ran.output) == (0, True)


def test_without_an_answer_nothing_is_given_away() -> None:
    for arguments, status in (([], 1), (["--json"], 0)):
        ran = CliRunner().invoke(app, ["quiz", "submit", "--seed", "3", *arguments], input="")
        assert ran.exit_code == status
        assert find_topic("submit").question(3).answer not in ran.output


def test_json_has_the_judgement() -> None:
    ran = CliRunner().invoke(app, ["quiz", "queue", "--seed", "2", "--answer", "zzz", "--json"])
    plain = json.loads(ran.output)
    assert (ran.exit_code, plain["right"], plain["answer"]) == (1, False, find_topic("queue").question(2).answer)


def test_an_unknown_topic_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidArgumentException, match="choose one of register, heartbeat"):
        find_topic("nothing")
    assert "placement" in CliRunner().invoke(app, ["quiz"]).output
