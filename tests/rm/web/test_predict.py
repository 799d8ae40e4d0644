"""Predictions by REST: the headline of a comparison for the recorded day."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rm.shell import predictions
from rm.shell.web import predict
from tests.hadoop.scheduler_conf_scenes import queue, update
from tests.rm.served_cluster import Cluster, configuration, serving
from tests.rm.web.http import Reply, ask
from wire.files.hadoop_xml import read_configuration, to_xml
from yarn.configuration import Configuration
from yarn.settings.yarnling import PREDICTION_NODES, PREDICTION_TIMEOUT, PREDICTION_WORKLOAD

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "what-if" / "move-capacity"
WEB = "yarn.resourcemanager.webapp.address"
NODES = "nodes:\n  - {host: worker, memory: 8GB, vcores: 8, count: 2}\n"
WORKLOAD = """
lasts: 8m
queues:
  - queue: etl
    users: nightly
    per_hour: 30
    applications:
      - name: load
        am: {memory: 512MB}
        tasks:
          - {containers: 10, memory: 1GB, duration: 4m}
  - queue: adhoc
    users: [ann, bob]
    per_hour: 60
    applications:
      - name: query
        am: {memory: 512MB}
        tasks:
          - {containers: 6, memory: 1GB, duration: 90s}
"""
CHANGE = update(queue("root.etl", capacity="10"), queue("root.adhoc", capacity="75"))


@pytest.fixture
def conf(tmp_path: Path) -> Configuration:
    """The queues of the example, with the settings of a cluster that has none of its own."""
    base = configuration(tmp_path)
    kept = {key: entry for key in base if not key.startswith("yarn.scheduler.") and (entry := base.entry(key))}
    (tmp_path / "nodes.yaml").write_text(NODES)
    (tmp_path / "day.yaml").write_text(WORKLOAD)
    settings = {
        "yarn.yarnling.web.enabled": "true",
        WEB: "127.0.0.1:0",
        "yarn.admin.acl": "admin",
        PREDICTION_WORKLOAD.key: str(tmp_path / "day.yaml"),
        PREDICTION_NODES.key: str(tmp_path / "nodes.yaml"),
    }
    example = read_configuration(EXAMPLE / "before")
    return Configuration({**{key: example.entry(key) for key in example}, **kept}).overridden(settings)  # type: ignore[dict-item]


async def call(cluster: Cluster, body: object, method: str = "POST", path: str = "", user: str = "admin") -> Reply:
    target = f"/ws/yarnling/v1/predict{path}?user.name={user}"
    return await ask(cluster.addresses[WEB], target, method=method, body=body)


def compared(directory: Path, conf: Configuration) -> dict[str, Any]:
    """The answer of the command to the same change."""
    after = {"yarn.scheduler.capacity.root.etl.capacity": "10", "yarn.scheduler.capacity.root.adhoc.capacity": "75"}
    queues = {key: entry.value for key in conf if key.startswith("yarn.scheduler.") and (entry := conf.entry(key))}
    for name, values in (("before", queues), ("after", {**queues, **after})):
        (directory / name).mkdir()
        (directory / name / "capacity-scheduler.xml").write_text(to_xml(values))
    inputs = ("--workload", "day.yaml", "--nodes", "nodes.yaml", "--json")
    command = [sys.executable, "-m", "yarnling", "simulate", "compare", "before", "after", *inputs]
    ran = subprocess.run(command, cwd=directory, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    return dict(json.loads(ran.stdout))


@pytest.mark.slow
async def test_the_headline_is_that_of_the_command(tmp_path: Path, conf: Configuration) -> None:
    """The cluster's own queues do not change."""
    expected = await asyncio.to_thread(compared, tmp_path, conf)
    async with serving(conf) as cluster:
        settings = cluster.rm.core.scheduler.context.settings
        reply = await call(cluster, CHANGE)
        assert reply.status == 200, reply.text
        answer = reply.json
        again = await call(cluster, None, "GET", "/1")
        assert cluster.rm.core.scheduler.context.settings is settings
    assert answer["state"] == "FINISHED"
    assert "etl" in answer["headline"]
    assert {name: answer[name] for name in ("headline", "findings", "differences")} == {
        name: expected[name] for name in ("headline", "findings", "differences")
    }
    assert again.json == {**answer, "seconds": again.json["seconds"]}


