"""`yarnling watch`: calls between the processes of a cluster as they are answered, and changes of state."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from wire.hadoop_xml import load_configuration
from wire.json_records import from_json
from wire.watching import calls_of, sockets
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.settings.yarnling import WATCH_DIR
from yarnling.cli import json_form
from yarnling.cli.terminal import in_line, notices, terminal
from yarnling.cluster.state import ClusterState, find_cluster

RESCAN_S = 0.3
"""Between two looks for daemons that are new, and whether the cluster is still there."""
LISTED_MAX = 3
"""Entries of a list that a line shows; of longer ones it shows the number."""
TEXT_MAX = 40

HEARTBEATS = frozenset({"nodeHeartbeat", "packHeartbeat", "allocate"})
# Fields of heartbeats that differ from one to the next although nothing has happened, ...
_MEASURED = {"response_id", "response_ids", "nodes", "node_id", "next_heartbeat_ms", "headroom", "reported_ms"}
_MEASURED |= {"containers_utilization", "node_utilization", "container_token_key_id", "nm_token_key_id"}
# ... and those that say how things are, which are news only if they differ. All others are news if they are not empty.
_STANDING = {"containers", "health", "keep_alive_applications", "action", "progress", "cluster_nodes", "tracking_url"}
_STANDING |= {"application_priority"}
_NOTHING: tuple[object, ...] = (None, "", [], {}, False, 0)

Print = Callable[[dict[str, Any]], None]


class Filter(Struct, frozen=True):
    """Which calls are told: all that are given must hold. `rpcs`: patterns, any of which will do."""

    app: ApplicationId | None = None
    node: str = ""
    rpcs: tuple[str, ...] = ()
    errors: bool = False
    every: bool = False

    def hides(self, heartbeats: Heartbeats, call: dict[str, Any]) -> bool:
        """Whether a call is a heartbeat that carries nothing, and neither its name nor all calls were asked for."""
        return heartbeats.is_quiet(call) and not self.every and not self.rpcs

    def passes_change(self, change: dict[str, Any]) -> bool:
        """A change of state; with a filter for calls there are none."""
        if self.errors or self.rpcs or (self.node and self.node not in (change["of"], change["subject"])):
            return False
        return self.app is None or _is_of(self.app, change["subject"])

    def passes(self, call: dict[str, Any]) -> bool:
        """`call` as `told` has made it."""
        if self.errors and call["error"] is None:
            return False
        if self.rpcs and not any(fnmatchcase(call["rpc"].lower(), pattern.lower()) for pattern in self.rpcs):
            return False
        if self.node and self.node not in (call["from"], call["to"]) and self.node not in _texts(call):
            return False
        return self.app is None or any(_is_of(self.app, text) for text in _texts(call))


def watch(name: str, wanted: Filter, count: int | None, *, as_json: bool) -> None:
    """Print calls until the cluster ends, `count` were told, or somebody interrupts."""
    state = find_cluster(name)
    if wanted.node:
        wanted = replace(wanted, node=_node_id(state, wanted.node))
    show = _print_json if as_json else _printer()
    directory = Path(WATCH_DIR.maybe_of(load_configuration(Path(state.conf_dir))) or "")
    if not directory.is_dir():
        raise YarnException(f"the daemons of {name!r} tell nobody of their calls ({WATCH_DIR.key} is not set)")
    try:
        asyncio.run(_watch(state, directory, _Told(wanted, count, show)))
    except KeyboardInterrupt:
        return


class Heartbeats:
    """Remembers what each caller's last heartbeat said, to find those that carry nothing new."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], object] = {}

    def is_quiet(self, call: dict[str, Any]) -> bool:
        """Whether this is a heartbeat that says what the caller's last one said. Ask once for each call, in order."""
        records = [call["request"], call["reply"]]
        if call["rpc"] not in HEARTBEATS or call["error"] is not None or not all(isinstance(r, dict) for r in records):
            return False
        said = [{key: entry for key, entry in record.items() if key not in _MEASURED} for record in records]
        standing = [{key: _steady(entry) for key, entry in record.items() if key in _STANDING} for record in said]
        caller = (call["from"], call["rpc"])
        is_same, self._last[caller] = self._last.get(caller) == standing, standing
        return is_same and all(
            entry in _NOTHING for record in said for key, entry in record.items() if key not in _STANDING
        )


