"""Asynchronous scheduling, compared by distributions: threads and random numbers decide, so no two runs are alike.

A scenario fills a cluster. Hadoop's ResourceManager runs it RUNS times, and the core as often with other random
numbers; what is compared is how many containers each queue has on each node once nothing more fits.

    python -m tests.conformance.asynchronous        records Hadoop's runs again (needs what scripts/oracle needs)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.conformance.cluster import RecordedCluster
from tests.conformance.recording import Json
from tests.conformance.scenario import Scenario
from yarn.machine import Tick

RUNS = 20
RECORDED = Path(__file__).parent / "asynchronous.json"
Counts = dict[str, int]
"""{QUEUE@HOST: containers, AMs included}."""

_CONF = {
    "yarn.scheduler.capacity.schedule-asynchronously.enable": "true",
    # No node counts as silent, however long a run takes.
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "500000",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}


def _queues(shares: Mapping[str, int], **settings: str) -> dict[str, str]:
    prefix = "yarn.scheduler.capacity.root."
    found = {prefix + "queues": ",".join(shares)}
    for name, share in shares.items():
        found[f"{prefix}{name}.capacity"] = str(share)
        found |= {f"{prefix}{name}.{key.replace('_', '-')}": value for key, value in settings.items()}
    return found


def _steps(nodes: Sequence[int], apps: Mapping[str, str], memory: Sequence[int], count: int) -> list[Json]:
    """Nodes of so many GB; {application: queue}, each with `count` requests for containers of each size in MB."""
    steps: list[Json] = []
    for number, gigabytes in enumerate(nodes, 1):
        resource = {"memory": gigabytes * 1024, "vcores": 64}
        steps.append({"op": "register_node", "node": f"h{number}", "resource": resource})
    for app, queue in apps.items():
        am = {"memory": 1024, "vcores": 1}
        steps.append({"op": "submit", "app": app, "user": app[0], "queue": queue, "am": am})
    steps.append({"op": "rest"})
    steps += [{"op": "register", "app": app} for app in apps]
    for app in apps:
        asks = [
            {"priority": priority, "resource": {"memory": size, "vcores": 1}, "name": "*", "count": count}
            for priority, size in enumerate(memory, 1)
        ]
        steps.append({"op": "allocate", "app": app, "asks": asks})
    steps.append({"op": "rest"})
    return steps


_THREE = {"a": 50, "b": 30, "c": 20}
SCENARIOS = {
    "saturated": Scenario(
        "saturated",
        {**_CONF, **_queues(_THREE, user_limit_factor="10")},
        _steps([16, 16, 16, 16], {"u1": "a", "v1": "a", "u2": "b", "u3": "c", "v3": "c"}, [1024], 80),
    ),
    "sizes": Scenario(
        "sizes",
        {**_CONF, **_queues(_THREE, user_limit_factor="10")},
        _steps([8, 12, 20, 32], {"u1": "a", "u2": "b", "u3": "c"}, [3072, 2048, 1024], 12),
    ),
    "half": Scenario(
        "half",
        {**_CONF, **_queues(_THREE)},
        _steps([16, 16, 16, 16], {"u1": "a", "u2": "b", "u3": "c"}, [1024], 9),
    ),
}


WALKS_MAX = 10_000
WALK_INTERVAL_MS_MAX = 1000
"""A deadline that is further away than this is not that of a walk."""


class AsynchronousCluster(RecordedCluster):
    """The core with asynchronous scheduling."""

    def _rest(self, _: Json, reply: Json) -> None:
        """Let walks place what they can, and count the containers by queue and node."""
        scheduler = self.core.scheduler
        for _walk in range(WALKS_MAX):
            due_ms = scheduler.next_deadline_ms()
            if due_ms is None or due_ms > self.rm.now_ms + WALK_INTERVAL_MS_MAX:
                break
            self.rm.now_ms = max(self.rm.now_ms, due_ms)
            self.rm.send(Tick())
        reply["placed"] = dict(
            Counter(
                f"{container.queue}@{node_id.host}"
                for node_id, node in scheduler.nodes.items()
                for container in node.containers.values()
            )
        )


def ours(scenario: Scenario, seed: int) -> Counts:
    """A run of the core."""
    draw = Random(seed).randrange
    cluster = AsynchronousCluster(scenario.configuration, draw=draw)
    replies = [cluster.step(step) for step in scenario.steps]
    counts: Counts = replies[-1]["placed"]
    return counts


def by_queue(counts: Counts) -> Counts:
    return _summed(counts, 0)


def by_node(counts: Counts) -> Counts:
    return _summed(counts, 1)


def _summed(counts: Counts, part: int) -> Counts:
    found: Counts = {}
    for place, number in counts.items():
        key = place.split("@")[part]
        found[key] = found.get(key, 0) + number
    return found


def record() -> dict[str, list[Counts]]:
    """Hadoop's runs of each scenario."""
    from tests.conformance.oracle.hadoop import Hadoop

    with Hadoop() as hadoop:
        return {
            name: [_last(list(hadoop.record(scenario))) for _ in range(RUNS)] for name, scenario in SCENARIOS.items()
        }


def _last(lines: list[dict[str, Any]]) -> Counts:
    counts: Counts = lines[-1]["reply"]["placed"]
    return counts


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(record(), indent=1, sort_keys=True) + "\n")
