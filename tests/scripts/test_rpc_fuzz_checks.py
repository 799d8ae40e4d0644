"""The parts of the fuzzer: log checks, harmless messages, and the classification of answers."""

from __future__ import annotations

from pathlib import Path
from random import Random

import grpc
import pytest
from msgspec.structs import replace

from tests.cluster.rpc_fuzz.caller import RPCS, FuzzCaller, Message, metadata_of
from tests.cluster.rpc_fuzz.harmless import COMMANDS, Harmless
from tests.cluster.rpc_fuzz.known import REQUESTS, Known
from tests.cluster.rpc_fuzz.logs import BYTES_A_MESSAGE_MAX, LINE_BYTES_MAX, check_log
from tests.cluster.rpc_fuzz.mutations import mutated
from tests.wire.serving import Recorder, serving, target
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.tracker import ResourceTracker
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerLaunchContext, ContainerRetryContext, LocalResource, Token
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.protocols.container_management import StartContainerRequest
from yarn.protocols.tracker import RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import ContainerRetryPolicy

GOOD = "2026-11-21 10:00:00,000 INFO rm.shell.effects RMApp=application_1_0001 event=START from=NEW to=NEW_SAVING\n"
APP = ApplicationId(1, 1)

# Logs


def log_of(directory: Path, text: str) -> Path:
    log = directory / "rm.log"
    log.write_text(text)
    return log


def test_a_log_without_a_fault_passes(tmp_path: Path) -> None:
    assert check_log(log_of(tmp_path, GOOD * 3), 10) == []


@pytest.mark.parametrize(
    "line",
    [
        "Traceback (most recent call last):",
        "2026-11-21 10:00:00,000 ERROR wire.server call failed rpc=allocate peer=ipv4:127.0.0.1:1",
        "2026-11-21 10:00:00,000 ERROR nm.shell.effects something new",
        "2026-11-21 10:00:00,000 CRITICAL rm.shell.effects invariant broken: I-15: x",
        "2026-11-21 10:00:00,000 WARNING rm.shell.effects processing an event failed event=Tick",
        "a line that a message brought",
        "2026-11-21 10:00:00,000 INFO rm.shell.effects " + "x" * LINE_BYTES_MAX,
    ],
)
def test_a_bad_line_is_reported_with_its_number(tmp_path: Path, line: str) -> None:
    found = check_log(log_of(tmp_path, f"{GOOD}{line}\n{GOOD}"), 1000)
    assert len(found) == 1
    assert found[0].startswith("rm.log:2: ")


def test_the_exception_of_a_traceback_is_reported_too(tmp_path: Path) -> None:
    trace = 'Traceback (most recent call last):\n  File "x.py", line 1, in y\n    z()\nValueError: embedded null byte\n'
    found = check_log(log_of(tmp_path, GOOD + trace + GOOD), 1000)
    assert [text.partition(": ")[2] for text in found] == [
        "Traceback (most recent call last):",
        "ValueError: embedded null byte",
    ]


def test_an_invariant_that_hadoop_breaks_too_is_not_a_fault(tmp_path: Path) -> None:
    line = "2026-11-21 10:00:00,000 WARNING rm.shell.effects invariant broken, as Hadoop breaks it where x: I-08: y\n"
    assert check_log(log_of(tmp_path, line), 10) == []


def test_a_log_that_grows_too_fast_is_reported(tmp_path: Path) -> None:
    text = GOOD * (BYTES_A_MESSAGE_MAX // len(GOOD) + 1)
    assert len(check_log(log_of(tmp_path, text), 1)) == 1
    assert check_log(log_of(tmp_path, text), 2) == []


# Messages that may be sent


def submission(**launch: object) -> ApplicationSubmissionContext:
    return ApplicationSubmissionContext(APP, ContainerLaunchContext(**launch))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "launch",
    [
        {"commands": ("true; touch /tmp/x",)},
        {"commands": ("true", "&& touch /tmp/x")},
        {"commands": ("true",), "environment": {"COLOR": "`touch /tmp/x`"}},
        {"commands": ("true",), "environment": {"LD_PRELOAD": ""}},
        {"commands": ("true",), "local_resources": {"a": LocalResource("file:/etc/passwd", 1, 1)}},
        {"commands": ("true",), "local_resources": {"'\ntouch x\n'": LocalResource("file:/r/words.txt", 1, 1)}},
        {"retry": ContainerRetryContext(ContainerRetryPolicy.RETRY_ON_ALL_ERRORS, max_retries=-1)},
    ],
)
def test_messages_that_could_run_other_commands_are_not_sent(launch: dict[str, object]) -> None:
    harmless = Harmless(Path("/r"))
    token = Token(b"", b"", "", "")
    start = StartContainerRequest(submission(**launch).am_container, token)
    data = ApplicationClientProtocol.submit_application.request.encode(submission(**launch))
    assert not harmless.allows(ApplicationClientProtocol.submit_application, data)
    data = ContainerManagementProtocol.start_containers.request.encode((start,))
    assert not harmless.allows(ContainerManagementProtocol.start_containers, data)


