"""A verb of Hadoop's and one call of it: options read, the cluster found, what is told and with which exit status."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from yarnling.cli import json_form
from yarnling.cli.connection import connect
from yarnling.cli.hadoop.options import Given, MissingArgument, Option, parse, usage
from yarnling.cli.terminal import shown
from yarnling.cluster.client import Client
from yarnling.cluster.state import DEFAULT_NAME, ClusterState

REFUSED = 255
"""-1, which Hadoop's commands give for what they themselves refuse; an error of the cluster's is 1."""


class Call(Struct, frozen=True):
    """One invocation: its options, the cluster, and where its words go."""

    given: Given
    state: ClusterState
    client: Client
    usage: str

    @property
    def as_json(self) -> bool:
        return "json" in self.given

    def say(self, text: str) -> None:
        """A line for people, at once: what follows may fail."""
        if not self.as_json:
            sys.stdout.write(shown(text) + "\n")
            sys.stdout.flush()

    def show(self, record: object, text: str) -> None:
        """The result: as JSON, or as a line (or lines) for people."""
        if self.as_json:
            sys.stdout.write(json_form.text(record) + "\n")
        else:
            self.say(text)

    def done(self, **facts: object) -> int:
        """The result of a change, which people were told in sentences."""
        if self.as_json:
            sys.stdout.write(json_form.text(facts) + "\n")
        return 0

    def refuse(self) -> int:
        """Show the usage of what was used in the wrong way."""
        sys.stdout.write(self.usage + "\n")
        return REFUSED


class Verb(Struct, frozen=True):
    """`yarnling NAME -option...`; `without_options` is its exit status when nothing says what to do.

    `commands`: the options of which one must be there. `tells_faults_apart`: what is wrong goes to standard error and
    the usage alone to standard output, as LogsCLI has it.
    """

    name: str
    options: tuple[Option, ...]
    run: Callable[[Call], Awaitable[int]]
    commands: tuple[str, ...]
    without_options: int = 0
    tells_faults_apart: bool = False
    usage_end: str = "\n"


def execute(verb: Verb, arguments: Sequence[str]) -> int:
    """The exit status. Raises YarnException for what the cluster refuses, and for an unknown option."""
    text = usage(verb.name, verb.options)
    try:
        given = parse(verb.options, arguments)
    except MissingArgument as missing:
        if verb.tells_faults_apart:
            sys.stderr.write(f"options parsing failed: Missing argument for option: {missing}\n")
        else:
            sys.stdout.write("Missing argument for options\n")
        sys.stdout.write(f"{text}\n")
        return REFUSED
    if given.rest:
        sys.stdout.write(f"{text}\n")
        return REFUSED
    if not any(command in given for command in verb.commands):
        if "help" not in given and not verb.tells_faults_apart:
            sys.stderr.write("Invalid Command Usage : \n")
        sys.stdout.write(text + verb.usage_end)
        return 0 if "help" in given else verb.without_options
    return asyncio.run(_run(verb, given, text))


async def _run(verb: Verb, given: Given, text: str) -> int:
    state, client = connect(given.one("name", os.environ.get("YARNLING_NAME", DEFAULT_NAME)), user_of(given))
    async with client:
        return await verb.run(Call(given, state, client, text))


def user_of(given: Given) -> str:
    """As whom to act: simple authentication believes it, as Hadoop's does."""
    return given.one("user") or os.environ.get("HADOOP_USER_NAME", "") or getpass.getuser()