async def test_without_a_workload_it_is_refused_with_the_remedy(conf: Configuration) -> None:
    unset = Configuration({key: entry for key in conf if "prediction" not in key and (entry := conf.entry(key))})
    async with serving(unset) as cluster:
        reply = await call(cluster, CHANGE)
    assert reply.status == 409
    assert "set yarn.yarnling.prediction.workload and yarn.yarnling.prediction.nodes" in reply.text
    assert "yarnling record" in reply.text


async def test_only_administrators_may(conf: Configuration) -> None:
    async with serving(conf) as cluster:
        for method, path in (("POST", ""), ("GET", "/1"), ("DELETE", "/1")):
            body = CHANGE if method == "POST" else None
            assert (await call(cluster, body, method, path, user="ann")).status == 403


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (update(queue("root.etl", capacity="90")), "Failed to re-init queues : Illegal capacity sum"),
        ({"remove-queue": ["root.nosuch"]}, "Queue root.nosuch not found"),
    ],
)
async def test_a_change_that_would_be_refused_is_not_predicted(conf: Configuration, body: object, said: str) -> None:
    async with serving(conf) as cluster:
        reply = await call(cluster, body)
    assert (reply.status, reply.text.startswith(said)) == (400, True), reply.text


async def test_several_seeds_are_passed_on(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    command = "import json, sys; print(json.dumps({'headline': ' '.join(sys.argv[1:])}))"
    monkeypatch.setattr(predictions, "COMMAND", (sys.executable, "-c", command))
    async with serving(conf) as cluster:
        target = "/ws/yarnling/v1/predict?user.name=admin&seeds="
        replies = [
            await ask(cluster.addresses[WEB], target + seeds, method="POST", body=CHANGE) for seeds in ("3", "0", "x")
        ]
    assert [reply.status for reply in replies] == [200, 400, 400]
    assert "--seeds 3 --json" in replies[0].json["headline"]
    assert replies[1].text == "seeds = '0': must be a number from 1 to 10"


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that does not end, and answers that do not wait for it."""
    monkeypatch.setattr(predictions, "COMMAND", (sys.executable, "-c", "import time; time.sleep(600)"))
    monkeypatch.setattr(predict, "WAIT_S", 0.01)


@pytest.mark.usefixtures("endless")
async def test_one_runs_at_a_time_and_can_be_stopped(conf: Configuration) -> None:
    async with serving(conf) as cluster:
        first = await call(cluster, CHANGE)
        assert (first.status, first.json["state"]) == (202, "RUNNING")
        assert first.headers["location"].endswith("/ws/yarnling/v1/predict/1")
        second = await call(cluster, CHANGE)
        assert (second.status, second.text) == (
            409,
            "prediction 1 of admin is running (wait for it, or DELETE it)",
        )
        stopped = await call(cluster, None, "DELETE", "/1")
        assert (stopped.json["state"], stopped.json["problem"]) == ("FAILED", "it was stopped")
        assert (await call(cluster, CHANGE)).status == 202


@pytest.mark.usefixtures("endless")
async def test_one_that_takes_too_long_is_ended(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "WAIT_S", 60.0)
    async with serving(conf.overridden({PREDICTION_TIMEOUT.key: "1s"})) as cluster:
        reply = await call(cluster, CHANGE)
    assert reply.json["problem"].startswith("it took more than 1 s (raise yarn.yarnling.prediction.timeout")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("import sys; sys.stderr.write('the workload is wrong'); sys.exit(2)", "the workload is wrong"),
        ("while True: print('x' * 1_000_000)", "File too large"),
        ("print('no json')", "Expecting value"),
    ],
    ids=["refused", "too much", "no JSON"],
)
async def test_what_the_command_refuses_is_the_problem(
    conf: Configuration, monkeypatch: pytest.MonkeyPatch, command: str, said: str
) -> None:
    monkeypatch.setattr(predictions, "COMMAND", (sys.executable, "-c", command))
    async with serving(conf) as cluster:
        reply = await call(cluster, CHANGE)
    assert reply.json["state"] == "FAILED"
    assert said in reply.json["problem"]
