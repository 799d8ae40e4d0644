"""`yarnling lesson`: lists the lessons, or runs one in virtual time and prints its story."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from yarn.errors import InvalidArgumentException
from yarnling.cli.shared.arguments import check_output_file, reading_arguments
from yarnling.cli.shared.output import print_json, terminal
from yarnling.cluster.silent_logs import without_logs
from yarnling.lessons.catalogue import LESSONS, find_lesson
from yarnling.lessons.drawing import WIDTH, drawn, introduction
from yarnling.lessons.page import command, predict_line, question_lines
from yarnling.lessons.scene.lesson import Lesson
from yarnling.lessons.scene.story import Story, plain_part
from yarnling.report.space_time_text import styled


def show_list(*, as_json: bool) -> None:
    """Print all lessons with their commands and the numbers to change."""
    if as_json:
        print_json([_described(lesson) for lesson in LESSONS])
        return
    console = terminal()
    for lesson in LESSONS:
        console.print(Text(f"{lesson.number}. {lesson.title}", "bold"))
        option = lesson.option
        console.print(
            f"   {command(lesson)} [--{option.name} {option.minimum}..{option.maximum}]  {option.meaning}",
            soft_wrap=True,
        )


def show(which: str, arguments: list[str], *, answered: bool, as_json: bool) -> None:
    """Run a lesson. `arguments`: the option of its number, if it is given."""
    with reading_arguments():
        lesson = find_lesson(which)
        value = chosen(lesson, arguments)
    with without_logs():
        story = lesson.play(value)
    if as_json:
        print_json(_plain(lesson, value, story, answered=answered))
        return
    console = terminal()
    console.print(Text(f"{lesson.number}. {lesson.title}", "bold"))
    width = min(console.width, WIDTH)
    for line in [*introduction(lesson, width), *drawn(story, width)]:
        console.print(styled(line), soft_wrap=True)
    console.print()
    for text in question_lines(story.question, answered=answered):
        console.print(Text(text), soft_wrap=not console.is_terminal)
    console.print(predict_line(lesson, value), soft_wrap=not console.is_terminal)
    if console.is_terminal and not answered:
        console.print(Text(f"\n{_repeated(lesson, value)} --answer   prints the answer", "dim"))


def write_page(which: str, arguments: list[str], path: Path) -> None:
    """Run a lesson, and write it with its diagram as a page."""
    from yarnling.cli.timeline import PAGES, write
    from yarnling.lessons.diagram_page import diagram_page

    check_output_file(path, *PAGES)
    with reading_arguments():
        lesson = find_lesson(which)
        value = chosen(lesson, arguments)
    with without_logs():
        text = diagram_page(lesson, value)
    write(path, text)


def chosen(lesson: Lesson, arguments: list[str]) -> int:
    """The lesson's number in `--NAME VALUE` or `--NAME=VALUE`. Raises InvalidArgumentException for anything else."""
    option = lesson.option
    words = [word for argument in arguments for word in argument.split("=", 1)]
    if not words:
        return option.default
    if len(words) != 2 or words[0] != f"--{option.name}":
        raise InvalidArgumentException(
            f"lesson {lesson.number} does not take {' '.join(arguments)!r}: its option is --{option.name} VALUE"
        )
    return option.checked(words[1])


def _repeated(lesson: Lesson, value: int) -> str:
    return command(lesson, None if value == lesson.option.default else value)


def _described(lesson: Lesson) -> dict[str, object]:
    option = lesson.option
    return {
        "number": lesson.number,
        "name": lesson.name,
        "title": lesson.title,
        "option": option.name,
        "default": option.default,
        "minimum": option.minimum,
        "maximum": option.maximum,
        "meaning": option.meaning,
    }


def _plain(lesson: Lesson, value: int, story: Story, *, answered: bool) -> dict[str, object]:
    question: dict[str, object] = {"text": story.question.text}
    if answered:
        question |= {"answer": story.question.answer, "why": list(story.question.why)}
    return {
        **_described(lesson),
        "value": value,
        "participants": list(story.participants),
        "parts": [plain_part(part) for part in story.parts],
        "question": question,
        "measured": story.measured,
    }