def _steady(value: Any) -> Any:
    """Without the fields that are measured."""
    if isinstance(value, dict):
        return {key: _steady(entry) for key, entry in value.items() if key not in _MEASURED}
    return value


class _Told:
    """What passes the filter is shown; `done` when it was enough."""

    def __init__(self, wanted: Filter, count: int | None, show: Print) -> None:
        self._wanted, self._left, self._show = wanted, count, show
        self._heartbeats = Heartbeats()
        self.done = asyncio.Event()

    def take(self, line: dict[str, Any]) -> None:
        if self.done.is_set():
            return
        if "dropped" in line:
            notices().print(f"{line['dropped']} calls were left out: they came faster than they were read")
            return
        if "target" in line:
            if not self._wanted.passes_change(line):
                return
            self._show(line)
        else:
            call = told(line)
            if self._wanted.hides(self._heartbeats, call) or not self._wanted.passes(call):
                return
            self._show(call)
        if self._left is not None:
            self._left -= 1
            if self._left <= 0:
                self.done.set()


async def _watch(state: ClusterState, directory: Path, to: _Told) -> None:
    followed: dict[str, asyncio.Task[None]] = {}
    try:
        async with asyncio.TaskGroup() as tasks:
            while state.supervisor.process() is not None and not to.done.is_set():
                for daemon in sockets(directory):
                    if daemon not in followed or followed[daemon].done():
                        followed[daemon] = tasks.create_task(_follow(directory, daemon, to))
                with suppress(TimeoutError):
                    async with asyncio.timeout(RESCAN_S):
                        await to.done.wait()
            for task in followed.values():
                task.cancel()
    except BaseExceptionGroup as group:
        # Such as a reader of our output that has gone.
        raise group.exceptions[0] from None
    if not to.done.is_set():
        notices().print(f"the cluster {state.name!r} has ended")


async def _follow(directory: Path, daemon: str, to: _Told) -> None:
    async for line in calls_of(directory, daemon):
        to.take(line)


def told(line: dict[str, Any]) -> dict[str, Any]:
    """A line with its records as JSON for programs; what this version cannot read stays as it came."""
    call = dict(line)
    for part in ("request", "reply"):
        try:
            call[part] = json_form.plain(from_json(line[part]))
        except (InvalidArgumentException, TypeError):
            call[part] = line[part]
    return call


def in_one_line(call: dict[str, Any]) -> str:
    """When, who to whom, which call, how long it took, what was said."""
    head = f"{_moment(call['at_ms'])} {call['from']} -> {call['to']} {call['rpc']} {call['ms']:.1f} ms"
    request = brief(call["request"])
    if call["error"] is not None:
        answer = f"! {call['error']['exception'].rpartition('.')[2]}: {call['error']['message']}"
    else:
        answer = f"=> {brief(call['reply'])}" if call["reply"] is not None else ""
    if "left_out_bytes" in call:
        answer = f"({call['left_out_bytes']} bytes)"
    return in_line(" ".join(part for part in (head, request, answer) if part))


def change_in_one_line(change: dict[str, Any]) -> str:
    """When, what, from which state to which, on which event, and at which daemon."""
    states = f"{change['source']} -> {change['target']}"
    return in_line(f"{_moment(change['at_ms'])} {change['subject']} {states} ({change['event']}, {change['of']})")


def _moment(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC).astimezone():%H:%M:%S}.{at_ms % 1000:03d}"


def brief(value: Any, depth: int = 2) -> str:
    """A record in some words: what says nothing (none, empty, false, 0) is left out, long lists are counted."""
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


def _print_json(call: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(call) + "\n")
    sys.stdout.flush()


def _printer() -> Print:
    console = terminal()

    def show(call: dict[str, Any]) -> None:
        if "target" in call:
            text = Text(change_in_one_line(call), "cyan")
        else:
            text = Text(in_one_line(call), "red" if call["error"] is not None else "")
        console.print(text, no_wrap=True, overflow="ellipsis" if console.is_terminal else "ignore", crop=False)
        sys.stdout.flush()

    return show


def _node_id(state: ClusterState, wanted: str) -> str:
    """A node by number, name or id; an id is taken of nodes that have come since, too."""
    return wanted if ":" in wanted else state.node(wanted).node_id


def _texts(value: Any) -> Iterator[str]:
    """All texts in it, those that are keys too."""
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
    """True for the application's id, and for one of an attempt or a container of it."""
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
