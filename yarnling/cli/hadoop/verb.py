"""A verb of Hadoop's, and one invocation of it: parses the options, finds the cluster, returns the exit status."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from yarnling.cli.connection import connect
from yarnling.cli.hadoop.options import Given, MissingArgument, Option, parse, usage
from yarnling.cli.output import print_json, shown
from yarnling.cluster.client import Client
from yarnling.cluster.state import DEFAULT_NAME, ClusterState

REFUSED = 255
"""-1, the exit status of Hadoop's commands for what they refuse themselves; for errors of the cluster it is 1."""


class Call(Struct, frozen=True):
    """One invocation: its options, the cluster, and its output."""

    given: Given
    state: ClusterState
    client: Client
    usage: str

    @property
    def as_json(self) -> bool:
        return "json" in self.given

    def say(self, text: str) -> None:
        """Print a line for people, at once: the next step may fail."""
        if not self.as_json:
            sys.stdout.write(shown(text) + "\n")
            sys.stdout.flush()

    def show(self, record: object, text: str) -> None:
        """Print the result: as JSON, or as text for people."""
        if self.as_json:
            print_json(record)
        else:
            self.say(text)

    def done(self, **facts: object) -> int:
        """Print the result of a change as JSON; for people, `say` has printed it already."""
        if self.as_json:
            print_json(facts)
        return 0

    def refuse(self) -> int:
        """Print the usage after a wrong combination of options."""
        sys.stdout.write(self.usage + "\n")
        return REFUSED


class Verb(Struct, frozen=True):
    """`yarnling NAME -option...`. `commands`: the options of which one must be given.

    `without_options`: the exit status if none of them is. `errors_on_stderr`: error messages go to standard error and
    only the usage to standard output, as in LogsCLI.
    """

    name: str
    options: tuple[Option, ...]
    run: Callable[[Call], Awaitable[int]]
    commands: tuple[str, ...]
    without_options: int = 0
    errors_on_stderr: bool = False
    usage_end: str = "\n"


def execute(verb: Verb, arguments: Sequence[str]) -> int:
    """The exit status. Raises YarnException if the cluster refuses, and for an unknown option."""
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
        return await verb.run(Call(given, state, client, text))


def user_of(given: Given) -> str:
    """The user to act as; not verified, as with Hadoop's simple authentication."""
    return given.one("user") or os.environ.get("HADOOP_USER_NAME", "") or getpass.getuser()
