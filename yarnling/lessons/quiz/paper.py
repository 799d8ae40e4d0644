"""A sheet of questions of one topic as a page to print, a sheet with the answers, and the answers of a class."""

from __future__ import annotations

import csv
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from yarn.errors import InvalidArgumentException
from yarnling.lessons.quiz.question import QuizQuestion, Topic

ANSWERS_BYTES_MAX = 1_000_000
"""The largest file of answers."""


def questions_of(topic: Topic, count: int, seed: int) -> list[QuizQuestion]:
    """The questions of a sheet: those of `count` seeds from `seed` on."""
    return [topic.question(number) for number in range(seed, seed + count)]


def paper_page(topic: Topic, questions: list[QuizQuestion], seed: int) -> str:
    """The sheet, and on a new page of paper its answers, as one HTML document."""
    environment = Environment(
        loader=PackageLoader("yarnling.lessons.quiz", "."), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("paper.html").render(topic=topic, questions=questions, seed=seed)


def read_answers(path: Path, count: int) -> list[tuple[str, list[str]]]:
    """[(name, answers)] of a CSV file. An empty or missing answer is "", which is never right.

    Fields are separated by commas, or by semicolons if there is no comma, as spreadsheets write them where the comma is
    the decimal point. A first row whose name is `Name` is a heading.

    Raises InvalidArgumentException with all lines that are not valid.
    """
    try:
        data = path.read_bytes()
        if len(data) > ANSWERS_BYTES_MAX:
            raise InvalidArgumentException(f"{path}: {len(data)} bytes, at most {ANSWERS_BYTES_MAX}")
        text = data.decode("utf-8-sig")
        delimiter = ";" if ";" in text and "," not in text else ","
        numbered = enumerate(csv.reader(text.splitlines(), delimiter=delimiter, strict=True), 1)
        rows = [(number, row) for number, row in numbered if any(row)]
    except OSError as error:
        raise InvalidArgumentException(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidArgumentException(f"{path}: not a CSV file in UTF-8 ({error})") from None
    if rows and rows[0][1][0].strip().lower() == "name":
        del rows[0]
    faults = [
        f"{path}: row {number} has {f'{len(row) - 1} answers, at most {count}' if row[0].strip() else 'no name'}"
        for number, row in rows
        if not row[0].strip() or len(row) - 1 > count
    ]
    if not rows or all(len(row) == 1 for _, row in rows):
        faults.append(f"{path}: no answers: write a line NAME,ANSWER,ANSWER... for each person")
    if faults:
        raise InvalidArgumentException("\n".join(faults))
    return [(row[0].strip(), [*map(str.strip, row[1:]), *[""] * (count + 1 - len(row))]) for _, row in rows]
