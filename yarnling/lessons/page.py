"""The pages of docs/lessons: the text of each lesson with the output of its command."""

from __future__ import annotations

from yarnling.lessons.catalogue import LESSONS
from yarnling.lessons.drawing import drawn, introduction
from yarnling.lessons.scene.lesson import Lesson
from yarnling.lessons.scene.story import Question

INDEX = "README.md"


def pages() -> dict[str, str]:
    """{file name: text} of the index and all chapters."""
    return {INDEX: index(), **{file_name(lesson): page(lesson) for lesson in LESSONS}}


def file_name(lesson: Lesson) -> str:
    return f"{lesson.number}-{lesson.name}.md"


def command(lesson: Lesson, value: int | None = None) -> str:
    return f"yarnling lesson {lesson.number}" + ("" if value is None else f" --{lesson.option.name} {value}")


def output(lesson: Lesson, value: int, *, answered: bool, introduced: bool = True) -> str:
    """The output of the command in a pipe. `introduced`: with its first part, which a page has as its text."""
    story = lesson.play(value)
    told = [*(introduction(lesson) if introduced else []), *drawn(story)]
    lines = [f"{lesson.number}. {lesson.title}", *(line.text for line in told), ""]
    lines += [*question_lines(story.question, answered=answered), predict_line(lesson, value)]
    return "\n".join(lines) + "\n"


def question_lines(question: Question, *, answered: bool) -> list[str]:
    lines = [f"Question: {question.text}"]
    if answered:
        lines += [f"Answer: {question.answer}", *(f"  - {reason}" for reason in question.why)]
    return lines


def predict_line(lesson: Lesson, value: int) -> str:
    """The invitation to change the number."""
    other = next(each for each in lesson.option.values if each != value)
    return f"Now predict the answer for --{lesson.option.name} {other}: {command(lesson, other)} --answer"


def page(lesson: Lesson) -> str:
    option, first = lesson.option, command(lesson)
    parts = [
        f"# {lesson.number}. {lesson.title}",
        *lesson.idea,
        "\n".join(f"- **{term}**: {meaning}" for term, meaning in lesson.terms.items()),
        "## Run it",
        f"    {first}",
        f"`{first} -o page.html` draws the same as a page, on which each message shows its fields. "
        "Time is virtual: the cores of the daemons run as in a real cluster, in milliseconds. Times are in seconds "
        "since the start; each line belongs to the message, the state change (`*`) or the decision on its lifelines.",
        f"```text\n{output(lesson, option.default, answered=False, introduced=False)}```",
        "## Change a number",
        f"`--{option.name} VALUE` ({option.minimum} to {option.maximum}, default {option.default}): {option.meaning}. "
        "Predict the answer before you run each of these; `--answer` prints it.",
        "\n".join(f"    {command(lesson, value)} --answer" for value in option.values),
        "<details><summary>Answers</summary>",
        *(_answer(lesson, value) for value in option.values),
        "</details>",
        "## To read more",
        "\n".join(f"- {line[:1].upper()}{line[1:]}" for line in lesson.read_more),
    ]
    return "\n\n".join(parts) + "\n"


def _answer(lesson: Lesson, value: int) -> str:
    question = lesson.play(value).question
    reasons = "\n".join(f"- {reason}" for reason in question.why)
    return f"**`--{lesson.option.name} {value}`: {question.answer}**\n\n{reasons}"


def index() -> str:
    """The page that lists the lessons."""
    rows = [f"| {each.number} | [{each.title}]({file_name(each)}) | `{command(each)}` |" for each in LESSONS]
    return (
        "\n\n".join(
            (
                "# Lessons",
                "Nine chapters on how YARN works, about a quarter of an hour each. You should know Linux, and what a "
                "process and a message are; YARN's terms are explained where they come up. Each chapter is one "
                "command: it runs a small cluster in virtual time, prints every message and decision that matters, "
                "and ends with a question. Change the chapter's number, predict, and look.",
                "\n".join(("| | chapter | command |", "|---|---|---|", *rows)),
                "`yarnling quiz` asks questions about states of a cluster that are drawn from a seed (`yarnling quiz "
                "--list`). `yarnling simulate step 8` opens the scene of a chapter, to [go through it event by "
                "event](../stepping.md) and to change it. Teachers: [a class of two hours](teacher.md).",
                "The outputs in these pages are generated: run `scripts/lessons` after a change that affects them.",
            )
        )
        + "\n"
    )
