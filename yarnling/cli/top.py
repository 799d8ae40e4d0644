"""`yarnling top`: shows queues, nodes and applications continuously, and what each application waits for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from msgspec import Struct
from rich.live import Live
from rich.text import Text

from wire.files.plain_json import plain
from yarn.containers import ANY
from yarn.errors import YarnException
from yarn.nodes import NodeReport
from yarn.protocols.inspection import Explanation
from yarn.queues import QueueInfo
from yarn.states import FINAL_APPLICATION_STATES, NodeState
from yarnling.cli.shared.connection import connect
from yarnling.cli.shared.output import print_json, terminal
from yarnling.cli.status import view_or_problem
from yarnling.cluster.client import Client
from yarnling.cluster.explanations import amounts, waiting
from yarnling.cluster.snapshot import ClusterSnapshot, queue_tree, snapshot
from yarnling.cluster.state import NoCluster
from yarnling.report.block_characters import ABOVE, bar
from yarnling.report.escapes import in_line, shown
from yarnling.report.listing import GAP

WIDTH_MAX = 100
"""The largest width of a frame in columns; a wider frame would only have longer bars."""
NAME_CHARS = 18
"""The smallest width of the name column. The column grows with the longest name, up to 1/NAME_SHARE of the terminal's
width."""
NAME_SHARE = 3
BAR_CHARS_MIN = 8
APPLICATIONS_MAX = 20
"""The number of unfinished applications that are shown and explained, oldest first."""
NODES_MAX = 20


class TopView(Struct, frozen=True):
    """A snapshot of a cluster. `waiting` are explanations for the applications with pending requests."""

    cluster: str
    time: str
    view: ClusterSnapshot
    waiting: tuple[Explanation, ...]


def show(name: str, interval_s: float, *, once: bool, as_json: bool) -> None:
    """Print one frame, or on a terminal one frame after another until Ctrl-C or until the cluster stops."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_show(name, interval_s, once=once, as_json=as_json))


async def _show(name: str, interval_s: float, *, once: bool, as_json: bool) -> None:
    console = terminal()
    _, client = connect(name, report_waiting=False)
    async with client:
        if as_json:
            print_json(as_object(await top_view(name, client)))
            return
        if once or not console.is_terminal:
            width = min(console.width, WIDTH_MAX)
            for line in frame(await top_view(name, client), width, cut=console.is_terminal):
                console.print(line, soft_wrap=True)
            return
        with Live(console=console, auto_refresh=False, screen=True, vertical_overflow="crop") as live:
            while True:
                started_s = time.monotonic()
                live.update(await _text(name, client, min(console.width, WIDTH_MAX)), refresh=True)
                # For ten thousand nodes, a snapshot takes the ResourceManager a second. Use at most half of its time.
                await asyncio.sleep(max(interval_s, time.monotonic() - started_s))


async def _text(name: str, client: Client, width: int) -> Text:
    """A frame, or the reason why there is none, for example that the ResourceManager is down."""
    try:
        return Text("\n").join(frame(await top_view(name, client), width))
    except NoCluster:
        raise
    except YarnException as error:
        return Text(shown(error.message), "red")


async def top_view(name: str, client: Client) -> TopView:
    """Take a snapshot. Applications that this user may not view are not explained.

    Raises YarnException if the ResourceManager is down or does not answer.
    """
    view = await view_or_problem(client, name, snapshot)
    if isinstance(view, str):
        raise YarnException(view)
    moment = datetime.now(UTC).astimezone()
    return TopView(
        name, moment.isoformat(timespec="milliseconds"), view, tuple(await waiting(client, view.applications))
    )


def as_object(top: TopView) -> dict[str, object]:
    """The snapshot for JSON: the fields of `status --json`, and the explanations."""
    return {"cluster": top.cluster, "time": top.time, **plain(top.view), "waiting": plain(top.waiting)}


