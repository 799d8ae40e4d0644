"""Options as Hadoop's commands take them: one dash before a word, `-appStates RUNNING,KILLED`.

What belongs to which option, and how a wrong invocation ends, is Hadoop's (commons-cli's GnuParser): a missing argument
shows the usage, an unknown option is an error. docs/design/command-line.md says why no library reads them.
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
    """An option came without what it needs."""


class UnrecognizedOption(YarnException):
    """An option that the verb does not have."""

    java_class = "org.apache.commons.cli.UnrecognizedOptionException"


class Option(Struct, frozen=True):
    """`-name`, in short also `-short`. `argument`: what follows it ("" nothing); `many`: one or more of it.

    `optional`: its argument may be left out.
    """

    name: str
    meaning: str
    argument: str = ""
    many: bool = False
    optional: bool = False
    short: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """As it may be written; two dashes do as well."""
        names = [name for name in (self.name, self.short) if name]
        return (*(f"-{name}" for name in names), *(f"--{name}" for name in names))


OURS = (
    Option("json", "print JSON, for programs"),
    Option("name", "which cluster (default: YARNLING_NAME, or `default`)", "CLUSTER"),
    Option("user", "act as this user (default: HADOOP_USER_NAME, or you)", "USER"),
    Option("help", "print this"),
)
"""What every verb has besides Hadoop's options."""


class Given(Struct, frozen=True):
    """The options of one invocation: {name: its arguments}; `rest` is what belongs to none."""

    values: dict[str, list[str]]
    rest: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def only(self, *names: str) -> bool:
        """True if no option but these, and ours, was given."""
        return self.values.keys() <= {*names, *(option.name for option in OURS)}

    def one(self, name: str, default: str = "") -> str:
        """The first argument of an option."""
        return self.values.get(name, [default])[0]

    def words(self, name: str) -> list[str]:
        """The comma-separated words of an option's arguments, trimmed."""
        return [word for part in self.values.get(name, []) for text in part.split(",") if (word := text.strip())]


def parse(options: Sequence[Option], arguments: Sequence[str]) -> Given:
    """Raises MissingArgument or UnrecognizedOption.

    An option takes words until the next option that the verb has: `-4` is no option, so it is an argument.
    """
    known = {flag: option for option in (*options, *OURS) for flag in option.flags}
    values: dict[str, list[str]] = {}
    rest = []
    words = deque(_apart(known, arguments))
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


def _apart(known: Mapping[str, Option], arguments: Sequence[str]) -> Iterator[str]:
    """The words, `-queue=default` as two."""
    for word in arguments:
        flag, equals, value = word.partition("=")
        if equals and flag in known and known[flag].argument:
            yield from (flag, value)
        else:
            yield word


def usage(verb: str, options: Sequence[Option]) -> str:
    """The verb's options with their meanings; ends without a newline."""
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
