"""The pages of docs/lessons: the text of each lesson with the output of its command."""

from __future__ import annotations

from yarnling.lessons.catalogue import LESSONS
from yarnling.lessons.drawing import drawn, introduction
from yarnling.lessons.scene.lesson import Lesson, Option, Setting
from yarnling.lessons.scene.story import Question, Story

INDEX = "README.md"


def pages() -> dict[str, str]:
    """{file name: text} of the index and all chapters."""
    return {INDEX: index(), **{file_name(lesson): page(lesson) for lesson in LESSONS}}


def file_name(lesson: Lesson) -> str:
    return f"{lesson.number}-{lesson.name}.md"


def step_page(lesson: Lesson) -> str:
    """The file of the page in which a reader steps through the lesson; scripts/docs makes it."""
    return f"step-{lesson.number}-{lesson.name}.html"


def command(lesson: Lesson, setting: Setting | None = None) -> str:
    return f"yarnling lesson {lesson.number}" + ("" if setting is None else f" {words_of(lesson, setting)}")


def words_of(lesson: Lesson, setting: Setting) -> str:
    """The options whose values are not the defaults, as the command takes them; at least the first option."""
    given = [(option, value) for option, value in zip(lesson.options, setting, strict=True) if value != option.default]
    return " ".join(f"--{option.name} {value}" for option, value in given or [(lesson.option, setting[0])])


def output(lesson: Lesson, setting: Setting, *, answered: bool) -> str:
    """The output of the command in a pipe."""
    return _output(lesson, setting, lesson.play(*setting), answered=answered, introduced=True)


def _output(lesson: Lesson, setting: Setting, story: Story, *, answered: bool, introduced: bool) -> str:
    """The output of a story. `introduced`: with its first part, which a page has as its text."""
    told = [*(introduction(lesson) if introduced else []), *drawn(story)]
    lines = [f"{lesson.number}. {lesson.title}", *(line.text for line in told), ""]
    lines += [*question_lines(story.question, answered=answered), predict_line(lesson, setting)]
    return "\n".join(lines) + "\n"


def question_lines(question: Question, *, answered: bool) -> list[str]:
    lines = [f"Question: {question.text}"]
    if answered:
        lines += [f"Answer: {question.answer}", *(f"  - {reason}" for reason in question.why)]
    return lines


def predict_line(lesson: Lesson, setting: Setting) -> str:
    """The invitation to change an option."""
    other = (next(each for each in lesson.option.values if each != setting[0]), *setting[1:])
    return f"Now predict the answer for {words_of(lesson, other)}: {command(lesson, other)} --answer"


def page(lesson: Lesson) -> str:
    first = command(lesson)
    stories = {setting: lesson.play(*setting) for setting in lesson.settings}
    printed = _output(lesson, lesson.defaults, stories[lesson.defaults], answered=False, introduced=False)
    parts = [
        f"# {lesson.number}. {lesson.title}",
        *lesson.idea,
        "\n".join(f"- **{term}**: {meaning}" for term, meaning in lesson.terms.items()),
        "## Run it",
        f"    {first}",
        f"`{first} -o page.html` writes the same as a page, on which each message shows its fields. "
        "Time is virtual: the code that decides is that of a real cluster, but nobody waits for timers. Times are in "
        "seconds since the start. Where messages are drawn, each line has a message, a state change (`*`) or a "
        "decision.",
        f"[Go through it event by event]({step_page(lesson)}), in this browser (on the documentation's site), or with "
        f"`yarnling simulate step {lesson.number}`.",
        f"```text\n{printed}```",
        "## Change a setting",
        *(_described(option) for option in lesson.options[:-1]),
        f"{_described(lesson.options[-1])} Predict the answer before you run each of these; `--answer` prints it.",
        "\n".join(f"    {command(lesson, setting)} --answer" for setting in lesson.settings),
        "<details><summary>Answers</summary>",
        *(_answer(lesson, setting, story.question) for setting, story in stories.items()),
        "</details>",
        "## To read more",
        "\n".join(f"- {line[:1].upper()}{line[1:]}" for line in lesson.read_more),
    ]
    return "\n\n".join(parts) + "\n"


def _described(option: Option) -> str:
    return f"`--{option.name} VALUE` ({option.described_bounds}, default {option.default}): {option.meaning}."


def _answer(lesson: Lesson, setting: Setting, question: Question) -> str:
    reasons = "\n".join(f"- {reason}" for reason in question.why)
    return f"**`{words_of(lesson, setting)}`: {question.answer}**\n\n{reasons}"


def index() -> str:
    """The page that lists the lessons."""
    rows = [f"| {each.number} | [{each.title}]({file_name(each)}) | `{command(each)}` |" for each in LESSONS]
    return (
        "\n\n".join(
            (
                "# Lessons",
                "Chapters on how YARN works, about a quarter of an hour each. You should know Linux, and what a "
                "process and a message are; YARN's terms are explained where they come up. Each chapter is one "
                "command: it runs a small cluster in virtual time, prints the messages and decisions that matter, "
                "and ends with a question. Change the chapter's option (a number or a word), predict the answer, and "
                "run it again.",
                "Chapters 1 to 9 show how a cluster works, message by message. Those from 10 on show the examples "
                "and figures that articles and vendors' manuals about the CapacityScheduler give, with pictures, and "
                "what Hadoop 3.4.1 does where they err.",
                "\n".join(("| | chapter | command |", "|---|---|---|", *rows)),
                "`yarnling quiz` asks questions about states of a cluster that are drawn from a seed (`yarnling quiz "
                "--list`). `yarnling simulate step 8` opens the scene of a chapter, to [go through it event by "
                "event](../stepping.md) and to change it. Teachers: [a class of two hours](teacher.md).",
                "The outputs in these pages are generated: run `scripts/lessons` after a change that affects them.",
            )
        )
        + "\n"
    )
