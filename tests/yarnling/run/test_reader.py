"""Reading recorded runs: which call is lost, what is a heartbeat without news, and which files are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.yarnling.run.lines import APP, HEADER, LOST, QUIET_REPLY, QUIET_REQUEST, answered, steps
from yarn.errors import InvalidArgumentException, YarnException
from yarnling.faults.history import History, InjectedFault
from yarnling.faults.kinds import KINDS
from yarnling.faults.recorded_faults import write_faults
from yarnling.faults.schedule import FaultInjection
from yarnling.run.reader import read_lines, read_run, run_of
from yarnling.run.records import Call, Outcome, Role
from yarnling.run.watched import watched
from yarnling.run.writer import EVENTS, RunWriter


@pytest.mark.parametrize(
    ("happened", "fields", "outcome"),
    [
        ((("sent", 1), ("arrived", 2), ("replied", 2), ("over", 3)), {}, Outcome.ANSWERED),
        ((("sent", 1), ("over", 3)), LOST, Outcome.REQUEST_LOST),
        (
            (("sent", 1), ("arrived", 2), ("over", 3)),
            LOST,
            Outcome.UNANSWERED,
        ),
        (
            (("sent", 1), ("arrived", 2), ("replied", 2), ("over", 9)),
            LOST,
            Outcome.REPLY_LOST,
        ),
        ((("sent", 1), ("arrived", 2), ("replied", 2)), {}, Outcome.REPLY_LOST),
        (
            (("over", 3),),
            LOST,
            Outcome.UNREACHABLE,
        ),
        (
            (("sent", 1), ("arrived", 2), ("replied", 2), ("over", 3)),
            {"error": "YarnException: no", "is_refused": True},
            Outcome.REFUSED,
        ),
    ],
)
def test_how_a_call_ended(happened: tuple[tuple[str, int], ...], fields: dict[str, Any], outcome: Outcome) -> None:
    timeline = run_of([HEADER, *steps(1, *happened, **fields), {"ended": 60_000}])
    assert [one.outcome for one in timeline.calls] == [outcome]


def test_a_call_without_an_answer_at_the_end_of_the_run_is_under_way() -> None:
    timeline = run_of([HEADER, *steps(1, ("sent", 1), ("arrived", 2)), {"ended": 100}])
    assert timeline.calls[0].outcome is Outcome.UNDER_WAY


def test_only_the_second_heartbeat_of_the_same_content_is_without_news() -> None:
    lines = [line for number in range(3) for line in answered(number, 1000 * number)]
    order = {**QUIET_REPLY, "containers_to_clean_up": ["container_1700000000000_0001_01_000002"]}
    timeline = run_of([HEADER, *lines, *answered(9, 5000, reply=order)])
    assert [one.is_quiet for one in timeline.calls] == [False, True, True, False]


def test_a_heartbeat_that_led_to_an_allocation_has_news() -> None:
    lines = [line for number in range(3) for line in answered(number, 1000 * number, request=QUIET_REQUEST)]
    registration = answered(7, -10, rpc="registerNodeManager", request={"node_id": "n1:1"}, reply={"action": "NORMAL"})
    decision = {"at_ms": 2001, "what": "allocated", "application": APP, "node": "n1:1", "container": "c"}
    timeline = run_of([HEADER, *registration, *lines, {"decision": decision}])
    assert [one.is_quiet for one in timeline.calls] == [False, False, True, False]
    assert timeline.decisions[0].node == "nm-1"


@pytest.mark.parametrize(
    "line",
    [
        {"call": {"source": "nm-1"}},
        {"eaten": {}},
        [1],
        7,
        {"decision": {"what": "sold"}},
        {},
    ],
)
def test_a_line_that_is_not_of_a_trace_is_refused_with_its_number(line: Any) -> None:
    called = steps(1)
    with pytest.raises(InvalidArgumentException, match="line 3"):
        run_of([HEADER, *called, line])


def test_recordings_of_watch_show_calls_errors_and_changes() -> None:
    def call(**fields: Any) -> dict[str, Any]:
        usual = {"at_ms": 100, "ms": 4.0, "from": "127.0.0.2:4000", "to": "ResourceManager", "rpc": "nodeHeartbeat"}
        return {**usual, "request": QUIET_REQUEST, "reply": QUIET_REPLY, "error": None, **fields}

    attempt = "appattempt_1700000000000_0001_000001"
    refusal = {"reply": None, "error": {"exception": "org.x.InvalidToken", "message": "expired"}}
    change = {"at_ms": 99, "of": "ResourceManager", "kind": "RMApp", "subject": APP, "event": "START"}
    lines: list[str] = []
    writer = RunWriter(lines.append, "watched")
    writer.record(watched(call()))
    writer.record(watched(call(**{"from": attempt, "rpc": "allocate"}, **refusal)))
    writer.record(watched({**change, "source": "NEW", "target": "NEW_SAVING"}))
    timeline = run_of([*map(json.loads, lines), {"dropped": 3}])
    assert [(one.role, one.title) for one in timeline.lifelines] == [
        (Role.AM, "AM 0001"),
        (Role.RM, "RM"),
        (Role.NM, "127.0.0.2:4000"),
    ]
    assert [one.outcome for one in timeline.calls] == [Outcome.ANSWERED, Outcome.REFUSED]
    assert timeline.calls[1].error == "InvalidToken: expired"
    assert timeline.changes[0].application == APP
    assert "3 calls were dropped" in timeline.notes[0]


def test_a_file_that_is_not_a_run_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text('{"hello": 1}\n')
    with pytest.raises(YarnException, match="is not an event log, a trace"):
        read_run(file)
    file.write_text("no JSON\n")
    with pytest.raises(YarnException, match=r"run\.jsonl:1: is not JSON"):
        read_run(file)
    with pytest.raises(YarnException, match="No such file"):
        read_run(tmp_path / "none")


def test_an_incomplete_last_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text('{"a": 1}\n{"a": ')
    assert list(read_lines(file)) == [{"a": 1}]


def test_a_run_of_another_format_is_refused_with_both_numbers(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text('{"run": 1, "title": "old"}\n')
    with pytest.raises(YarnException, match=r"run\.jsonl: has format 1, and this version reads 2"):
        read_run(file)


def test_a_record_is_read_as_written() -> None:
    lines: list[str] = []
    call = Call("nm-1", "rm", "nodeHeartbeat", 3, QUIET_REQUEST, 4, 5, 6, QUIET_REPLY, request_bytes=7, reply_bytes=8)
    RunWriter(lines.append, "written").record(call)
    (read,) = run_of(map(json.loads, lines)).calls
    assert read == replace(call, outcome=Outcome.ANSWERED, arrivals=1)
    assert read.bytes_sent() == 7 + 8


def test_faults_are_read_beside_the_other_files_of_a_chaos_run(tmp_path: Path) -> None:
    injection = FaultInjection(1, KINDS["kill-node"], 1000, 3000, nodes=(2,))
    history = History(injected=[InjectedFault(injection, 1.0, 3.0, "nm-2")])
    write_faults(tmp_path / EVENTS, history, lambda at_s: round(1000 * at_s))
    calls = [json.dumps(line) for line in (HEADER, *answered(1, 500))]
    (tmp_path / EVENTS / "calls.jsonl").write_text("".join(f"{line}\n" for line in calls))
    (fault,) = read_run(tmp_path).faults
    assert (fault.kind, fault.from_ms, fault.until_ms, fault.hosts) == ("kill-node", 1000, 3000, ("nm-2",))
