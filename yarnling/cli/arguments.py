"""Arguments and options that several verbs have, each with what a shell offers for it at Tab."""

from __future__ import annotations

from typing import Annotated

import typer

from yarnling.cli import completion

DEFAULT_NAME = "default"

Name = Annotated[str, typer.Option(help="Which cluster.", envvar="YARNLING_NAME", autocompletion=completion.clusters)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Application = Annotated[str, typer.Argument(metavar="APPLICATION_ID", autocompletion=completion.applications)]
Node = Annotated[
    str,
    typer.Argument(help="Its number, its name (nm-2) or its id (host:port).", autocompletion=completion.nodes),
]
