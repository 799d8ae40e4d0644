"""Records as JSON, and the log of events made of them."""

from __future__ import annotations

import json
import os
import random
import stat
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import rm.core.effects
import rm.core.events
from tests.wire.random_records import random_record
from wire.event_log import KEPT_MAX, EventLog, LoggedStep, earlier_log, open_event_log, read_event_log
from wire.files.json_records import from_json, to_json
from yarn.applications import ApplicationReport
from yarn.configuration import Configuration
from yarn.containers import ContainerLaunchContext, ResourceRequest, Token
from yarn.errors import InvalidArgumentException, InvalidToken, YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.machine import Tick
from yarn.protocols.tracker import NodeHeartbeatRequest
from yarn.resource import Resource
from yarn.states import NodeState, YarnApplicationState

EVENTS = [kind for kind in get_args(rm.core.events.Event) if kind is not rm.core.events.RefreshQueues]


def _through_json(value: Any) -> Any:
    return from_json(json.loads(json.dumps(to_json(value))))


@pytest.mark.parametrize("kind", [*EVENTS, rm.core.effects.LaunchAM, rm.core.effects.StateChanged])
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, (1 << 32) - 1))
def test_events_and_effects_are_read_as_written(kind: type[Any], seed: int) -> None:
    record = random_record(random.Random(seed), kind)
    written = to_json(record)
    read = from_json(json.loads(json.dumps(written)))
    # Secrets are left out; all else is equal, so writing it again gives the same.
    assert to_json(read) == written
    assert type(read) is kind


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, (1 << 32) - 1))
def test_records_without_secrets_are_equal_again(seed: int) -> None:
    record = random_record(random.Random(seed), NodeHeartbeatRequest)
    without_tokens = _without_tokens(record)
    assert _through_json(without_tokens) == without_tokens


def _without_tokens(request: NodeHeartbeatRequest) -> NodeHeartbeatRequest:
    return NodeHeartbeatRequest(request.node_id, request.response_id, request.containers, request.health)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        1.0,
        float("inf"),
        "\ud800",
        (1, (2,)),
        [1, "a"],
        {NodeId("h", 1): b"\x00"},
        frozenset({NodeState.LOST, NodeState.NEW}),
        ApplicationAttemptId(ApplicationId(1, 1), -1),
        Resource(-1, 2, (("gpu", 3),)),
        Configuration.of({"a": "${b}"}).with_defaults({"b": "1"}),
    ],
)
def test_plain_values_are_read_as_written(value: object) -> None:
    read = _through_json(value)
    assert read == value
    assert type(read) is type(value)


def test_errors_keep_class_and_message() -> None:
    read = _through_json(rm.core.effects.Refuse(3, InvalidToken("no")))
    assert (type(read.error), read.error.message) == (InvalidToken, "no")


def test_secrets_are_left_out() -> None:
    token = Token(b"identifier", b"password", "kind", "service")
    context = ContainerLaunchContext(commands=("c",), tokens=b"secret")
    assert "password" not in json.dumps(to_json(token))
    assert _through_json(token) == Token(b"identifier", b"", "kind", "service")
    assert _through_json(context) == ContainerLaunchContext(commands=("c",))


def test_a_secret_with_a_default_reads_as_that() -> None:
    app = ApplicationId(1, 1)
    report = ApplicationReport(app, "ann", "q", "n", YarnApplicationState.NEW, ApplicationAttemptId(app, -1))
    assert _through_json(replace(report, am_rm_token=Token(b"", b"s", "", ""))) == report


@pytest.mark.parametrize(
    "data",
    [
        {"$": "os.system", "of": ["true"]},
        {"$": "yarn.ids.re"},
        {"$": "rm.__main__.serve"},
        {"$": "yarn.resource.Iterable"},
        {"$": "yarn.nothing.There"},
        {"$": "yarn.states.NodeState", "is": "NOWHERE"},
        {"$": "yarn.containers.ResourceRequest", "color": 1},
        {"$id": "container_x"},
        {"$what": 1},
        {},
    ],
)
def test_only_our_own_records_are_made(data: Any) -> None:
    with pytest.raises(InvalidArgumentException):
        from_json(data)


def test_an_object_that_is_not_a_record_is_refused() -> None:
    with pytest.raises(TypeError, match="is not a record of yarnling"):
        to_json(object())


# The log


def _steps() -> list[LoggedStep]:
    ask = ResourceRequest(1, "*", Resource(1024, 1), 2)
    return [
        LoggedStep(5, "rm", Tick(), ()),
        LoggedStep(
            6, "rm", rm.core.events.GetNewApplication(1), (rm.core.effects.Reply(1, (ask,)), rm.core.effects.Warn("w"))
        ),
    ]


