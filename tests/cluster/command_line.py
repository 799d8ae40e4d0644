"""The command line within the process of the tests, which saves each command a second of starting Python."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Mapping
from subprocess import CompletedProcess
from unittest.mock import patch

from yarnling.cli import main


def run(*arguments: str, environment: Mapping[str, str]) -> CompletedProcess[str]:
    """Output and exit status of one command, as of a process with this environment."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    status: object = None
    with (
        patch.dict(os.environ, environment, clear=True),
        patch.object(sys, "argv", ["yarnling", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            status = ended.code
    code = 0 if status is None else status if isinstance(status, int) else 1
    printed, errors = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return CompletedProcess(arguments, code, printed, errors)