@pytest.mark.parametrize(("host", "allowed"), [("127.0.1.1", True), ("192.0.2.1", False), ("example.org", False)])
def test_only_nodes_on_loopback_are_registered(tmp_path: Path, host: str, allowed: bool) -> None:
    request = RegisterNodeManagerRequest(NodeId(host, 1), 1, Resource(1, 1))
    rpc = ResourceTracker.register_node_manager
    assert Harmless(tmp_path).allows(rpc, rpc.request.encode(request)) is allowed


def test_random_launch_contexts_are_harmless(tmp_path: Path, seed: int) -> None:
    harmless, rng = Harmless(tmp_path), Random(seed)
    harmless.make_files()
    for _ in range(100):
        launch = harmless.launch_context(rng)
        assert set(launch.commands) <= set(COMMANDS)
        data = ApplicationClientProtocol.submit_application.request.encode(replace(submission(), am_container=launch))
        assert harmless.allows(ApplicationClientProtocol.submit_application, data)


def test_there_are_random_requests_of_every_rpc(tmp_path: Path) -> None:
    harmless, rng = Harmless(tmp_path), Random(1)
    known = Known(apps=[APP], containers=[ContainerId(ApplicationAttemptId(APP, 1), 1)])
    assert {rpc.path for rpc in RPCS} == REQUESTS.keys()
    for rpc in RPCS:
        encoded = 0
        for _ in range(100):
            try:
                data = rpc.request.encode(known.request(rng, rpc.path, harmless))
            except (ValueError, YarnException):
                continue
            encoded += 1
            mutated(rng, data)
        assert encoded > 10, rpc.name


def test_a_seed_draws_the_same_messages(tmp_path: Path) -> None:
    def drawn() -> list[bytes]:
        rng, harmless = Random(7), Harmless(tmp_path)
        record = Known().request(rng, ResourceTracker.unregister_node_manager.path, harmless)
        data = ResourceTracker.unregister_node_manager.request.encode(record)
        return [mutated(rng, data) for _ in range(50)]

    assert drawn() == drawn()


# Answers


@pytest.mark.parametrize(
    ("answer", "is_fault"),
    [(YarnException("no"), False), (KeyError("bug"), True), ("not a record", True)],
)
async def test_an_internal_error_is_a_fault_and_a_refusal_is_not(
    tmp_path: Path, answer: object, *, is_fault: bool
) -> None:
    rpc = ApplicationClientProtocol.get_cluster_metrics
    async with serving((rpc,), Recorder({rpc.method: answer})) as server:
        caller = FuzzCaller({}, Harmless(tmp_path), 1, tmp_path / "messages.log")
        await caller.send(Random(1), Message(rpc, target(server), b"", metadata_of("ann")))
        await caller.close()
    assert bool(caller.outcomes.faults) is is_fault
    assert caller.outcomes.by_rpc[rpc.name].total() == 1
    assert rpc.name in (tmp_path / "messages.log").read_text()


async def test_a_server_that_is_gone_is_a_fault(tmp_path: Path) -> None:
    rpc = ApplicationClientProtocol.get_cluster_metrics
    caller = FuzzCaller({}, Harmless(tmp_path), 1, tmp_path / "messages.log")
    await caller.send(Random(1), Message(rpc, "127.0.0.1:1", b"", metadata_of("ann")))
    await caller.close()
    (fault,) = caller.outcomes.faults
    assert grpc.StatusCode.UNAVAILABLE.name in fault
