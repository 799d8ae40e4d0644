"""ContainerManagementProtocol: what an AM may do with which container, checked in Hadoop's order."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nm.core.effects import SendHeartbeat
from nm.core.events import (
    ContainerExited,
    ContainerLaunched,
    GetContainerStatuses,
    NodeHeartbeatFailed,
    SignalToContainer,
    StartContainers,
    StopContainers,
    VerifiedStart,
)
from nm.core.settings import CoreSettings
from tests.nm.nodes import ATTEMPT, NOW_MS, OTHER_ATTEMPT, Node, container_id, container_token, launched, nm_token
from yarn.containers import ContainerLaunchContext, LocalResource, NMTokenIdentifier, ServiceData
from yarn.errors import InvalidAuxServiceException, InvalidContainerException, InvalidToken, YarnException
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.machine import Refuse, Reply, Tick
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    SignalContainerRequest,
    StopContainersResponse,
)
from yarn.protocols.tracker import REFUSAL_CHARS_MAX, RefusedStart
from yarn.states import ContainerState, ContainerSubState, SignalContainerCommand


@pytest.fixture
def node() -> Node:
    return Node().register()


def refusal(node: Node, **start: object) -> YarnException:
    (error,) = node.start(**start).failed.values()  # type: ignore[arg-type]
    return error


def statuses(
    node: Node, *container_ids: ContainerId, caller: NMTokenIdentifier | None = None
) -> GetContainerStatusesResponse:
    node.step(GetContainerStatuses(1, caller or nm_token(), container_ids))
    value = node.one(Reply).value
    assert isinstance(value, GetContainerStatusesResponse)
    return value


def test_a_status_names_the_host_once_the_container_was_started(node: Node) -> None:
    """YARN services get the addresses of their components from it (ContainerStatus.getIPs and getHost)."""
    node.start(1, launch=ContainerLaunchContext(("true",), local_resources={"x": LocalResource("file:/x", 1, 1)}))
    launched(node, 2)
    hosts = [status.host for status in statuses(node, container_id(1), container_id(2)).statuses]
    assert hosts == ["", container_token(2).node_id.host]


def stop(node: Node, container_id: ContainerId, caller: NMTokenIdentifier | None = None) -> StopContainersResponse:
    node.step(StopContainers(1, caller or nm_token(), (container_id,)))
    value = node.one(Reply).value
    assert isinstance(value, StopContainersResponse)
    return value


def test_a_container_of_another_application_is_refused(node: Node) -> None:
    error = refusal(node, tokens=(container_token(1, attempt=OTHER_ATTEMPT),))
    assert error.message == (
        "Unauthorized request to start container."
        f"\nNMToken for application attempt : {ATTEMPT} was used for starting container with container token "
        f"issued for application attempt : {OTHER_ATTEMPT}"
    )


def test_a_later_attempt_may_start_containers_of_its_application(node: Node) -> None:
    """The check compares applications: the AM of a second attempt may use containers allocated to the first."""
    second = ApplicationAttemptId(ATTEMPT.application_id, 2)
    assert node.start(1, caller=nm_token(second)).succeeded == (container_id(1),)


def test_a_token_starts_its_container_once(node: Node) -> None:
    node.start(1)
    expected = (
        f"Unauthorized request to start container.\n Attempt to relaunch the same container with id {container_id(1)}."
    )
    assert refusal(node, tokens=(container_token(1),)).message == expected
    node.step(ContainerLaunched(container_id(1), 1))
    node.step(ContainerExited(container_id(1), 1, 0))
    assert refusal(node, tokens=(container_token(1),)).message == expected


def test_a_container_that_an_earlier_node_manager_started_is_not_started_again() -> None:
    """The start was not answered, and the AM repeats it before it learns that the node was lost."""
    node = Node().register(started_before=(container_id(1),))
    assert refusal(node, tokens=(container_token(1),)).message == (
        f"Unauthorized request to start container.\n Attempt to relaunch the same container with id {container_id(1)}."
    )
    assert node.start(2).succeeded == (container_id(2),)


def test_an_expired_token_is_refused_with_both_times(node: Node) -> None:
    error = refusal(node, tokens=(container_token(1, expiry_ms=NOW_MS - 1),))
    assert error.message == (
        "Unauthorized request to start container."
        f"\nThis token is expired. current time is {NOW_MS} found {NOW_MS - 1}"
        "\nNote: System times on machines may be out of sync. Check system time and time zones."
    )


UNKNOWN_SERVICE = ContainerLaunchContext(("true",), service_data={"spark_shuffle": ServiceData(b"")})
REFUSED = RefusedStart(container_id(1), "The auxService:spark_shuffle does not exist")


def reported(node: Node) -> tuple[RefusedStart, ...]:
    """The refused starts in the next heartbeat."""
    node.after(1000, Tick())
    return node.one(SendHeartbeat).request.refused_starts


def test_a_refused_start_is_reported_until_a_heartbeat_with_it_is_answered(node: Node) -> None:
    node.start(1, launch=UNKNOWN_SERVICE)
    assert reported(node) == (REFUSED,)
    node.step(NodeHeartbeatFailed("lost", unreachable=False))
    assert reported(node) == (REFUSED,)
    node.answer()
    assert reported(node) == (REFUSED,), "the answer may be the one to the heartbeat before"
    node.answer()
    assert reported(node) == ()


def test_the_last_refused_start_of_an_application_is_reported_shortened(node: Node) -> None:
    node.start(1, launch=UNKNOWN_SERVICE)
    node.start(2, launch=ContainerLaunchContext(("true",), environment={f"1{'x' * 70}{n}": "" for n in range(20)}))
    (refused,) = reported(node)
    assert refused.container_id == container_id(2)
    assert len(refused.reason) == REFUSAL_CHARS_MAX


def test_a_repeated_start_and_one_for_another_application_are_not_reported(node: Node) -> None:
    node.start(1)
    assert refusal(node, tokens=(container_token(1),))
    assert refusal(node, tokens=(container_token(1, attempt=OTHER_ATTEMPT),))
    assert reported(node) == ()


def test_a_container_of_an_earlier_rm_is_refused(node: Node) -> None:
    error = refusal(node, tokens=(container_token(1, rm_identifier=1),))
    assert isinstance(error, InvalidContainerException)
    assert error.message == f"\nContainer {container_id(1)} rejected as it is allocated by a previous RM"


def test_an_unknown_auxiliary_service_is_refused(node: Node) -> None:
    launch = ContainerLaunchContext(("true",), service_data={"nosuch_service": ServiceData(b"")})
    error = refusal(node, tokens=(container_token(1),), launch=launch)
    assert isinstance(error, InvalidAuxServiceException)
    assert error.message == "The auxService:nosuch_service does not exist"


def test_a_known_auxiliary_service_answers_with_its_data() -> None:
    node = Node(CoreSettings(auxiliary_services=(("mapreduce_shuffle", b"\0\0\x34\xfa"),))).register()
    launch = ContainerLaunchContext(("true",), service_data={"mapreduce_shuffle": ServiceData(b"")})
    response = node.start(1, launch=launch)
    assert response.succeeded == (container_id(1),)
    assert response.services_metadata == {"mapreduce_shuffle": b"\0\0\x34\xfa"}


def test_a_resource_without_a_url_is_refused(node: Node) -> None:
    launch = ContainerLaunchContext(("true",), local_resources={"x": LocalResource("", 1, 1)})
    assert (
        "Null resource URL for local resource x" in refusal(node, tokens=(container_token(1),), launch=launch).message
    )


@pytest.mark.parametrize("user", ["", ".", "..", "a/b", "../../etc", "a\nb", "a\0b"])
def test_a_user_name_that_cannot_be_a_directory_name_is_refused(node: Node, user: str) -> None:
    """The name becomes a directory below usercache and a line of the launch script."""
    error = refusal(node, tokens=(replace(container_token(1), user=user),))
    assert "invalid user name" in error.message
    assert node.core.containers == {}


def test_one_refusal_does_not_affect_the_others(node: Node) -> None:
    response = node.start(tokens=(container_token(1), container_token(2, rm_identifier=1), container_token(3)))
    assert response.succeeded == (container_id(1), container_id(3))
    assert list(response.failed) == [container_id(2)]


def test_a_forged_token_refuses_the_call_but_not_the_starts_before_it(node: Node) -> None:
    """ContainerManagerImpl.startContainers: InvalidToken ends the call after the containers before it were started."""
    forged = InvalidToken("the ContainerToken's seal is wrong")
    node.step(
        StartContainers(7, nm_token(), (VerifiedStart(ContainerLaunchContext(("true",)), container_token(1)),), forged)
    )
    assert node.one(Refuse).error is forged
    assert container_id(1) in node.core.containers


def test_the_status_of_a_container_is_running_from_its_accepted_start(node: Node) -> None:
    launch = ContainerLaunchContext(("true",), local_resources={"x": LocalResource("file:/x", 1, 1)})
    node.start(1, launch=launch)
    assert node.state(1) == "LOCALIZING"
    (status,) = statuses(node, container_id(1)).statuses
    assert (status.state, status.sub_state) == (ContainerState.RUNNING, ContainerSubState.SCHEDULED)
    assert (status.exit_status, status.diagnostics) == (-1000, "")


def test_unknown_containers_are_reported(node: Node) -> None:
    unknown = f"Container {container_id(9)} is not handled by this NodeManager"
    assert statuses(node, container_id(9)).failed[container_id(9)].message == unknown
    assert stop(node, container_id(9)).failed[container_id(9)].message == unknown


def test_a_dropped_container_is_remembered_as_recently_stopped(node: Node) -> None:
    """Stopping it again succeeds; its status raises "was recently stopped"."""
    node.start(1)
    node.step(ContainerLaunched(container_id(1), 1))
    node.step(ContainerExited(container_id(1), 1, 0))
    node.answer(containers_to_forget=(container_id(1),))
    error = statuses(node, container_id(1)).failed[container_id(1)]
    assert error.message == f"Container {container_id(1)} was recently stopped on node manager."
    assert stop(node, container_id(1)).succeeded == (container_id(1),)


def test_a_complete_container_can_be_queried_and_stopped_until_it_is_dropped(node: Node) -> None:
    node.start(1)
    node.step(ContainerLaunched(container_id(1), 1))
    node.step(ContainerExited(container_id(1), 1, 0))
    (status,) = statuses(node, container_id(1)).statuses
    assert (status.state, status.sub_state, status.exit_status) == (ContainerState.COMPLETE, ContainerSubState.DONE, 0)
    assert stop(node, container_id(1)).succeeded == (container_id(1),)
    (again,) = statuses(node, container_id(1)).statuses
    assert again == status


def test_the_am_of_another_application_can_neither_query_nor_stop_nor_signal(node: Node) -> None:
    node.start(1)
    other_application = nm_token(OTHER_ATTEMPT)
    looked = statuses(node, container_id(1), caller=other_application).failed[container_id(1)]
    assert looked.message == (
        f"{OTHER_ATTEMPT} attempted to get status for non-application container : {container_id(1)}"
    )
    stopped = stop(node, container_id(1), other_application).failed[container_id(1)]
    assert stopped.message == f"{OTHER_ATTEMPT} attempted to stop non-application container : {container_id(1)}"
    request = SignalContainerRequest(container_id(1), SignalContainerCommand.FORCEFUL_SHUTDOWN)
    node.step(SignalToContainer(1, other_application, request))
    assert node.one(Refuse).error.message == stopped.message
    assert node.state(1) == "SCHEDULED"


def test_recently_stopped_containers_are_forgotten_eventually() -> None:
    """They are forgotten when a container ends after the end of their application and after the configured time."""
    node = Node(CoreSettings(stopped_containers_kept_ms=5000)).register()
    for attempt in (ATTEMPT, OTHER_ATTEMPT):
        container = container_id(1, attempt)
        node.start(tokens=(container_token(1, attempt=attempt),), caller=nm_token(attempt))
        node.step(ContainerLaunched(container, 1))
        node.step(ContainerExited(container, 1, 0))
        node.answer(containers_to_forget=(container,), applications_to_clean_up=(attempt.application_id,))
        node.after(6000, Tick())
        node.answer()
    unknown = f"Container {container_id(1)} is not handled by this NodeManager"
    assert statuses(node, container_id(1)).failed[container_id(1)].message == unknown


def resources(*links: str) -> ContainerLaunchContext:
    return ContainerLaunchContext(
        ("true",), local_resources={link: LocalResource("file:/x", 1, number) for number, link in enumerate(links)}
    )


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("", "it does not name a file"),
        ("./.", "it does not name a file"),
        ("/etc/x", "is absolute"),
        ("../x", "has a `..` part"),
        ("a/../../x", "has a `..` part"),
        ("q'\ntouch f\n'", "has a control character"),
        ("a\0b", "has a control character"),
        ("a\x7f", "has a control character"),
        ("x" * 256, "a part may have at most 255 bytes"),
        ("é" * 128, "a part may have at most 255 bytes"),
        ("/".join(["x" * 200] * 6), "at most 1024 bytes"),
    ],
)
def test_a_link_that_may_be_outside_the_work_directory_is_refused(node: Node, link: str, problem: str) -> None:
    error = refusal(node, tokens=(container_token(1),), launch=resources(link))
    assert problem in error.message
    assert repr(link)[:40] in error.message
    assert node.core.containers == {}


@pytest.mark.parametrize("links", [("a", "a/b"), ("a/b/c", "./a"), ("a/b", "a//./b"), ("a", "a/"), ("a", "a-b", "a/b")])
def test_a_link_below_another_link_is_refused(node: Node, links: tuple[str, ...]) -> None:
    """`a` may point to a directory in a cache that other containers share, in which `a/b` would be made."""
    error = refusal(node, tokens=(container_token(1),), launch=resources(*links))
    assert "the same place or below" in error.message
    assert all(repr(link) in error.message for link in (links[0], links[-1]))


def test_links_may_have_names_with_a_common_prefix(node: Node) -> None:
    links = ("a", "a.txt", "a-b/c", "b/a", "..a", "a b", "it's", "-rf", "$x")
    assert node.start(1, launch=resources(*links)).succeeded == (container_id(1),)


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("", "x", "invalid variable name"),
        ("N=", "x", "invalid variable name"),
        ("a.b", "x", "invalid variable name"),
        ("1A", "x", "invalid variable name"),
        ("A\n", "x", "invalid variable name"),
        ("BASH_FUNC_ls%%", "() { touch f; }", "invalid variable name"),
        ("A;touch f;B", "x", "invalid variable name"),
        ("NUL", "a\0b", "NUL"),
        ("HUGE", "x" * 200_000, "at most 131072 bytes"),
    ],
)
def test_a_variable_that_bash_cannot_export_is_refused(node: Node, variable: str, value: str, problem: str) -> None:
    launch = ContainerLaunchContext(("true",), {variable: value})
    error = refusal(node, tokens=(container_token(1),), launch=launch)
    assert problem in error.message
    assert repr(variable) in error.message
    assert len(error.message) < 1000


def test_a_nul_in_a_command_or_a_url_is_refused(node: Node) -> None:
    """Neither an argument nor a path can contain a NUL."""
    launch = ContainerLaunchContext(("true", "a\0b"), local_resources={"x": LocalResource("file:/a\0", 1, 1)})
    message = refusal(node, tokens=(container_token(1),), launch=launch).message
    assert "command 2 has a NUL character" in message
    assert "the URL of resource 'x' has a NUL character" in message


def test_all_faults_of_a_launch_context_are_listed_up_to_a_limit(node: Node) -> None:
    launch = replace(resources("../x", "/y"), environment={"a b": "1"})
    message = refusal(node, tokens=(container_token(1),), launch=launch).message
    assert all(name in message for name in ("'../x'", "'/y'", "'a b'"))
    many = refusal(node, tokens=(container_token(1),), launch=resources(*(f"../{n}" for n in range(5000)))).message
    assert len(many) < 10_000
    assert "4980 more" in many


@pytest.mark.parametrize("user", ["a'b", 'a"b', "a`id`", "a b", ".a", "a;b"])
def test_a_user_name_that_the_rm_would_refuse_is_refused(node: Node, user: str) -> None:
    """A command may contain $USER, and bash parses a command after expanding variables in it."""
    error = refusal(node, tokens=(replace(container_token(1), user=user),))
    assert "invalid user name" in error.message


def test_links_of_very_many_parts_are_checked(node: Node) -> None:
    """Comparing every leading part of every name would take quadratic time."""
    links = tuple("/".join([*"a" * 500, str(number)]) for number in range(100))
    assert node.start(1, launch=resources(*links)).succeeded == (container_id(1),)
    deep = refusal(node, tokens=(container_token(2),), launch=resources("a/" * 1_000_000))
    assert "at most 1024 bytes" in deep.message
