"""Writes the file that a learner starts a lab with."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.text import Text

from yarnling.cli.shared.arguments import UsageException
from yarnling.cli.shared.output import terminal


def write_start_file(path: Path, text: str, command: str) -> None:
    """Write the file, and print the `command` that judges it. Raises UsageException; an existing file is not
    overwritten.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageException(f"{path}: {error.strerror} (name another file)") from None
    terminal().print(Text(f"Written: {path}. Judge it: {command} {shlex.quote(str(path))}"), soft_wrap=True)
