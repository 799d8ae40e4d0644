"""`yarnling queue`: show queues (Hadoop's QueueCLI)."""

from __future__ import annotations

from collections.abc import Iterator

from yarn.applications import DEFAULT_PARTITION
from yarn.errors import InvalidArgumentException
from yarn.queues import QueueInfo
from yarnling.cli.hadoop import form
from yarnling.cli.hadoop.verb import REFUSED, Invocation, Option, Verb

ALL = "all"
HEADER = (
    "Queue Name",
    "Queue Path",
    "State",
    "Capacity",
    "Current Capacity",
    "Maximum Capacity",
    "Weight",
    "Maximum Parallel Apps",
)


async def _run(call: Invocation) -> int:
    if "status" in call.given:
        return await _status(call) if call.given.only("status") else call.refuse()
    return await _list(call) if call.given.only("list") else call.refuse()


async def _status(call: Invocation) -> int:
    name = call.given.one("status")
    try:
        queue = await call.client.queue(name)
    except InvalidArgumentException:
        call.show(None, f"Cannot get queue from RM by queueName = {name}, please check.")
        return REFUSED
    call.show(queue, "\n".join(_lines(queue)))
    return 0


def _lines(queue: QueueInfo) -> list[str]:
    return [
        "Queue Information : ",
        f"Scheduler Name : {queue.scheduler}",
        f"Queue Name : {queue.name}",
        f"Queue Path : {queue.path}",
        f"\tState : {queue.state.name}",
        f"\tCapacity : {form.percent(queue.capacity)}",
        f"\tCurrent Capacity : {form.percent(queue.current_capacity)}",
        f"\tMaximum Capacity : {form.percent(queue.maximum_capacity)}",
        f"\tWeight : {form.hundredths(queue.weight)}",
        f"\tMaximum Parallel Apps : {queue.max_parallel_apps}",
        f"\tDefault Node Label expression : {queue.default_label_expression.strip() or DEFAULT_PARTITION}",
        f"\tAccessible Node Labels : {','.join(sorted(queue.accessible_labels))}",
        f"\tPreemption : {_switch(disabled=queue.preemption_disabled)}",
        f"\tIntra-queue Preemption : {_switch(disabled=queue.intra_queue_preemption_disabled)}",
    ]


def _switch(*, disabled: bool) -> str:
    return "disabled" if disabled else "enabled"


async def _list(call: Invocation) -> int:
    """List the children of a queue; `all` lists every queue below the root. An unknown parent is an error."""
    parent = call.given.one("list")
    if parent.lower() == ALL:
        queues = list(_below(await call.client.queue("root")))
    else:
        queues = list((await call.client.queue(parent)).children)
    call.show(queues, form.box(f"{len(queues)} queues were found", HEADER, [_cells(queue) for queue in queues]))
    return 0


def _below(queue: QueueInfo) -> Iterator[QueueInfo]:
    for child in queue.children:
        yield child
        yield from _below(child)


def _cells(queue: QueueInfo) -> tuple[object, ...]:
    return (
        queue.name,
        queue.path,
        queue.state.name,
        form.percent(queue.capacity),
        form.percent(queue.current_capacity),
        form.percent(queue.maximum_capacity),
        form.hundredths(queue.weight),
        queue.max_parallel_apps,
    )


QUEUE = Verb(
    "queue",
    (
        Option("status", "print the state, capacities and use of a queue", "QUEUE"),
        Option("list", "list the queues below a queue; `all` lists every queue", "PARENT"),
    ),
    _run,
    commands=("status", "list"),
    without_options=REFUSED,
)
