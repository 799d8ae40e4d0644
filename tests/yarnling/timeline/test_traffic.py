"""The costs of containers in RPCs and bytes: recordings small enough to add up by hand, and a simulated run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wire.event_log import FORMAT
from wire.protocols.master import ApplicationMasterProtocol
from yarn.protocols.master import AllocateRequest
from yarnling.cli.app import app
from yarnling.run.reader import read_run
from yarnling.timeline.traffic import Traffic, containers_in, traffic_of

APP_1, APP_2 = "application_1700000000000_0001", "application_1700000000000_0002"
AM = "appattempt_1700000000000_0001_000001"
C2, C3 = "container_1700000000000_0001_01_000002", "container_1700000000000_0001_01_000003"
OTHER = "container_1700000000000_0002_01_000002"


def call(source: str, rpc: str, request: Any, reply: Any, *sizes: int) -> dict[str, Any]:
    """A line of yarnling watch --json. `sizes`: the bytes of the request and of the reply."""
    line = {"source": source, "target": "ResourceManager", "rpc": rpc, "sent_ms": 999, "over_ms": 1000}
    lengths = dict(zip(("request_bytes", "reply_bytes"), sizes, strict=False))
    return {"call": {**line, "request": request, "reply": reply, **lengths}}


RECORDING = [
    call(AM, "allocate", {"asks": ["two containers"]}, {"allocated": []}, 40, 10),
    call(AM, "allocate", {}, {"allocated": [{"id": C2}, {"id": C3}]}, 10, 190),
    call("127.0.0.2:1", "nodeHeartbeat", {"containers": [{"container_id": C2}, {"container_id": OTHER}]}, {}, 90, 10),
    call("127.0.0.2:1", "nodeHeartbeat", {"containers": []}, {}, 30, 10),
]


def recorded(directory: Path, lines: list[dict[str, Any]]) -> Path:
    path = directory / "calls.jsonl"
    header = {"run": FORMAT, "title": "recorded"}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (header, *lines)))
    return path


def test_a_call_counts_for_each_container_that_it_names_and_its_bytes_are_divided(tmp_path: Path) -> None:
    traffic = traffic_of(read_run(recorded(tmp_path, RECORDING)))
    one, two = traffic.applications
    assert {entry.container: (entry.tally.calls, entry.tally.all_bytes) for entry in one.containers} == {
        C2: ({"allocate": 1, "nodeHeartbeat": 1}, 200 / 2 + 100 / 2),
        C3: ({"allocate": 1}, 200 / 2),
    }
    assert (one.application, one.tally.calls, one.tally.all_bytes) == (
        APP_1,
        {"allocate": 2, "nodeHeartbeat": 1},
        50 + 200 + 50,
    )
    assert (two.application, two.tally.calls, two.tally.all_bytes) == (APP_2, {"nodeHeartbeat": 1}, 50)
    assert (traffic.others.calls, traffic.others.all_bytes) == ({"nodeHeartbeat": 1}, 40)
    assert (traffic.total.all_calls, traffic.total.all_bytes) == (4, 50 + 200 + 100 + 40)


def test_the_command_prints_tables_and_json(tmp_path: Path) -> None:
    path = recorded(tmp_path, RECORDING)
    printed = CliRunner().invoke(app, ["traffic", str(path), "--containers"]).output
    rows = [line.split() for line in printed.splitlines()]
    assert ["allocate", "2", "250", "125"] in rows
    assert [APP_1, "2", "3", "300", "1.5", "125"] in rows
    assert [C2, "-", "2", "150", "1", "1"] in rows
    only = json.loads(CliRunner().invoke(app, ["traffic", str(path), "--json", "--app", "0002"]).output)
    assert [one["application"] for one in only["applications"]] == [APP_2]
    assert only["methods"] == {"nodeHeartbeat": {"calls": 1, "bytes": 50}}, "it shares the heartbeat"


def test_a_run_without_lengths_has_calls_only(tmp_path: Path) -> None:
    path = recorded(tmp_path, [call(AM, "allocate", {}, {"allocated": [{"id": C2}]})])
    printed = CliRunner().invoke(app, ["traffic", str(path)]).output
    assert ["allocate", "1", "-", "-"] in [line.split() for line in printed.splitlines()]
    assert "does not have the length of its messages" in printed
    assert json.loads(CliRunner().invoke(app, ["traffic", str(path), "--json"]).output)["bytes"] is None


def test_the_address_of_an_am_is_not_a_container_of_the_call() -> None:
    assert containers_in({"host": f"am {C2}", "kept": [C3], "failed": {OTHER: "no"}}) == (OTHER, C3)


def test_the_length_of_a_message_is_that_of_its_bytes() -> None:
    codec = ApplicationMasterProtocol.allocate.request
    request = AllocateRequest(response_id=7, progress=0.5)
    assert codec.size(request) == len(codec.encode(request)) > 0


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traffic") / "trace.jsonl"
    ran = CliRunner().invoke(app, ["simulate", "kill-node", "--seed", "1", "--trace", str(path)])
    assert ran.exit_code == 0, ran.output
    return path


@pytest.mark.slow
def test_the_parts_of_a_simulated_run_add_up(trace: Path) -> None:
    traffic: Traffic = traffic_of(read_run(trace))
    lines = [line for line in map(json.loads, trace.read_text().splitlines()) if isinstance(line, dict)]
    called = [line["call"] for line in lines if "call" in line]
    assert traffic.total.all_calls == len(called)
    expected = sum(
        call.get("reply_bytes", 0) + (call["request_bytes"] if call.get("is_sent", True) else 0) for call in called
    )
    assert traffic.total.all_bytes == expected
    parts = sum(one.tally.all_bytes for one in traffic.applications) + traffic.others.all_bytes
    assert parts == pytest.approx(expected)


def test_each_container_of_a_simulated_run_is_counted_by_its_calls(trace: Path) -> None:
    timeline = read_run(trace)
    for application in traffic_of(timeline).applications:
        for one in application.containers:
            named = [
                message.rpc
                for message in timeline.calls
                if f'"{one.container}"' in json.dumps([message.request, message.reply])
            ]
            assert one.tally.calls == {rpc: named.count(rpc) for rpc in set(named)}
            assert one.tally.calls["startContainers"] >= 1
