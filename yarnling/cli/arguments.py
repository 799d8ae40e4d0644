"""Arguments and options that several verbs have, each with what a shell offers for it at Tab."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from yarn.errors import YarnException
from yarnling.cli import completion

DEFAULT_NAME = "default"


class UsageException(YarnException):
    """The command line is wrong, whatever the state of the cluster; nothing was done. Exit status 2."""


@contextmanager
def reading_arguments() -> Iterator[None]:
    """Raises UsageException for what is refused within: it comes from the command line, not from a cluster."""
    try:
        yield
    except YarnException as error:
        raise UsageException(error.message) from None


def _checked_name(context: typer.Context, name: str | None) -> str | None:
    from yarnling.cluster.state import check_name

    if name is not None and not context.resilient_parsing:
        with reading_arguments():
            check_name(name)
    return name


Name = Annotated[
    str,
    typer.Option(
        help="Which cluster.", envvar="YARNLING_NAME", autocompletion=completion.clusters, callback=_checked_name
    ),
]
OptionalName = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="Of a cluster that is up, instead of a directory.",
        autocompletion=completion.clusters,
        callback=_checked_name,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Application = Annotated[str, typer.Argument(metavar="APPLICATION_ID", autocompletion=completion.applications)]
Node = Annotated[
    str,
    typer.Argument(help="Its number, its name (nm-2) or its id (host:port).", autocompletion=completion.nodes),
]