def frame(top: TopView, width: int, *, cut: bool = True) -> Iterator[Text]:
    """The lines of one frame. `width` determines the length of the bars. `cut`: longer lines are truncated."""
    names = ["  " * depth + queue.name for depth, queue in queue_tree(top.view.root)]
    names += [str(node.node_id) for node in top.view.nodes[:NODES_MAX]]
    longest = max(len(in_line(name)) for name in names) + GAP
    chars = max(NAME_CHARS, min(longest, width // NAME_SHARE) if cut else longest)
    for line in _lines(top, width, chars):
        if cut:
            line.truncate(width, overflow="ellipsis")
        yield line


def _lines(top: TopView, width: int, name_chars: int) -> Iterator[Text]:
    nodes, live = top.view.nodes, [app for app in top.view.applications if app.state not in FINAL_APPLICATION_STATES]
    running = sum(node.state is NodeState.RUNNING for node in nodes)
    counts = f"{running} of {len(nodes)} nodes running, {len(live)} application{'' if len(live) == 1 else 's'}"
    yield Text(in_line(f"{top.cluster}  {top.time[11:19]}  {counts}"), "bold")
    yield Text("queue: used / guaranteed / maximum", "dim")
    for depth, queue in queue_tree(top.view.root):
        yield _queue_line(depth, queue, width, name_chars)
    yield Text("node: memory and vcores in use", "dim")
    for node in nodes[:NODES_MAX]:
        yield _node_line(node, top.view.state_of(node), width, name_chars)
    for line in top.view.unregistered():
        yield Text(in_line(line), "red")
    if len(nodes) > NODES_MAX:
        yield Text(f"... and {len(nodes) - NODES_MAX} more", "dim")
    if live:
        yield Text("application: its containers, what it waits for", "dim")
    waiting = {explanation.application_id: explanation for explanation in top.waiting}
    for app in live[:APPLICATIONS_MAX]:
        containers = max(0, app.usage.used_containers)
        has = f"{containers} container{'' if containers == 1 else 's'}"
        yield Text(in_line(f"{app.application_id} {app.state.name} {app.queue.removeprefix('root.')}, {has}"))
        explanation = waiting.get(app.application_id)
        if explanation is not None:
            yield from _pending(explanation)
    if len(live) > APPLICATIONS_MAX:
        yield Text(f"... and {len(live) - APPLICATIONS_MAX} more", "dim")


def _queue_line(depth: int, queue: QueueInfo, width: int, name_chars: int) -> Text:
    used, guaranteed = queue.absolute_used_capacity, queue.absolute_capacity
    most = queue.absolute_maximum_capacity
    numbers = f" {used:>5.0%} /{guaranteed:>5.0%} /{most:>5.0%}"
    chars = max(BAR_CHARS_MIN, width - name_chars - len(numbers))
    return Text.assemble(_name("  " * depth + queue.name, name_chars), bar(used, guaranteed, most, chars), numbers)


def _node_line(node: NodeReport, state: str, width: int, name_chars: int) -> Text:
    if state != NodeState.RUNNING.name:
        return Text.assemble(_name(str(node.node_id), name_chars), (state, "red"))
    used, total = node.used, node.capability
    numbers = f" {used.memory_mb} / {total.memory_mb} MB, {used.vcores} / {total.vcores}"
    chars = max(BAR_CHARS_MIN, width - name_chars - max(24, len(numbers)))
    share = used.memory_mb / total.memory_mb if total.memory_mb > 0 else 0.0
    return Text.assemble(_name(str(node.node_id), name_chars), bar(share, 1.0, 1.0, chars), numbers)


def _pending(explanation: Explanation) -> Iterator[Text]:
    """Format the pending requests of an application with their verdicts."""
    verdicts = {(verdict.priority, verdict.allocation_request_id): verdict for verdict in explanation.verdicts}
    for ask in explanation.asks:
        if ask.resource_name == ANY:
            size = amounts(ask.capability, explanation.counted_types)
            yield Text(in_line(f"  waits for {ask.count} x {size}"), ABOVE)
            verdict = verdicts.get((ask.priority, ask.allocation_request_id))
            if verdict is not None:
                yield Text(in_line(f"    {verdict.sentence.removeprefix('waits ')}"))


def _name(text: str, chars: int) -> str:
    shown = in_line(text)
    cut = shown if len(shown) < chars else f"{shown[: chars - 2]}…"
    return f"{cut:<{chars}}"
