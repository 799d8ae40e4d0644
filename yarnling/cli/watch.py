"""`yarnling watch`: prints the RPCs between the processes of a cluster when they are answered, and state changes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from rich.console import OverflowMethod
from rich.text import Text

from wire.files.hadoop_xml import load_configuration
from wire.watching import calls_of, sockets
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.settings.yarnling import WATCH_DIR
from yarnling.cli.shared.output import notices, terminal
from yarnling.cluster.state import ClusterState, find_cluster
from yarnling.report.escapes import in_line
from yarnling.run.heartbeats import Heartbeats
from yarnling.run.records import Call, StateChange
from yarnling.run.watched import watched
from yarnling.run.writer import RunWriter

RESCAN_S = 0.3
"""The interval, in seconds, to look for new daemons and to check whether the cluster is still up."""
LISTED_MAX = 3
"""The number of entries of a list that are shown; longer lists are shown as the number of their entries."""
TEXT_MAX = 40


class Filter(Struct, frozen=True):
    """Selects the calls that are shown: those that match all given criteria.

    One of the patterns in `rpcs` must match.
    """

    app: ApplicationId | None = None
    node: str = ""
    rpcs: tuple[str, ...] = ()
    errors: bool = False
    every: bool = False

    def hides(self, heartbeats: Heartbeats, call: Call) -> bool:
        """True for a heartbeat without news, unless all calls or this RPC were requested."""
        return heartbeats.is_quiet(call) and not self.every and not self.rpcs

    def passes_change(self, change: StateChange) -> bool:
        """True if a state change is shown. No state change is shown if calls are filtered by error or RPC."""
        if self.errors or self.rpcs or (self.node and self.node not in (change.host, change.subject)):
            return False
        return self.app is None or _is_of(self.app, change.subject)

    def passes(self, call: Call) -> bool:
        """True if a call is shown."""
        if self.errors and not call.error:
            return False
        if self.rpcs and not any(fnmatchcase(call.rpc.lower(), pattern.lower()) for pattern in self.rpcs):
            return False
        texts = [call.source, call.target, call.error, *_texts([call.request, call.reply])]
        if self.node and self.node not in texts:
            return False
        return self.app is None or any(_is_of(self.app, text) for text in texts)


def watch(name: str, wanted: Filter, count: int | None, *, as_json: bool) -> None:
    """Print calls until the cluster stops, `count` lines are printed, or Ctrl-C is pressed."""
    state = find_cluster(name)
    if wanted.node:
        wanted = replace(wanted, node=_node_id(state, wanted.node))
    directory = Path(WATCH_DIR.maybe_of(load_configuration(Path(state.conf_dir))) or "")
    if not directory.is_dir():
        raise YarnException(f"the daemons of {name!r} do not publish their calls ({WATCH_DIR.key} is not set)")
    try:
        asyncio.run(_watch(state, directory, _Viewer(wanted, count, _JsonPrinter(name) if as_json else _Printer())))
    except KeyboardInterrupt:
        return


class _Viewer:
    """Shows the calls and changes that pass the filter. `done` is set after `count` lines."""

    def __init__(self, wanted: Filter, count: int | None, printer: _Printer | _JsonPrinter) -> None:
        self._wanted, self._left, self._printer = wanted, count, printer
        self._heartbeats = Heartbeats()
        self.done = asyncio.Event()

    def take(self, line: dict[str, Any]) -> None:
        if self.done.is_set():
            return
        if "dropped" in line:
            notices().print(f"{line['dropped']} calls were dropped because they came faster than they could be read")
            return
        record = watched(line)
        if isinstance(record, StateChange):
            if not self._wanted.passes_change(record):
                return
        elif self._wanted.hides(self._heartbeats, record) or not self._wanted.passes(record):
            return
        self._printer.record(record)
        if self._left is not None:
            self._left -= 1
            if self._left <= 0:
                self.done.set()


async def _watch(state: ClusterState, directory: Path, viewer: _Viewer) -> None:
    followed: dict[str, asyncio.Task[None]] = {}
    try:
        async with asyncio.TaskGroup() as tasks:
            while state.supervisor.process() is not None and not viewer.done.is_set():
                for daemon in sockets(directory):
                    if daemon not in followed or followed[daemon].done():
                        followed[daemon] = tasks.create_task(_follow(directory, daemon, viewer))
                with suppress(TimeoutError):
                    async with asyncio.timeout(RESCAN_S):
                        await viewer.done.wait()
            for task in followed.values():
                task.cancel()
    except BaseExceptionGroup as group:
        # The printer failed, for example because the reader of our output has exited.
        raise group.exceptions[0] from None
    if not viewer.done.is_set():
        notices().print(f"the cluster {state.name!r} has stopped")


async def _follow(directory: Path, daemon: str, viewer: _Viewer) -> None:
    async for line in calls_of(directory, daemon):
        viewer.take(line)


def in_one_line(call: Call) -> str:
    """Format a call in one line: time, caller, callee, RPC, duration, request and reply."""
    moment = _moment(call.over_ms or call.sent_ms)
    head = f"{moment} {call.source} -> {call.target} {call.rpc} {call.took_ms or 0:.1f} ms"
    if call.error:
        answer = f"! {call.error}"
    else:
        answer = f"=> {brief(call.reply)}" if call.reply is not None else ""
    if call.request is None and call.request_bytes:
        answer = f"({call.bytes_sent()} bytes)"
    return in_line(" ".join(part for part in (head, brief(call.request), answer) if part))


def change_in_one_line(change: StateChange) -> str:
    """Format a state change in one line: time, subject, states, event, and the daemon that reported it."""
    states = f"{change.source} -> {change.target}"
    return in_line(f"{_moment(change.at_ms)} {change.subject} {states} ({change.event}, {change.host})")


def _moment(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC).astimezone():%H:%M:%S}.{at_ms % 1000:03d}"


def brief(value: object, depth: int = 2) -> str:
    """Format a record briefly: empty fields (none, empty, false, 0) are left out, long lists are counted."""
    if isinstance(value, dict):
        parts = [(key, entry) for key, entry in value.items() if entry not in (None, "", [], {}, False, 0, 0.0)]
        if depth == 0:
            return f"{{{len(parts)}}}"
        inner = " ".join(f"{key}={brief(entry, depth - 1)}" for key, entry in parts)
        return inner if depth == 2 else f"{{{inner}}}"
    if isinstance(value, list):
        simple = all(not isinstance(entry, dict | list) for entry in value)
        return ",".join(map(str, value)) if simple and len(value) <= LISTED_MAX else f"({len(value)})"
    if isinstance(value, float):
        value = f"{value:.3f}".rstrip("0").rstrip(".")
    text = "" if value is None else str(value)
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


class _Printer:
    """Prints a line of text for each call and state change, which is cut on a terminal."""

    def __init__(self) -> None:
        self._console = terminal()

    def record(self, record: Call | StateChange) -> None:
        if isinstance(record, Call):
            text = Text(in_one_line(record), "red" if record.error else "")
        else:
            text = Text(change_in_one_line(record), "cyan")
        overflow: OverflowMethod = "ellipsis" if self._console.is_terminal else "ignore"
        self._console.print(text, no_wrap=True, overflow=overflow, crop=False)
        sys.stdout.flush()


class _JsonPrinter:
    """Prints a recorded run (yarnling.run.writer)."""

    def __init__(self, name: str) -> None:
        self._writer = RunWriter(self._print, f"cluster {name}")

    def record(self, record: Call | StateChange) -> None:
        self._writer.record(record)

    def _print(self, line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()


def _node_id(state: ClusterState, wanted: str) -> str:
    """The id of the node that `wanted`, a number, name or id, refers to.

    An id need not be known yet, because the node may be added later.
    """
    return wanted if ":" in wanted else state.node(wanted).node_id


def _texts(value: object) -> Iterator[str]:
    """Yield all strings in `value`, including keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield key
            yield from _texts(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _texts(entry)


def _is_of(app: ApplicationId, text: str) -> bool:
    """True if `text` contains the id of the application, or the id of one of its attempts or containers."""
    if text == str(app):
        return True
    for kind, prefix in ((ApplicationAttemptId, "appattempt_"), (ContainerId, "container_")):
        for word in text.split(" ") if prefix in text else ():
            if word.startswith(prefix):
                try:
                    return kind.parse(word).application_id == app
                except InvalidArgumentException:
                    continue
    return False
