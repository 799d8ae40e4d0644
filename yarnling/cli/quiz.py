"""`yarnling quiz`: asks a question about a state of a cluster, and says whether the answer is right."""

from __future__ import annotations

import random
import sys

import msgspec
from rich.console import Console
from rich.text import Text

from yarnling.cli.shared.arguments import reading_arguments
from yarnling.cli.shared.output import print_json, terminal
from yarnling.cluster.silent_logs import without_logs
from yarnling.lessons.drawing import WIDTH, lines_of
from yarnling.lessons.quiz.question import QuizQuestion, Topic
from yarnling.lessons.quiz.topics import TOPICS, find_topic
from yarnling.report.escapes import in_line

SEED_MAX = 1_000_000
EXIT_RIGHT, EXIT_WRONG = 0, 1
ANSWER_MAX = 200
"""The characters of an answer that are read."""


def show_topics(*, as_json: bool) -> None:
    """Print all topics."""
    if as_json:
        print_json([{"name": each.name, "chapter": each.chapter, "asks": each.asks} for each in TOPICS])
        return
    console = terminal()
    for topic in TOPICS:
        console.print(f"{topic.name:<11} lesson {topic.chapter}  {topic.asks}", soft_wrap=True)


def ask(name: str, seed: int | None, answer: str | None, *, as_json: bool) -> int:
    """Ask a question of that topic. Returns the exit status: 0 if the answer is right, or if there is none.

    `answer`: None to read it from standard input.
    """
    with reading_arguments():
        topic = find_topic(name)
    drawn_seed = random.randrange(SEED_MAX) if seed is None else seed
    with without_logs():
        question = topic.question(drawn_seed)
    if as_json:
        print_json(_plain(topic, drawn_seed, question, answer))
        return EXIT_RIGHT if answer is None or question.is_right(answer) else EXIT_WRONG
    console = terminal()
    _print_question(console, topic, drawn_seed, question)
    given = _read(console) if answer is None else answer
    if given is None:
        return EXIT_RIGHT
    return _judge(console, topic, question, given)


def _print_question(console: Console, topic: Topic, seed: int, question: QuizQuestion) -> None:
    console.print(Text(f"yarnling quiz {topic.name} --seed {seed}", "dim"))
    for part in question.state:
        for line in lines_of(part, min(console.width, WIDTH)):
            console.print(Text(line.text, line.style), soft_wrap=True)
    console.print()
    console.print(Text(question.text, "bold"))
    if question.choices:
        console.print(f"One of: {', '.join(question.choices)}")


def _read(console: Console) -> str | None:
    """The line that the reader types; None at the end of the input."""
    if sys.stdin.isatty():
        console.print("> ", end="")
    line = sys.stdin.readline(ANSWER_MAX)
    return line.strip() or None


def _judge(console: Console, topic: Topic, question: QuizQuestion, given: str) -> int:
    is_right = question.is_right(given)
    if is_right:
        console.print(Text(f"Right: {question.answer}.", "green"))
    else:
        console.print(Text(f"Wrong: not {in_line(given[:ANSWER_MAX])}, but {question.answer}.", "red"))
    for reason in question.why:
        console.print(f"  - {reason}", soft_wrap=not console.is_terminal)
    if not is_right:
        console.print(Text(f"To read again: yarnling lesson {topic.chapter}", "dim"))
    return EXIT_RIGHT if is_right else EXIT_WRONG


def _plain(topic: Topic, seed: int, question: QuizQuestion, given: str | None) -> dict[str, object]:
    plain: dict[str, object] = {
        "topic": topic.name,
        "chapter": topic.chapter,
        "seed": seed,
        "state": msgspec.to_builtins(question.state),
        "question": question.text,
        "choices": list(question.choices),
    }
    if given is not None:
        right = question.is_right(given)
        plain |= {"given": given, "right": right, "answer": question.answer, "why": list(question.why)}
    return plain
