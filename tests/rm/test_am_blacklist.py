"""Hosts on which an AM failed are avoided for the application's next AM (SimpleBlacklistManager)."""

import pytest

from rm.core.applications import AMBlacklist, applicable_nodes
from rm.scheduler.model.node import SchedulerNode
from tests.rm.builders import RM, done, resource_request
from yarn.containers import ANY, ResourceRequest
from yarn.ids import ApplicationId, NodeId
from yarn.resource import Resource
from yarn.states import ContainerExitStatus

KEY = "yarn.resourcemanager.am-scheduling.node-blacklisting-enabled"
THRESHOLD = "yarn.resourcemanager.am-scheduling.node-blacklisting-disable-threshold"


def cluster(hosts: int = 2, **conf: str) -> RM:
    rm = RM({KEY: "true", THRESHOLD: "0.6", "yarn.resourcemanager.am.max-attempts": "4", **conf})
    for number in range(1, hosts + 1):
        rm.node(f"n{number}")
    return rm


def crash_on(rm: RM, app: ApplicationId, host: str, exit_status: int = 1) -> None:
    am = rm.run_am(app, host)
    assert am.node_id.host == host
    rm.beat(host, [done(am.id, exit_status)])


def has_am(rm: RM, app: ApplicationId, host: str) -> bool:
    """True if a heartbeat of the host gives the waiting AM its container."""
    rm.beat(host)
    return rm.attempt_state(app) != "SCHEDULED"


def test_the_next_am_avoids_the_host_of_the_failed_one() -> None:
    rm = cluster()
    app = rm.submit()
    crash_on(rm, app, "n1")

    assert not has_am(rm, app, "n1")
    assert has_am(rm, app, "n2")


def test_by_default_failed_am_hosts_are_not_avoided() -> None:
    rm = cluster(**{KEY: "false"})
    app = rm.submit()
    crash_on(rm, app, "n1")

    assert has_am(rm, app, "n1")


def test_the_am_blacklist_does_not_apply_to_tasks() -> None:
    rm = cluster()
    app = rm.submit()
    crash_on(rm, app, "n1")
    rm.run_am(app, "n2")

    rm.allocate(app, [resource_request(1)])
    rm.beat("n1")
    assert len(rm.allocate(app).allocated) == 1


def test_above_the_threshold_all_hosts_are_allowed_again() -> None:
    rm = cluster()
    app = rm.submit()
    crash_on(rm, app, "n1")
    crash_on(rm, app, "n2")

    assert has_am(rm, app, "n1")


def test_an_invalid_threshold_counts_as_the_default() -> None:
    rm = cluster(hosts=4, **{THRESHOLD: "1.5"})
    app = rm.submit()
    crash_on(rm, app, "n1")

    assert has_am(rm, app, "n1"), "one host of four is more than the default of 0.2"


def test_a_threshold_of_a_fifth_tolerates_one_host_of_five() -> None:
    """0.2 has no exact 32-bit form: 5 times it is more than 1."""
    rm = cluster(hosts=5, **{THRESHOLD: "0.2"})
    app = rm.submit()
    crash_on(rm, app, "n1")

    assert not has_am(rm, app, "n1")


def test_a_lost_node_is_not_blacklisted() -> None:
    rm = cluster()
    app = rm.submit()
    rm.run_am(app, "n1")
    rm.node("n1")

    assert has_am(rm, app, "n1")


@pytest.mark.parametrize(
    ("exit_status", "noted"),
    [
        (ContainerExitStatus.SUCCESS, False),
        (ContainerExitStatus.PREEMPTED, False),
        (ContainerExitStatus.ABORTED, False),
        (ContainerExitStatus.DISKS_FAILED, False),
        (ContainerExitStatus.KILLED_BY_RESOURCEMANAGER, False),
        (ContainerExitStatus.KILLED_BY_APPMASTER, False),
        (ContainerExitStatus.KILLED_AFTER_APP_COMPLETION, False),
        (ContainerExitStatus.KILLED_EXCEEDED_VMEM, False),
        (ContainerExitStatus.KILLED_EXCEEDED_PMEM, False),
        (ContainerExitStatus.INVALID, True),
        (ContainerExitStatus.KILLED_FOR_EXCESS_LOGS, True),
        (1, True),
        (143, True),
    ],
)
def test_which_exit_statuses_blacklist_the_node(exit_status: int, noted: bool) -> None:
    blacklist = AMBlacklist(1.0)
    blacklist.note_end(exit_status, node("n1"))

    assert blacklist.updates(9) == ((("n1",), ()) if noted else ((), ()))


def test_the_blacklist_is_ignored_above_the_threshold() -> None:
    blacklist = AMBlacklist(0.5)
    for host in ("n1", "n2"):
        blacklist.note_end(1, node(host))

    assert blacklist.updates(5) == (("n1", "n2"), ())
    assert blacklist.updates(4) == ((), ("n1", "n2"))


def test_applicable_nodes_are_those_that_match_the_requests_of_the_am() -> None:
    nodes = [node("n1", "/r1"), node("n2", "/r1"), node("n3", "/r2", "x")]

    assert applicable_nodes([am_request(ANY)], nodes) == 2
    assert applicable_nodes([am_request(ANY, label="x")], nodes) == 1
    assert applicable_nodes([am_request(ANY, label="y")], nodes) == 3
    assert applicable_nodes([am_request(ANY), am_request("/r1")], nodes) == 2
    assert applicable_nodes([am_request(ANY), am_request("n1"), am_request("n3")], nodes) == 1
    assert applicable_nodes([am_request(ANY, label="y"), am_request("n1"), am_request("n3")], nodes) == 2
    assert applicable_nodes([am_request(ANY, relax=False), am_request("/r1", relax=False)], nodes) == 2


def node(host: str, rack: str = "/default-rack", partition: str = "") -> SchedulerNode:
    found = SchedulerNode(NodeId(host, 1), host, rack, Resource(1024, 1), "")
    found.partition = partition
    return found


def am_request(name: str, label: str | None = None, *, relax: bool = True) -> ResourceRequest:
    return ResourceRequest(0, name, Resource(1024, 1), 1, relax_locality=relax, label=label)
