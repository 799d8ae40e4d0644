"""The settings of a stage: queues as {path: properties}, and preemption."""

from __future__ import annotations

from collections.abc import Mapping

SCHEDULER = "yarn.scheduler.capacity."
MONITOR = "yarn.resourcemanager.monitor.capacity.preemption."


def queues(tree: Mapping[str, str | Mapping[str, str]]) -> dict[str, str]:
    """{key: value} for queues given as {path below root: capacity, or {property: value}}.

    queues({"a": "60", "b": {"capacity": "40", "maximum-capacity": "50"}, "b.c": "100"})
    """
    settings: dict[str, str] = {}
    children: dict[str, list[str]] = {}
    for path, given in tree.items():
        parent, _, name = f"root.{path}".rpartition(".")
        children.setdefault(parent, []).append(name)
        properties = {"capacity": given} if isinstance(given, str) else given
        settings |= {f"{SCHEDULER}root.{path}.{key}": value for key, value in properties.items()}
    return {**{f"{SCHEDULER}{parent}.queues": ",".join(names) for parent, names in children.items()}, **settings}


def preemption(properties: Mapping[str, str]) -> dict[str, str]:
    """{key: value} that enable preemption, with {property: value} of its policy."""
    enabled = {"yarn.resourcemanager.scheduler.monitor.enable": "true"}
    return enabled | {f"{MONITOR}{key}": value for key, value in properties.items()}
