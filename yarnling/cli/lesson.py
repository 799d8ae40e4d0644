"""`yarnling lesson`: lists the lessons, or runs one in virtual time and prints its story."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.text import Text

from yarn.errors import InvalidArgumentException
from yarnling.cli.shared.arguments import check_output_file, reading_arguments
from yarnling.cli.shared.output import print_json, terminal
from yarnling.cluster.silent_logs import without_logs
from yarnling.lessons.catalogue import LESSONS, find_lesson
from yarnling.lessons.drawing import WIDTH, drawn, introduction
from yarnling.lessons.page import command, predict_line, question_lines
from yarnling.lessons.scene.lesson import Lesson, Number, Option, Setting, WordChoice
from yarnling.lessons.scene.story import Story, plain_part
from yarnling.report.space_time_text import styled


def show_list(*, as_json: bool) -> None:
    """Print all lessons with their commands and what to change."""
    if as_json:
        print_json([_described(lesson) for lesson in LESSONS])
        return
    console = terminal()
    for lesson in LESSONS:
        _print_options(lesson, console)


def show_options(which: str) -> None:
    """Print what to change in a lesson; nothing if there is no such lesson."""
    with suppress(InvalidArgumentException):
        _print_options(find_lesson(which), terminal())


def _print_options(lesson: Lesson, console: Console) -> None:
    console.print(Text(f"{lesson.number}. {lesson.title}", "bold"))
    for option in lesson.options:
        line = Text(f"   {command(lesson)} [--{option.name} {option.bounds}]  {option.meaning}")
        console.print(line, soft_wrap=True)


def show(which: str, arguments: list[str], *, answered: bool, as_json: bool) -> None:
    """Run a lesson. `arguments`: its options, as far as they are given."""
    with reading_arguments():
        lesson = find_lesson(which)
        setting = chosen(lesson, arguments)
    with without_logs():
        story = lesson.play(*setting)
    if as_json:
        print_json(_plain(lesson, setting, story, answered=answered))
        return
    console = terminal()
    console.print(Text(f"{lesson.number}. {lesson.title}", "bold"))
    width = min(console.width, WIDTH)
    for line in [*introduction(lesson, width), *drawn(story, width)]:
        console.print(styled(line), soft_wrap=True)
    console.print()
    for text in question_lines(story.question, answered=answered):
        console.print(Text(text), soft_wrap=not console.is_terminal)
    console.print(predict_line(lesson, setting), soft_wrap=not console.is_terminal)
    if console.is_terminal and not answered:
        console.print(Text(f"\n{_repeated(lesson, setting)} --answer   prints the answer", "dim"))


def write_page(which: str, arguments: list[str], path: Path) -> None:
    """Run a lesson, and write it with its diagram as a page."""
    from yarnling.cli.timeline import PAGES, write
    from yarnling.lessons.diagram_page import diagram_page

    check_output_file(path, *PAGES)
    with reading_arguments():
        lesson = find_lesson(which)
        setting = chosen(lesson, arguments)
    with without_logs():
        text = diagram_page(lesson, setting)
    write(path, text)


def chosen(lesson: Lesson, arguments: list[str]) -> Setting:
    """The setting in words `--NAME VALUE` or `--NAME=VALUE`. Raises InvalidArgumentException for anything else."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    options = {f"--{option.name}": option for option in lesson.options}
    values = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) != 2 * len(values) or not values.keys() <= options.keys():
        known = ", ".join(f"{name} VALUE" for name in options)
        raise InvalidArgumentException(
            f"lesson {lesson.number} does not take {' '.join(arguments)!r}: "
            f"{'its option is' if len(options) == 1 else 'its options, each at most once, are'} {known}"
        )
    return tuple(option.checked(values[name]) if name in values else option.default for name, option in options.items())


def _repeated(lesson: Lesson, setting: Setting) -> str:
    return command(lesson, None if setting == lesson.defaults else setting)


def _described(lesson: Lesson) -> dict[str, object]:
    described: dict[str, object] = {"number": lesson.number, "name": lesson.name, "title": lesson.title}
    described |= _option(lesson.option)
    if lesson.others:
        described["others"] = [_option(option) for option in lesson.others]
    return described


def _option(option: Option) -> dict[str, object]:
    match option:
        case Number(minimum=minimum, maximum=maximum):
            bounds: dict[str, object] = {"minimum": minimum, "maximum": maximum}
        case WordChoice(values=words):
            bounds = {"choices": list(words)}
    return {"option": option.name, "default": option.default, **bounds, "meaning": option.meaning}


def _plain(lesson: Lesson, setting: Setting, story: Story, *, answered: bool) -> dict[str, object]:
    question: dict[str, object] = {"text": story.question.text}
    if answered:
        question |= {"answer": story.question.answer, "why": list(story.question.why)}
    others: dict[str, object] = {"other_values": list(setting[1:])} if lesson.others else {}
    return {
        **_described(lesson),
        "value": setting[0],
        **others,
        "participants": list(story.participants),
        "parts": [plain_part(part) for part in story.parts],
        "question": question,
        "measured": story.measured,
    }
