"""The options of `yarnling record`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from yarnling.cli.shared.arguments import Json


class RecordOptions(Struct, frozen=True, kw_only=True):
    """The options of a recording. `lasts`: "" for until Ctrl-C."""

    addresses: Annotated[
        list[str],
        typer.Argument(metavar="URL...", help="The ResourceManager, http://rm:8088; with HA also its standby."),
    ]
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Directory of the recording; continued.")]
    every: Annotated[str, typer.Option(metavar="TIME", help="Interval of the polls.")] = "15s"
    lasts: Annotated[str, typer.Option("--for", metavar="TIME", help="How long (default: until Ctrl-C).")] = ""
    authorization_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the value of the header Authorization: Bearer ..., Basic ..."),
    ] = None
    user: Annotated[str, typer.Option(metavar="USER", help="Ask as this user (parameter user.name).")] = ""
    proxy: Annotated[str | None, typer.Option(metavar="URL", help="HTTP proxy (default: that of the environment).")] = (
        None
    )
    ca_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificates (PEM) of the authorities to trust with https.")
    ] = None
    as_json: Json = False
