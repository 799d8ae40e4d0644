"""The events of a run, from the steps of its cores: a simulation's trace, or the event logs of processes.

Both have the same records, so one reader serves for both. Times of different hosts are compared: they have one clock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from yarn.ids import ContainerId

AM_NUMBER = 1
"""The number of the container of an AM, in its application."""


class Key(NamedTuple):
    """A container: the number of its application, and its own. Applications count from 1 in each run."""

    application: int
    number: int


class Observed:
    """A run. {application or container: time in ms}; `learned`: when the AM learned of the allocation, in this order.

    For the container of an AM that is when it was allocated. `nodes`: the number of the node that it ran on.
    """

    def __init__(self, steps: Iterable[tuple[int, str, list[Any]]]) -> None:
        self.submitted: dict[int, int] = {}
        self.registered: dict[int, int] = {}
        self.finished: dict[int, int] = {}
        self.learned: dict[Key, int] = {}
        self.started: dict[Key, int] = {}
        self.ended: dict[Key, int] = {}
        hosts: dict[Key, str] = {}
        all_hosts = set()
        for now_ms, host, effects in steps:
            all_hosts.add(host)
            for effect in effects:
                kind = str(effect["$"]).rpartition(".")[2]
                if kind == "StateChanged":
                    self._changed(now_ms, effect)
                    if effect["kind"] == "NMContainer":
                        hosts[_key(effect["subject"])] = host
                elif kind == "Reply" and str((effect["value"] or {}).get("$", "")).endswith(".AllocateResponse"):
                    for container in effect["value"]["allocated"]:
                        self.learned.setdefault(_key(container["id"]["$id"]), now_ms)
        numbers = {host: number for number, host in enumerate(sorted(filter(_is_node, all_hosts), key=_numbers), 1)}
        self.nodes = {key: numbers[host] for key, host in hosts.items()}

    def _changed(self, now_ms: int, change: dict[str, Any]) -> None:
        kind, subject, event, target = (change[name] for name in ("kind", "subject", "event", "target"))
        if kind == "RMApp" and event == "START":
            self.submitted[_application(subject)] = now_ms
        elif kind == "RMApp" and target == "FINISHED":
            self.finished[_application(subject)] = now_ms
        elif kind == "RMAppAttempt" and event == "CONTAINER_ALLOCATED":
            self.learned[Key(_application(subject), AM_NUMBER)] = now_ms
        elif kind == "RMAppAttempt" and event == "REGISTERED":
            self.registered[_application(subject)] = now_ms
        elif kind == "NMContainer" and target == "RUNNING":
            self.started[_key(subject)] = now_ms
        elif kind == "NMContainer" and change["source"] == "RUNNING":
            self.ended[_key(subject)] = now_ms


def steps_of_trace(lines: Iterable[str]) -> Iterator[tuple[int, str, list[Any]]]:
    """The steps in the lines of a simulation's trace."""
    for line in lines:
        now_ms, host, _, effects = json.loads(line)
        yield now_ms, host, effects


def steps_of_logs(directory: Path) -> Iterator[tuple[int, str, list[Any]]]:
    """The steps in all event logs of a cluster, in the order of their times."""
    steps = []
    for path in sorted(directory.glob("*.jsonl")):
        with path.open() as file:
            next(file)
            steps += [(now_ms, path.stem, effects) for now_ms, _, _, effects in map(json.loads, file)]
    yield from sorted(steps, key=lambda step: step[0])


def _is_node(host: str) -> bool:
    return host.startswith(("nm-", "nodemanager-"))


def _numbers(host: str) -> list[int]:
    """The numbers in a host's name or address, without its port: nodes are named in their order."""
    return [int(number) for number in re.findall(r"\d+", host.partition(":")[0])]


def _application(subject: str) -> int:
    """The number of the application in the id of an application or an attempt."""
    return int(subject.split("_")[2])


def _key(container_id: str) -> Key:
    parsed = ContainerId.parse(container_id)
    return Key(parsed.application_id.id, parsed.sequence)
