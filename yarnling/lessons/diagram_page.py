"""A lesson as one HTML page: its text, its space-time diagram with every field of every message, and its question."""

from __future__ import annotations

import json

from msgspec.structs import replace

from yarn.ids import ApplicationId, ContainerId
from yarnling.faults.history import History
from yarnling.lessons.drawing import drawn
from yarnling.lessons.page import command, predict_line
from yarnling.lessons.scene.lesson import Lesson, Setting
from yarnling.lessons.scene.story import Story
from yarnling.report.curves import Bars, Curves
from yarnling.report.page import Picture, has_matplotlib
from yarnling.report.space_time_page import TextSection, html_of
from yarnling.run.names import Names, am
from yarnling.run.reader import run_of
from yarnling.run.records import Lifeline, RecordedRun, Role
from yarnling.simulation.engine import START_MS
from yarnling.simulation.trace_file import RunTrace

_SUBMISSION = "submitApplication"


def diagram_page(lesson: Lesson, setting: Setting) -> str:
    """Run the lesson, and draw its diagram, which shows the same times as the text, and its pictures."""
    lines: list[str] = []
    trace = RunTrace(lines.append, f"{lesson.number}. {lesson.title}")
    story = lesson.play(*setting, trace=trace)
    trace.end(History())
    timeline = run_of(map(json.loads, lines))
    names = _names(timeline)
    lifelines = tuple(replace(one, title=_title(one, names)) for one in timeline.lifelines)
    timeline = replace(timeline, lifelines=lifelines, from_ms=START_MS)
    return html_of(timeline, _sections(lesson, setting, story), _pictures(story), names)


def _pictures(story: Story) -> list[Picture]:
    """The pictures of the story; without matplotlib only its words have them."""
    if not has_matplotlib():
        return []
    from yarnling.report.curve_charts import bars_picture, curves_picture

    found = [part for part in story.parts if isinstance(part, Curves | Bars)]
    return [
        curves_picture(part, number) if isinstance(part, Curves) else bars_picture(part, number)
        for number, part in enumerate(found, 1)
    ]


def _names(timeline: RecordedRun) -> Names:
    """The names that the lesson's words have for applications and containers."""
    names = Names()
    for call in timeline.calls:
        if call.rpc == _SUBMISSION and isinstance(call.request, dict):
            names.applications[ApplicationId.parse(str(call.request["application_id"]))] = str(call.request["name"])
    masters = [one.name for one in timeline.lifelines if one.role is Role.AM]
    names.am_containers = dict.fromkeys(map(ContainerId.parse, masters))
    return names


def _title(line: Lifeline, names: Names) -> str:
    """The name of a participant in the lesson's text."""
    match line.role:
        case Role.NM:
            return line.title.lower().replace("nm-", "NM n")
        case Role.AM:
            attempt_id = ContainerId.parse(line.name).attempt_id
            later = f", attempt {attempt_id.attempt}" if attempt_id.attempt > 1 else ""
            return f"{am(names.application(attempt_id.application_id))}{later}"
        case _:
            return line.title


def _sections(lesson: Lesson, setting: Setting, story: Story) -> list[TextSection]:
    question, options = story.question, zip(lesson.options, setting, strict=True)
    changes = [f"--{option.name} {value}: {option.meaning}." for option, value in options]
    change = " ".join((*changes, predict_line(lesson, setting)))
    return [
        TextSection("What it is about", lesson.idea, rows=tuple(lesson.terms.items()), is_open=True),
        TextSection("What happens, in words", (), plain="\n".join(line.text for line in drawn(story)).strip("\n")),
        TextSection("Question", (question.text, change), is_open=True),
        TextSection(
            "Answer", (question.answer, *question.why, f"The same in a terminal: {command(lesson, setting)} --answer")
        ),
    ]
