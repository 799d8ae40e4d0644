"""A sheet of questions to print, and the answers of a class; an unanswered question is not right."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest
from typer.testing import CliRunner

from yarn.errors import InvalidArgumentException
from yarnling.cli.app import app
from yarnling.lessons.quiz.paper import questions_of, read_answers
from yarnling.lessons.quiz.topics import find_topic


def invoke(*arguments: str, given: str = "") -> tuple[int, str]:
    result = CliRunner().invoke(app, ["quiz", *arguments], input=given)
    return result.exit_code, result.output


def test_an_unanswered_question_is_not_right() -> None:
    status, output = invoke("submit", "--seed", "7")
    assert (status, output.splitlines()[-1]) == (1, "Not answered.")


def test_a_sheet_has_the_questions_first_and_the_answers_on_a_page_of_their_own(tmp_path: Path) -> None:
    page = tmp_path / "sheet.html"
    assert invoke("submit", "--paper", "2", "--seed", "7", "-o", str(page))[0] == 0
    sheet, answers = unescape(page.read_text()).split('<section class="answers">')
    for question in questions_of(find_topic("submit"), 2, 7):
        assert question.text in sheet
        assert f"{question.answer}</b>" not in sheet
        assert f"{question.answer}</b>" in answers
    assert "break-before: page" in sheet


def test_the_answers_of_a_class_are_marked(tmp_path: Path) -> None:
    first, second = (question.answer for question in questions_of(find_topic("submit"), 2, 7))
    answers = tmp_path / "class.csv"
    answers.write_text(f'Ann,{first},{second}\nBob,"{first}",\n\nCleo,1 MB\n')
    paper = ("submit", "--paper", "2", "--seed", "7", "--check", str(answers))
    marks = json.loads(invoke(*paper, "--json")[1])
    assert [(one["name"], one["right"], one["answers"]) for one in marks] == [
        ("Ann", 2, [True, True]),
        ("Bob", 1, [True, False]),
        ("Cleo", 0, [False, False]),
    ]
    status, output = invoke(*paper)
    assert status == 0
    assert f"1. {first}: 2 of 3 right" in output


@pytest.mark.parametrize("text", ["Name,1,2\nAnn,5,6\n", "Ann;5;6\n", " name ;1;2\n\nAnn;5;6\n"])
def test_a_heading_is_skipped_and_semicolons_separate_where_there_is_no_comma(tmp_path: Path, text: str) -> None:
    path = tmp_path / "class.csv"
    path.write_text(text)
    assert read_answers(path, 2) == [("Ann", ["5", "6"])]


def test_a_sheet_needs_a_topic(tmp_path: Path) -> None:
    status, output = invoke("--paper", "2", "-o", str(tmp_path / "sheet.html"))
    assert (status, "name the topic of the sheet" in output) == (2, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no answers"),
        ("Ann", "no answers"),
        ("Ann,1,2,3\n,1\n", "row 1 has 3 answers, at most 2"),
        ("Ann,1,2,3\n,1\n", "row 2 has no name"),
        ("Name,1,2\n\nAnn,1,2,3\n", "row 3 has 3 answers"),
        ('Ann,"1', "not a CSV file"),
    ],
)
def test_invalid_answers_are_refused_with_their_row(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "class.csv"
    path.write_text(text)
    with pytest.raises(InvalidArgumentException) as error:
        read_answers(path, 2)
    assert message in error.value.message
