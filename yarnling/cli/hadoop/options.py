"""Options in the syntax of Hadoop's commands: a single dash and a word, `-appStates RUNNING,KILLED`.

Which words belong to which option, and how a wrong command line ends, follows commons-cli's GnuParser: a missing
argument prints the usage, an unknown option is an error. docs/design/command-line.md explains why no library is used.
"""

from __future__ import annotations

import textwrap
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from yarn.errors import YarnException

USAGE_WIDTH = 100
HELP_COLUMN = 34


class MissingArgument(Exception):
    """An option was given without its argument."""


class UnrecognizedOption(YarnException):
    """The verb does not have this option."""

    java_class = "org.apache.commons.cli.UnrecognizedOptionException"


class Option(Struct, frozen=True):
    """`-name`, or `-short`. `argument`: the placeholder of its argument, "" for none; `many`: one or more arguments.

    `optional`: the argument may be left out.
    """

    name: str
    meaning: str
    argument: str = ""
    many: bool = False
    optional: bool = False
    short: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """All spellings; two dashes work as well."""
        names = [name for name in (self.name, self.short) if name]
        return (*(f"-{name}" for name in names), *(f"--{name}" for name in names))


OURS = (
    Option("json", "print JSON"),
    Option("name", "name of the cluster (default: YARNLING_NAME, or `default`)", "CLUSTER"),
    Option("user", "act as this user (default: HADOOP_USER_NAME, or you)", "USER"),
    Option("help", "print this help"),
)
"""Options of yarnling's own that every verb has."""


class Given(Struct, frozen=True):
    """The parsed options: {name: arguments}; `rest`: words that belong to no option."""

    values: dict[str, list[str]]
    rest: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def only(self, *names: str) -> bool:
        """True if no options besides these, and yarnling's own, are given."""
        return self.values.keys() <= {*names, *(option.name for option in OURS)}

    def one(self, name: str, default: str = "") -> str:
        """The first argument of an option."""
        return self.values.get(name, [default])[0]

    def words(self, name: str) -> list[str]:
        """The comma-separated words of an option's arguments, trimmed."""
        return [word for part in self.values.get(name, []) for text in part.split(",") if (word := text.strip())]


def parse(options: Sequence[Option], arguments: Sequence[str]) -> Given:
    """Raises MissingArgument or UnrecognizedOption.

    An option takes words up to the next known option: `-4` is not a known option, so it is an argument.
    """
    known = {flag: option for option in (*options, *OURS) for flag in option.flags}
    values: dict[str, list[str]] = {}
    rest = []
    words = deque(_split(known, arguments))
    while words:
        word = words.popleft()
        option = known.get(word)
        if option is None:
            if word.startswith("-") and word != "-":
                raise UnrecognizedOption(f"Unrecognized option: {word}")
            rest.append(word)
            continue
        taken = values.setdefault(option.name, [])
        while option.argument and words and words[0] not in known and (option.many or not taken):
            taken.append(words.popleft())
        if option.argument and not taken and not option.optional:
            raise MissingArgument(option.name)
    return Given(values, tuple(rest))


def _split(known: Mapping[str, Option], arguments: Sequence[str]) -> Iterator[str]:
    """The words, with `-queue=default` split in two."""
    for word in arguments:
        flag, equals, value = word.partition("=")
        if equals and flag in known and known[flag].argument:
            yield from (flag, value)
        else:
            yield word


def usage(verb: str, options: Sequence[Option]) -> str:
    """The help text of a verb, without a final newline."""
    lines = [f"usage: yarnling {verb}"]
    for option in (*options, *OURS):
        flags = ",".join(f"-{name}" for name in (option.short, option.name) if name)
        head = f" {flags} <{option.argument}{' ...' if option.many else ''}>" if option.argument else f" {flags}"
        meaning = textwrap.wrap(option.meaning, USAGE_WIDTH - HELP_COLUMN)
        first = head if len(head) < HELP_COLUMN else None
        if first is None:
            lines.append(head)
        for number, part in enumerate(meaning):
            lines.append(f"{head if number == 0 and first else '':{HELP_COLUMN}}{part}")
    return "\n".join(lines)