def test_a_log_is_read_as_written(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "log", Configuration.of({"a": "1"}), host="rm")
    for step in _steps():
        log.append(step.now_ms, step.event, step.effects)
    log.close()
    start, steps = read_event_log(tmp_path / "log")
    assert start == Configuration.of({"a": "1"})
    assert list(steps) == _steps()


def test_a_log_is_its_owners_alone(tmp_path: Path) -> None:
    EventLog(tmp_path / "log", None).close()
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


def test_a_last_line_cut_short_ends_the_log(tmp_path: Path) -> None:
    """The daemon was killed while it wrote."""
    log = EventLog(tmp_path / "log", None, host="rm")
    for step in _steps():
        log.append(step.now_ms, step.event, step.effects)
    log.close()
    os.truncate(tmp_path / "log", (tmp_path / "log").stat().st_size - 3)
    _, steps = read_event_log(tmp_path / "log")
    assert list(steps) == _steps()[:1]


def test_a_file_that_is_not_an_event_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('{"run": 99}\n')
    with pytest.raises(InvalidArgumentException, match="is not an event log of format 2"):
        read_event_log(tmp_path / "log")
    (tmp_path / "log").write_text("nonsense\n")
    with pytest.raises(InvalidArgumentException, match="log:1"):
        read_event_log(tmp_path / "log")


def test_a_log_that_cannot_be_opened_names_key_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(YarnException, match=r"yarn[.]x = .*: No such file or directory .free some space, or name"):
        EventLog(tmp_path / "no" / "log", None, key="yarn.x")


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with pytest.raises(YarnException, match=r"yarn[.]x = /dev/full: No space left on device"):
        EventLog(Path("/dev/full"), None, key="yarn.x")


def test_two_daemons_do_not_write_to_one_file(tmp_path: Path) -> None:
    first = EventLog(tmp_path / "log", "first", key="yarn.x")
    with pytest.raises(YarnException, match=r"yarn[.]x = .*log: another daemon is writing its events"):
        EventLog(tmp_path / "log", "second", key="yarn.x")
    first.close()
    assert read_event_log(tmp_path / "log")[0] == "first"


def test_a_daemon_that_starts_again_keeps_the_logs_of_its_last_starts(tmp_path: Path) -> None:
    """Each can be replayed for itself, however the daemon before it ended; the oldest go."""
    path = tmp_path / "log"
    for start in range(KEPT_MAX + 3):
        EventLog(path, start).close()
    kept = [earlier_log(path, number) for number in range(KEPT_MAX + 1)]
    assert [read_event_log(log)[0] for log in kept] == list(range(KEPT_MAX + 2, 1, -1))
    assert sorted(tmp_path.iterdir()) == sorted(kept)
    assert {stat.S_IMODE(log.stat().st_mode) for log in kept} == {0o600}


def test_a_log_that_was_moved_is_still_its_daemons_own(tmp_path: Path) -> None:
    """Otherwise it would write to the log of the next start; and no third daemon may write to either."""
    EventLog(tmp_path / "log", "before").close()
    log = EventLog(tmp_path / "log", "now")
    with pytest.raises(YarnException, match="another daemon is writing its events to this file"):
        EventLog(tmp_path / "log", "third")
    log.append(5, Tick(), ())
    log.close()
    start, steps = read_event_log(tmp_path / "log")
    assert (start, len(list(steps))) == ("now", 1)
    assert read_event_log(earlier_log(tmp_path / "log", 1))[0] == "before"


def test_a_log_that_cannot_be_renamed_is_reported(tmp_path: Path) -> None:
    EventLog(tmp_path / "log", "before").close()
    earlier_log(tmp_path / "log", KEPT_MAX - 1).touch()
    earlier_log(tmp_path / "log", KEPT_MAX).mkdir()
    with pytest.raises(YarnException, match="log: Is a directory"):
        EventLog(tmp_path / "log", "now")
    assert read_event_log(tmp_path / "log")[0] == "before"


def test_in_a_directory_each_daemon_has_a_file(tmp_path: Path) -> None:
    conf = Configuration.of({"yarn.yarnling.event-log": str(tmp_path)})
    logs = [open_event_log(conf, daemon, daemon) for daemon in ("resourcemanager", "nodemanager-127.0.0.2:1")]
    for log in logs:
        assert log is not None
        log.close()
    assert read_event_log(tmp_path / "nodemanager-127.0.0.2:1.jsonl")[0] == "nodemanager-127.0.0.2:1"
    assert open_event_log(Configuration(), "resourcemanager", None) is None
