"""`yarnling quiz`: asks a question about a state of a cluster, and says whether the answer is right."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from yarnling.cli.shared.arguments import UsageException, check_output_file, reading_arguments
from yarnling.cli.shared.output import print_json, terminal
from yarnling.cluster.silent_logs import without_logs
from yarnling.lessons.drawing import WIDTH, lines_of
from yarnling.lessons.quiz.paper import paper_page, questions_of, read_answers
from yarnling.lessons.quiz.question import QuizQuestion, Topic
from yarnling.lessons.quiz.topics import TOPICS, find_topic
from yarnling.report.escapes import in_line
from yarnling.report.listing import Listing

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
    """Ask a question of that topic. Returns the exit status: 0 if the answer is right, or for the question as JSON.

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
        console.print("Not answered.")
        return EXIT_WRONG
    return _judge(console, topic, question, given)


def write_paper(name: str, count: int, seed: int | None, path: Path) -> None:
    """Write a sheet with questions, and one with their answers, as a page to print."""
    check_output_file(path, ".html", ".htm")
    with reading_arguments():
        topic = find_topic(name)
    drawn_seed = random.randrange(SEED_MAX) if seed is None else seed
    with without_logs():
        text = paper_page(topic, questions_of(topic, count, drawn_seed), drawn_seed)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageException(f"{path}: cannot be written: {error.strerror} (name another file)") from None
    again = f"yarnling quiz {topic.name} --paper {count} --seed {drawn_seed} --check class.csv"
    terminal().print(Text(f"Written: {path}. To check the answers of a class: {again}"), soft_wrap=True)


def check_paper(name: str, count: int, seed: int, path: Path, *, as_json: bool) -> None:
    """Read the answers of a class (CSV: a name, and an answer for each question), and print who was right."""
    with reading_arguments():
        topic = find_topic(name)
        answers = read_answers(path, count)
    with without_logs():
        questions = questions_of(topic, count, seed)
    marks = [(who, [q.is_right(a) for q, a in zip(questions, given, strict=True)]) for who, given in answers]
    if as_json:
        print_json([{"name": who, "right": sum(right), "of": count, "answers": right} for who, right in marks])
        return
    console = terminal()
    table = Listing("Name", "Right", "Wrong or not answered")
    for who, right in marks:
        table.add_row(
            who, f"{sum(right)} of {count}", ", ".join(str(n) for n, is_right in enumerate(right, 1) if not is_right)
        )
    console.print(table, crop=False)
    for number, question in enumerate(questions, 1):
        console.print(
            f"{number}. {question.answer}: {sum(right[number - 1] for _, right in marks)} of {len(marks)} right"
        )


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
