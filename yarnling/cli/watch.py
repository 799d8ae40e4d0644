"""`yarnling watch`: prints the RPCs between the processes of a cluster when they are answered, and state changes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from msgspec import Struct
from msgspec.structs import replace
from rich.console import OverflowMethod
from rich.text import Text

from wire.hadoop_xml import load_configuration
from wire.json_records import from_json
from wire.plain_json import plain
from wire.watching import calls_of, sockets
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.settings.yarnling import WATCH_DIR
from yarnling.cli.output import notices, terminal
from yarnling.cluster.state import ClusterState, find_cluster
from yarnling.report.escapes import in_line
from yarnling.timeline.heartbeats import Heartbeats

RESCAN_S = 0.3
"""The interval, in seconds, to look for new daemons and to check whether the cluster is still up."""
LISTED_MAX = 3
"""The number of entries of a list that are shown; longer lists are shown as the number of their entries."""
TEXT_MAX = 40

Call = TypedDict(
    "Call",
    {
        "at_ms": int,
        "ms": float,
        "from": str,
        "to": str,
        "rpc": str,
        "request": object,
        "reply": object,
        "error": dict[str, str] | None,
        "request_bytes": int,
        "reply_bytes": int,
        "left_out_bytes": NotRequired[int],
    },
)
"""An RPC, as a daemon publishes it (wire.watching). `request` and `reply` are records as JSON, None if left out."""


class StateChange(TypedDict):
    """A transition of `subject`. `of` is the daemon that reports it; `kind` is the state machine, for example RMApp."""

    at_ms: int
    of: str
    kind: str
    subject: str
    event: str
    source: str
    target: str


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
        if self.errors or self.rpcs or (self.node and self.node not in (change["of"], change["subject"])):
            return False
        return self.app is None or _is_of(self.app, change["subject"])

    def passes(self, call: Call) -> bool:
        """True if a call, as returned by `readable`, is shown."""
        if self.errors and call["error"] is None:
            return False
        if self.rpcs and not any(fnmatchcase(call["rpc"].lower(), pattern.lower()) for pattern in self.rpcs):
            return False
        if self.node and self.node not in (call["from"], call["to"]) and self.node not in _texts(call):
            return False
        return self.app is None or any(_is_of(self.app, text) for text in _texts(call))


def watch(name: str, wanted: Filter, count: int | None, *, as_json: bool) -> None:
    """Print calls until the cluster stops, `count` lines are printed, or Ctrl-C is pressed."""
    state = find_cluster(name)
    if wanted.node:
        wanted = replace(wanted, node=_node_id(state, wanted.node))
    directory = Path(WATCH_DIR.maybe_of(load_configuration(Path(state.conf_dir))) or "")
    if not directory.is_dir():
        raise YarnException(f"the daemons of {name!r} do not publish their calls ({WATCH_DIR.key} is not set)")
    try:
        asyncio.run(_watch(state, directory, _Viewer(wanted, count, _Printer(as_json=as_json))))
    except KeyboardInterrupt:
        return


class _Viewer:
    """Shows the calls and changes that pass the filter. `done` is set after `count` lines."""

    def __init__(self, wanted: Filter, count: int | None, printer: _Printer) -> None:
        self._wanted, self._left, self._printer = wanted, count, printer
        self._heartbeats = Heartbeats()
        self.done = asyncio.Event()

    def take(self, line: dict[str, Any]) -> None:
        if self.done.is_set():
            return
        if "dropped" in line:
            notices().print(f"{line['dropped']} calls were dropped because they came faster than they could be read")
            return
        if "target" in line:
            change = cast(StateChange, line)
            if not self._wanted.passes_change(change):
                return
            self._printer.change(change)
        else:
            call = readable(cast(Call, line))
            if self._wanted.hides(self._heartbeats, call) or not self._wanted.passes(call):
                return
            self._printer.call(call)
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


def readable(call: Call) -> Call:
    """Convert the records of a call to the form that --json prints.

    A record that cannot be decoded is left unchanged.
    """
    converted = call.copy()
    converted["request"], converted["reply"] = _decoded(call["request"]), _decoded(call["reply"])
    return converted


def _decoded(record: Any) -> object:
    try:
        return cast(object, plain(from_json(record)))
    except (InvalidArgumentException, TypeError):
        return cast(object, record)


def in_one_line(call: Call) -> str:
    """Format a call in one line: time, caller, callee, RPC, duration, request and reply."""
    head = f"{_moment(call['at_ms'])} {call['from']} -> {call['to']} {call['rpc']} {call['ms']:.1f} ms"
    request = brief(call["request"])
    if call["error"] is not None:
        answer = f"! {call['error']['exception'].rpartition('.')[2]}: {call['error']['message']}"
    else:
        answer = f"=> {brief(call['reply'])}" if call["reply"] is not None else ""
    if "left_out_bytes" in call:
        answer = f"({call['left_out_bytes']} bytes)"
    return in_line(" ".join(part for part in (head, request, answer) if part))


def change_in_one_line(change: StateChange) -> str:
    """Format a state change in one line: time, subject, states, event, and the daemon that reported it."""
    states = f"{change['source']} -> {change['target']}"
    return in_line(f"{_moment(change['at_ms'])} {change['subject']} {states} ({change['event']}, {change['of']})")


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
    """Prints a line for each call and state change, as JSON or as text, which is cut on a terminal."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._console = terminal()

    def call(self, call: Call) -> None:
        if self._as_json:
            self._print_json(call)
        else:
            self._print(Text(in_one_line(call), "red" if call["error"] is not None else ""))

    def change(self, change: StateChange) -> None:
        if self._as_json:
            self._print_json(change)
        else:
            self._print(Text(change_in_one_line(change), "cyan"))

    def _print_json(self, line: Call | StateChange) -> None:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    def _print(self, text: Text) -> None:
        overflow: OverflowMethod = "ellipsis" if self._console.is_terminal else "ignore"
        self._console.print(text, no_wrap=True, overflow=overflow, crop=False)
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
