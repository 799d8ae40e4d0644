"""The plan of a true run, and the recording of its journal. Needs no Java."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.hadoop.truth.recorder import hosts_file, plan_of, stalled
from tests.hadoop.truth.recording import recorded_times, surplus_of, write_recording
from tests.hadoop.truth.runs import RUNS, hosts, workload_of
from yarn.resource import Resource
from yarnling.workload.distribution import Uniform
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication

SIZE = Resource(2048, 1)
APPLICATION = WorkloadApplication(
    "one",
    500,
    "ann",
    "etl",
    (TaskGroup(SIZE, (1000, 2000), hosts=("127.0.1.3",)), TaskGroup(Resource(1024, 1), (3000,), after=0)),
    am_start_ms=Uniform(2000, 4000),
    task_start_ms=Uniform(100, 900),
)
CONTAINER = {"container": "c2", "application": 0}


def test_the_plan_has_start_times_and_nothing_to_decide() -> None:
    by_name = {run.name: run for run in RUNS}
    plan = plan_of(by_name["lost-node"], Workload((APPLICATION,)), seed=1, node_port=4711)
    assert plan == plan_of(by_name["lost-node"], Workload((APPLICATION,)), seed=1, node_port=4711)
    (one,) = plan["applications"]
    assert (one["submitMs"], one["user"], one["queue"]) == (500, "ann", "etl")
    assert 2000 <= one["amStartMs"] <= 4000
    first, second = one["groups"]
    assert [1100 <= first["taskMs"][0] <= 1900, 2100 <= first["taskMs"][1] <= 2900] == [True, True]
    assert (first["after"], first["hosts"], second["after"], second["hosts"]) == (-1, ["127.0.1.3"], 0, [])
    assert first["requestId"] != second["requestId"], "one key of requests has one size"
    assert plan["losses"] == [{"atMs": 60_000, "host": "127.0.1.7"}]
    assert len({node["host"] for node in plan["nodes"]}) == 20
    json.dumps(plan)


def test_all_nodes_have_loopback_addresses_of_their_own() -> None:
    addresses = hosts(600)
    assert len(set(addresses)) == 600
    assert (addresses[0], addresses[249], addresses[250]) == ("127.0.1.1", "127.0.1.250", "127.0.2.1")


def test_both_machines_know_all_names_without_a_name_server() -> None:
    lines = hosts_file(hosts(2), "laptop").splitlines()
    assert lines == ["127.0.0.1 localhost", "127.0.0.1 laptop", "127.0.1.1 127.0.1.1", "127.0.1.2 127.0.1.2"]


def test_late_starts_of_tasks_are_counted() -> None:
    seen = [{"event": "task", "container": f"c{number}", "seen": 1000} for number in range(5)]
    ends = [("c0", 1020), ("c1", 2000), ("c2", 6150), ("c3", None), ("am", 99_000)]
    events = [*seen, *({"event": "end", "container": container, "started": at} for container, at in ends)]
    assert stalled(events) == 1 / 3
    assert stalled([]) == 0


def test_each_run_has_a_workload_and_names_of_its_own() -> None:
    assert len({run.name for run in RUNS}) == len(RUNS)
    for run in RUNS:
        workload = workload_of(run)
        wanted = {host for one in workload.applications for group in one.groups for host in group.hosts}
        assert workload.applications
        assert wanted <= {node.host for node in run.nodes}
        assert bool(wanted) == bool(run.labelled)


def test_a_journal_becomes_the_times_of_a_run(tmp_path: Path) -> None:
    am: dict[str, Any] = {"container": "c1", "am": True, "application": 0, "placed": 600, "started": 610}
    journal: list[dict[str, Any]] = [
        {"event": "began", "epoch": 1},
        {"event": "submitted", "application": 0, "queue": "etl", "at": 501, "accepted": 520},
        {"event": "am", "application": 0, "placed": 600, "started": 610, "node": "127.0.1.1"},
        {"event": "registered", "application": 0, "at": 3000},
        {
            "event": "task",
            **CONTAINER,
            "group": 0,
            "number": 0,
            "asked": 3000,
            "placed": 3400,
            "seen": 4000,
            "node": "n",
        },
        {"event": "surplus", "application": 0, "at": 4000},
        {"event": "end", **CONTAINER, "am": False, "started": 4010, "ended": 5500, "exit": 0, "mb": 2048},
        {"event": "done", "container": "c2", "at": 6000, "exit": 0},
        {"event": "unregistered", "application": 0, "at": 6010},
        {"event": "end", **am, "ended": 6020, "exit": 0, "mb": 1024, "node": "127.0.1.1"},
        {"event": "application", "application": 0, "state": "FINISHED/SUCCEEDED", "finished": 6015},
    ]
    write_recording(tmp_path, journal, {"run": "steady"})
    run = recorded_times(tmp_path, Workload((APPLICATION,)), 4096)
    (one,) = run.applications
    assert (one.name, one.queue, one.submitted_ms, one.am_wait_ms, one.run_ms) == ("one", "root.etl", 501, 99, 5514)
    assert one.am_started_ms == 3000
    assert one.task_waits_ms == (400,)
    assert one.mb_ms == (6020 - 600) * 1024 + (5500 - 3400) * 2048
    assert run.use["root.etl"] == run.use[""]
    assert surplus_of(tmp_path) == 1
    assert json.loads((tmp_path / "run.json").read_text()) == {"run": "steady", "containers": 2}
