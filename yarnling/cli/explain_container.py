"""`yarnling explain CONTAINER_ID`: shows why a container is on its node, and why it was preempted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from rich.text import Text

from yarn.ids import ContainerId
from yarn.protocols.inspection import ContainerExplanation
from yarn.times import duration
from yarnling.cli.shared.arguments import reading_arguments
from yarnling.cli.shared.connection import connect
from yarnling.cli.shared.output import print_indented, print_json, terminal
from yarnling.cluster.explanations import amounts
from yarnling.report.escapes import in_line


def show_container(name: str, container: str, user: str, *, as_json: bool) -> None:
    """Print the explanation of a container. Raises YarnException if the ResourceManager refuses the request."""
    with reading_arguments():
        container_id = ContainerId.parse(container)
    found = asyncio.run(_load(name, container_id, user))
    if as_json:
        print_json(found)
        return
    console = terminal()
    for line in container_explained(found):
        print_indented(console, line)


async def _load(name: str, container_id: ContainerId, user: str) -> ContainerExplanation:
    _, client = connect(name, user)
    async with client:
        return await client.explain_container(container_id)


def container_explained(found: ContainerExplanation) -> Iterator[Text]:
    """The lines of an explanation: what happened in order, each preemption with the numbers of its round."""
    size = amounts(found.resource)
    title = f"{found.container_id} of {found.user} in {found.queue}: {size} on {found.node_id}, {found.state}"
    yield Text(in_line(title), "bold")
    *before, last = found.sentences or ("nothing is known about it",)
    has_ended = found.ended_ms is not None and bool(before)
    for sentence in before if has_ended else (*before, last):
        yield Text(in_line(f"  {sentence}"))
    for passed in found.passed:
        earlier_ms = max(0, (found.placed_ms or found.reserved_ms or found.now_ms) - passed.at_ms)
        when = f"{duration(earlier_ms)} before"
        yield Text(in_line(f"    {passed.node_id.host} had refused it {when}: {passed.message}"))
    for step in found.preemptions:
        yield Text(in_line(f"  {step.sentence}"), "bold yellow")
        for line in step.numbers:
            yield Text(in_line(f"    {line}"))
    if has_ended:
        yield Text(in_line(f"  {last}"))
