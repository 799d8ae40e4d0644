"""Mission case A3 on real processes: a queue gets its guarantee back, and applications that lose containers still
succeed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import structs

from am.client.submission import ApplicationOptions
from am.programs.distributed_shell.client import DistributedShell
from am.programs.distributed_shell.core import Width
from am.programs.mapreduce.client import find_inputs, word_count
from rm.core.effects import Preempted
from rm.core.events import NodeHeartbeat
from tests.am.programs.on_cluster import counts_in, plain_counts
from tests.cluster.conftest import QUICK, eventually
from wire.event_log import read_event_log
from yarn.resource import Resource
from yarn.settings.yarnling import EVENT_LOG
from yarn.states import FinalApplicationStatus
from yarnling.cluster.blocking import BlockingClient
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

CAPACITY = "yarn.scheduler.capacity."
POLICY = "yarn.resourcemanager.monitor.capacity.preemption."
UNIT_MB = 128
FACTOR = 20
"""The number by which the fast time factor divides intervals."""
INTERVAL_MS, WAIT_MS = 3000 // FACTOR, 15_000 // FACTOR

MONITORED = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    POLICY + "total_preemption_per_round": "1.0",
    POLICY + "natural_termination_factor": "1.0",
    POLICY + "max_ignored_over_capacity": "0.0",
    CAPACITY + "per-node-heartbeat.maximum-offswitch-assignments": "10",
    CAPACITY + "maximum-am-resource-percent": "1.0",
}
ENGINEERING = {
    "root.queues": "engineering,support,marketing",
    "root.engineering.capacity": "60",
    "root.support.capacity": "10",
    "root.marketing.capacity": "30",
    "root.engineering.queues": "development,qa",
    "root.engineering.development.capacity": "20",
    "root.engineering.qa.capacity": "80",
    "root.engineering.development.user-limit-factor": "10",
}
FILL = {"support": 5, "marketing": 15, "development": 30}
"""Of the 50 units of ten nodes: development has its own 6, and all that is qa's."""
QA = 24


def sleeping(containers: int, queue: str) -> DistributedShell:
    """Containers that stay until they are killed."""
    unit = Resource(UNIT_MB, 1)
    return DistributedShell("exec sleep 600", Width(containers, unit), ApplicationOptions("sleep", queue, None, unit))


def used_units(client: BlockingClient, queue: str) -> int:
    return client.queue(queue).statistics.allocated_memory_mb // UNIT_MB


def longest_silence_ms(log: Path) -> int:
    """The longest time between two heartbeats of any nodes, which shows how slow the machine was."""
    _, steps = read_event_log(log)
    beats = [step.now_ms for step in steps if isinstance(step.event, NodeHeartbeat)]
    return max(after - before for before, after in pairwise(beats))


def orders(log: Path) -> Iterator[tuple[int, Preempted]]:
    """(time, what preemption did)."""
    _, steps = read_event_log(log)
    for step in steps:
        for effect in step.effects:
            if isinstance(effect, Preempted):
                yield step.now_ms, effect


@pytest.mark.case("A3")
def test_preemption_gives_queue_qa_its_guarantee(tmp_path: Path) -> None:
    """Ten nodes of 5 units: development has taken qa's guarantee, and gives it back within the wait and two rounds.

    The bound is computed: two intervals and the wait, and what the machine let heartbeats be late.
    """
    events = tmp_path / "events"
    events.mkdir()
    shares = {CAPACITY + key: value for key, value in ENGINEERING.items()}
    settings = {**QUICK, **MONITORED, **shares, EVENT_LOG.key: str(events)}
    with LocalCluster(10, memory_mb=5 * UNIT_MB, vcores=8, settings=settings, fast=True) as cluster:
        client = cluster.client
        gupta = cluster.client_of("gupta")
        for queue, units in FILL.items():
            cluster.client_of(f"of-{queue}").start(sleeping(units - 1, queue))
            eventually(lambda q=queue, n=units: used_units(client, q) == n, 60.0)
        gupta.start(sleeping(QA - 1, "qa"))
        eventually(lambda: used_units(client, "qa") == QA, 60.0)
        assert used_units(client, "development") == 6
        assert [used_units(client, queue) for queue in ("support", "marketing")] == [5, 15]
    log = events / "resourcemanager.jsonl"
    requested = {effect.container_id: at_ms for at_ms, effect in orders(log) if effect.step == "requested"}
    killed = {effect.container_id: at_ms for at_ms, effect in orders(log) if effect.step == "killed"}
    assert len(killed) == QA
    bound_ms = WAIT_MS + 2 * INTERVAL_MS + 2 * longest_silence_ms(log)
    assert all(WAIT_MS <= killed[container] - requested[container] <= bound_ms for container in killed)


@pytest.mark.case("E1")
def test_a_map_reduce_that_loses_containers_ends_with_the_right_result(tmp_path: Path) -> None:
    """Half of its maps have to go for another queue; they run again, and nothing is counted twice."""
    rng = random.Random(7)
    books = [tmp_path / f"book-{number}.txt" for number in range(4)]
    for book in books:
        book.write_text("\n".join(" ".join(f"w{rng.randrange(200)}" for _ in range(10)) for _ in range(200)))
    gate = tmp_path / "gate"
    shares = {
        CAPACITY + "root.queues": "jobs,owed",
        CAPACITY + "root.jobs.capacity": "50",
        CAPACITY + "root.owed.capacity": "50",
        CAPACITY + "root.jobs.user-limit-factor": "2",
    }
    with LocalCluster(2, memory_mb=2048, vcores=16, settings={**QUICK, **MONITORED, **shares}, fast=True) as cluster:
        client = cluster.client
        inputs = find_inputs(map(str, books))
        job = word_count(
            inputs,
            tmp_path / "out",
            options=ApplicationOptions("words", "jobs", am_resource=Resource(256, 1)),
            reduces=1,
            split_bytes=-(-sum(inputs.values()) // 14),
        )
        paused = structs.replace(job, map_command=f"while ! test -e {gate}; do sleep 0.05; done; {job.map_command}")
        report = client.start(paused)
        eventually(lambda: used_units(client, "jobs") * UNIT_MB > 3072, 60.0)
        cluster.client_of("ann").start(sleeping(15, "owed"))
        eventually(lambda: used_units(client, "owed") == 16, 60.0)
        assert used_units(client, "jobs") <= 16, "it had 26 of the 32 units"
        gate.touch()
        ended = client.wait(report.application_id, timeout_s=120)
    assert ended.final_status is FinalApplicationStatus.SUCCEEDED, ended.diagnostics
    assert counts_in(tmp_path / "out") == plain_counts(books)
