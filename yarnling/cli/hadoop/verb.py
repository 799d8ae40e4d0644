"""A Hadoop command such as `yarnling application`: its options, and one invocation of it.

Options have the syntax of Hadoop's commands, a single dash and a word: `-appStates RUNNING,KILLED`. The parser decides
which words belong to which option as GnuParser of commons-cli does, and treats wrong command lines as Hadoop does: if
an argument is missing it prints the usage; an unknown option is an error. docs/design/command-line.md explains why no
library is used.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
import textwrap
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from yarn.errors import YarnException
from yarnling.cli.shared.connection import connect
from yarnling.cli.shared.output import print_json
from yarnling.cluster.client import Client
from yarnling.cluster.state import DEFAULT_NAME, ClusterState
from yarnling.report.escapes import shown

USAGE_WIDTH = 100
HELP_COLUMN = 34


class MissingArgument(Exception):
    """An option was given without its argument."""


class UnrecognizedOption(YarnException):
    """The verb does not have this option."""

    java_class = "org.apache.commons.cli.UnrecognizedOptionException"


class Option(Struct, frozen=True):
    """An option `-name`, or `-short`.

    `argument` is the placeholder of its argument, "" if it has none. `many`: it takes one or more arguments.
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
        """All spellings of the option. Two dashes work as well as one."""
        names = [name for name in (self.name, self.short) if name]
        return (*(f"-{name}" for name in names), *(f"--{name}" for name in names))


OURS = (
    Option("json", "print JSON"),
    Option("name", "name of the cluster (default: YARNLING_NAME, or `default`)", "CLUSTER"),
    Option("user", "act as this user (default: HADOOP_USER_NAME, or you)", "USER"),
    Option("help", "print this help"),
)
"""Options of yarnling that every verb has in addition to Hadoop's."""


class Given(Struct, frozen=True):
    """The parsed options as {name: arguments}. `rest` are words that belong to no option."""

    values: dict[str, list[str]]
    rest: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def only(self, *names: str) -> bool:
        """True if only these options, and yarnling's own, are given."""
        return self.values.keys() <= {*names, *(option.name for option in OURS)}

    def one(self, name: str, default: str = "") -> str:
        """The first argument of an option, or `default`."""
        return self.values.get(name, [default])[0]

    def words(self, name: str) -> list[str]:
        """The comma-separated words in an option's arguments, without surrounding spaces."""
        return [word for part in self.values.get(name, []) for text in part.split(",") if (word := text.strip())]


def parse(options: Sequence[Option], arguments: Sequence[str]) -> Given:
    """Parse a command line. Raises MissingArgument or UnrecognizedOption.

    An option takes all words up to the next known option. `-4` is not a known option, so it can be an argument.
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
    """Yield the words of the command line, with `-queue=default` split in two."""
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


REFUSED = 255
"""The exit status (-1) of Hadoop's commands if they refuse a command line. For errors of the cluster it is 1."""


class Invocation(Struct, frozen=True):
    """An invocation of a verb: its options, the cluster, and its output."""

    given: Given
    state: ClusterState
    client: Client
    usage: str

    @property
    def as_json(self) -> bool:
        return "json" in self.given

    def say(self, text: str) -> None:
        """Print a line for people at once, because the next step may fail."""
        if not self.as_json:
            sys.stdout.write(shown(text) + "\n")
            sys.stdout.flush()

    def show(self, record: object, text: str) -> None:
        """Print the result, as JSON or as text for people."""
        if self.as_json:
            print_json(record)
        else:
            self.say(text)

    def done(self, **facts: object) -> int:
        """Print the result of a change as JSON. For people, `say` has printed the result already."""
        if self.as_json:
            print_json(facts)
        return 0

    def refuse(self) -> int:
        """Print the usage, because the combination of options is wrong. Returns the exit status."""
        sys.stdout.write(self.usage + "\n")
        return REFUSED


class Verb(Struct, frozen=True):
    """A verb: `yarnling NAME -option...`. One of the options in `commands` must be given.

    `without_options` is the exit status if none of them is given. `errors_on_stderr`: error messages go to standard
    error, and only the usage goes to standard output, as in LogsCLI.
    """

    name: str
    options: tuple[Option, ...]
    run: Callable[[Invocation], Awaitable[int]]
    commands: tuple[str, ...]
    without_options: int = 0
    errors_on_stderr: bool = False
    usage_end: str = "\n"


def execute(verb: Verb, arguments: Sequence[str]) -> int:
    """Run a verb and return the exit status. Raises YarnException for an unknown option, or if the cluster refuses."""
    text = usage(verb.name, verb.options)
    try:
        given = parse(verb.options, arguments)
    except MissingArgument as missing:
        if verb.errors_on_stderr:
            sys.stderr.write(f"options parsing failed: Missing argument for option: {missing}\n")
        else:
            sys.stdout.write("Missing argument for options\n")
        sys.stdout.write(f"{text}\n")
        return REFUSED
    if given.rest:
        sys.stdout.write(f"{text}\n")
        return REFUSED
    if not any(command in given for command in verb.commands):
        if "help" not in given and not verb.errors_on_stderr:
            sys.stderr.write("Invalid Command Usage : \n")
        sys.stdout.write(text + verb.usage_end)
        return 0 if "help" in given else verb.without_options
    return asyncio.run(_run(verb, given, text))


async def _run(verb: Verb, given: Given, text: str) -> int:
    state, client = connect(given.one("name", os.environ.get("YARNLING_NAME", DEFAULT_NAME)), user_of(given))
    async with client:
        return await verb.run(Invocation(given, state, client, text))


def user_of(given: Given) -> str:
    """The user to act as. The name is not verified, as with Hadoop's simple authentication."""
    return given.one("user") or os.environ.get("HADOOP_USER_NAME", "") or getpass.getuser()
