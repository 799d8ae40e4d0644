"""A picture in characters: which applications run, which wait, and for how long."""

from __future__ import annotations

from collections.abc import Iterator

from yarnling.report.block_characters import BLOCKS, LEVELS
from yarnling.whatif.containers import ContainerOutcome
from yarnling.whatif.result import WhatIfResult

WAITS = "·"
COLUMNS = 64


def column_ms(*results: WhatIfResult) -> int:
    """The time of a column, in whole seconds, so that the longest of these runs fits."""
    longest_ms = max(result.until_ms for result in results)
    return 1000 * max(1, -(-longest_ms // (1000 * COLUMNS)))


def rows_of(result: WhatIfResult, slots: int, per_column_ms: int) -> Iterator[str]:
    """A row for each application: a block as high as its part of the cluster's `slots`, or · while it waits for its
    first container, or has requests and nothing but its AM.
    """
    containers: list[list[ContainerOutcome]] = [[] for _ in result.applications]
    for container in result.containers:
        containers[container.application].append(container)
    for own in containers:
        times_ms = range(per_column_ms // 2, result.until_ms, per_column_ms)
        yield "".join(_character(own, at_ms, slots) for at_ms in times_ms)[:COLUMNS].rstrip()


def _character(containers: list[ContainerOutcome], at_ms: int, slots: int) -> str:
    held = sum(_is_between(each.allocated_ms, at_ms, each.ended_ms) for each in containers)
    tasks = sum(_is_between(each.allocated_ms, at_ms, each.ended_ms) and not each.is_am for each in containers)
    over = (each.withdrawn_ms if each.allocated_ms is None else each.allocated_ms for each in containers)
    waits = any(_is_between(each.requested_ms, at_ms, end) for each, end in zip(containers, over, strict=True))
    if waits and not tasks:
        return WAITS
    return BLOCKS[min(LEVELS, -(-held * LEVELS // slots))]


def _is_between(from_ms: int | None, at_ms: int, until_ms: int | None) -> bool:
    return from_ms is not None and from_ms <= at_ms and (until_ms is None or at_ms < until_ms)
