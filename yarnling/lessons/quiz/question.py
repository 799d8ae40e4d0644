"""A question of the quiz, and whether an answer to it is right."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from msgspec import Struct

from yarnling.lessons.scene.story import Rows, Text

_UNIT = re.compile(r"\s*(mb|s|seconds?)$")
_KIND = re.compile(r"^(node|queue|root\.|application|user)\s*")


class QuizQuestion(Struct, frozen=True):
    """A question of the quiz.

    `state`: the cluster as the reader sees it. `answer`: what the cores did when they were run on.
    `choices`: the possible answers, if there are few; `answer` is one of them. `why`: the answer explained with the
    numbers of this state.
    """

    state: tuple[Text | Rows, ...]
    text: str
    answer: str
    why: tuple[str, ...]
    choices: tuple[str, ...] = ()

    def is_right(self, given: str) -> bool:
        """True for the answer, with or without its unit, and in any case."""
        return normalized(given) == normalized(self.answer)


class Topic(Struct, frozen=True):
    """A topic of the quiz.

    `chapter`: the number of the lesson that teaches it. `draw` builds a state from random numbers, and asks.
    """

    name: str
    chapter: int
    asks: str
    draw: Callable[[random.Random], QuizQuestion]

    def question(self, seed: int) -> QuizQuestion:
        """The question of that seed, always the same."""
        return self.draw(random.Random(f"{seed}/{self.name}"))


def normalized(answer: str) -> str:
    """`root.a` as `a`, `queue a` as `a`, `2048 MB` as `2048`, `3.0` as `3`."""
    plain = _UNIT.sub("", _KIND.sub("", answer.strip().lower()))
    try:
        return f"{float(plain):g}" if "." in plain else str(int(plain))
    except ValueError:
        return plain
