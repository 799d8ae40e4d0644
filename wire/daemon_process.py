"""A daemon as a program: its command line, its log, its ready line, its exit status.

    python -m rm --conf DIR [-D key=value ...] [--ready-fd N] [--log-level INFO]

The ready line is one JSON object, written once when the daemon answers calls. If it cannot start, it writes the reason
to standard error and exits with status 2.

It is a module of its own, apart from wire.daemon, so that a forked NodeManager does not import argparse.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol, TextIO

from wire.daemon import Reload, ReportReady
from wire.files.hadoop_xml import load_configuration
from yarn.configuration import Configuration
from yarn.errors import YarnException

EXIT_REFUSED = 2
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"
MESSAGE_LENGTH_MAX = 6_000
"""The maximum of characters in one log message: more than a step's diagnostics or a logged call (wire.server) have."""
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class Serve(Protocol):
    """The type of a daemon's `serve` function; it returns the exit status."""

    def __call__(
        self, conf: Configuration, ready: ReportReady, /, *, reload: Reload | None = None
    ) -> Coroutine[Any, Any, int]: ...


def main(role: str, serve: Serve, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a daemon as the program of this process."""
    options = _parser(role).parse_args(arguments)
    start_logging(options.log_level)
    sys.exit(run(role, serve, options))


def run(role: str, serve: Serve, options: argparse.Namespace) -> int:
    """Run a daemon; returns its exit status."""
    if options.conf is not None:
        # ApplicationMasters inherit it from their NodeManager, and find the ResourceManager's address there.
        os.environ["HADOOP_CONF_DIR"] = str(options.conf.resolve())
    try:
        load = partial(load_configuration, options.conf, dict(options.define))
        return asyncio.run(serve(load(), partial(_write_ready, options.ready_fd), reload=load))
    except YarnException as error:
        sys.stderr.write(f"{role}: {error}\n")
        return EXIT_REFUSED


def start_logging(level: str) -> None:
    """Log to standard error.

    Only the data that the format shows is collected, which saves a third of the cost of a line.
    """
    handler = _LineHandler(sys.stderr)
    handler.setFormatter(_LineFormatter(LOG_FORMAT))
    logging.basicConfig(level=level, handlers=[handler])
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # Do not look up the caller's file and line (documented in the logging cookbook).
    logging._srcfile = None
    logging.getLogger("grpc._cython.cygrpc").addFilter(_is_not_about_a_lost_caller)
    # At DEBUG these two loggers log only their own internals.
    for name in ("asyncio", "grpc"):
        logging.getLogger(name).setLevel(max(logging.INFO, logging.getLogger().level))


def _is_not_about_a_lost_caller(record: logging.LogRecord) -> bool:
    """False for gRPC's traceback of a reply that could not be sent because the caller has closed the connection."""
    return record.exc_info is None or getattr(record.exc_info[0], "__name__", "") != "ExecuteBatchError"


class _LineHandler(logging.Handler):
    """Writes the lines of one turn of the event loop together, at the end of the turn; at once from WARNING on.

    A write takes a third of the time of a line, and a NodeManager logs four lines for a container. As with
    logging.StreamHandler, the process goes on if a line cannot be written, for example because the disk is full.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.append(f"{self.format(record)}\n")
        except Exception:
            self.handleError(record)
            return
        if record.levelno >= logging.WARNING or (loop := asyncio._get_running_loop()) is None:
            self.flush()
        elif len(self._lines) == 1:
            loop.call_soon(self.flush)

    def flush(self) -> None:
        self.acquire()
        try:
            lines, self._lines = self._lines, []
            if lines:
                with suppress(OSError):
                    self._stream.write("".join(lines))
                    self._stream.flush()
        finally:
            self.release()


class _LineFormatter(logging.Formatter):
    """Formats a message as one line of at most MESSAGE_LENGTH_MAX characters, even if it contains text from callers.

    The date and time are formatted only once a second.
    """

    _second = -1
    _written = ""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the base's name
        text = record.message
        if len(text) > MESSAGE_LENGTH_MAX:
            text = f"{text[:MESSAGE_LENGTH_MAX]}... ({len(text)} characters)"
        if not text.isprintable():
            text = "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)
        record.message = text
        return super().formatMessage(record)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  the base's name
        second = int(record.created)
        if second != self._second:
            self._second = second
            self._written = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return f"{self._written},{int(record.msecs):03d}"


def _escaped(letter: str) -> str:
    """A control character as it is written in a Python literal."""
    return repr(letter)[1:-1]


def _write_ready(descriptor: int, facts: dict[str, object]) -> None:
    os.write(descriptor, json.dumps(facts).encode() + b"\n")


def _parser(role: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"yarnling {role}", description=f"Run one {role}.", allow_abbrev=False)
    parser.add_argument("--conf", type=Path, metavar="DIR", help="directory with yarn-site.xml")
    parser.add_argument(
        "-D", dest="define", type=_definition, action="append", default=[], metavar="KEY=VALUE", help="set a key"
    )
    parser.add_argument("--ready-fd", type=int, default=1, metavar="N", help="where the ready line is written")
    parser.add_argument("--log-level", choices=LEVELS, default="INFO")
    return parser


def _definition(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value
