"""Each lesson as a page: the words, the question and the diagram of the same run, in one file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from yarnling.cli.app import app
from yarnling.lessons.catalogue import LESSONS, find_lesson
from yarnling.lessons.diagram_page import diagram_page
from yarnling.lessons.scene.lesson import Lesson
from yarnling.simulation.account import Told
from yarnling.simulation.trace_file import RunTrace

each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


def data_of(page: str) -> dict[str, Any]:
    """The data of the diagram."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.mark.slow
@each_lesson
def test_the_page_has_the_words_the_question_and_the_diagram(lesson: Lesson, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    ran = CliRunner().invoke(app, ["lesson", str(lesson.number), "-o", str(path)])
    assert ran.exit_code == 0, ran.output
    page, story = path.read_text(), lesson.play(*lesson.defaults)
    text = page.replace("&#39;", "'").replace("&gt;", ">").replace("&lt;", "<").replace("&#34;", '"')
    assert lesson.title in text
    assert story.question.text in text
    assert f"<p>{story.question.answer}</p>" in text
    assert not re.search(r'(?:src|href)="(?!#)', page), "it needs no network"
    titles = {one["title"] for one in data_of(page)["lifelines"]}
    assert {name for name in story.participants if name != "client"} <= titles


def test_the_times_of_the_diagram_are_those_of_the_words() -> None:
    lesson = find_lesson("register")
    first = next(part for part in lesson.play(8192).parts if isinstance(part, Told) and part.rpc)
    data = data_of(diagram_page(lesson, (8192,)))
    sent, delay = data["messages"][3][0], data["messages"][4][0]
    assert sent + delay == first.at_ms


def test_the_diagram_has_the_names_of_the_words() -> None:
    data = data_of(diagram_page(find_lesson("preemption"), (12,)))
    assert "allocated ann-am on NM n1: 1024 MB, 1 vcores for root.a" in data["texts"]
    assert "ann, attempt 1 ALLOCATED \u2192 LAUNCHED" in data["texts"]
    assert not [text for text in data["texts"] if re.search(r"\bc\d{4}_|\bapp \d{4}|\bn0000", text)]
    assert list(data["applications"].values()) == ["ann", "bob"]
    assert data["moments"][data["opening"]][1:3] == ["placed", "first container of ann: ann-am on NM n1"]


def test_attempts_have_lifelines_of_their_own() -> None:
    titles = [one["title"] for one in data_of(diagram_page(find_lesson("failure"), (2,)))["lifelines"]]
    assert titles == ["client", "AM ann", "AM ann, attempt 2", "RM", "NM n1", "NM n2"]


@pytest.mark.slow
@each_lesson
def test_drawing_does_not_change_the_run(lesson: Lesson) -> None:
    setting = lesson.defaults
    assert lesson.play(*setting) == lesson.play(*setting, trace=RunTrace(lambda _: None, "title"))
