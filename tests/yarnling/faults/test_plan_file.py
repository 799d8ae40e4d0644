"""Plan files: all mistakes are reported at once, each with line, value, bound and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn.faults import ConfigurationException
from yarnling.faults.actions import ACTIONS
from yarnling.faults.kinds import KINDS, FaultScope
from yarnling.faults.plan import Plan, WorkProgram
from yarnling.faults.plan_file import find_plan, parse_plan, plan_names, read_plan


def plan_of(text: str) -> Plan:
    return parse_plan(text, "plan.yaml", "plan")


def faults_of(text: str) -> list[str]:
    with pytest.raises(ConfigurationException) as refusal:
        plan_of(text)
    return refusal.value.message.splitlines()


def test_a_plan_is_read() -> None:
    plan = plan_of("""
about: Something.
cluster: {nodes: 3, racks: 2, settings: {yarn.scheduler.minimum-allocation-mb: 64}}
work:
  - {program: tasks, tasks: 5, seconds: 0.5, users: "ann, bob"}
faults:
  - {fault: partition-node, node: rack-2, at: [1, 2], for: 3, lost: replies, how: reset}
  - {fault: kill-master, times: 2, every: 0.5, optional: true}
lasts: 6
begins: at once
expect: {nodes_lost: 1, attempts: [1, 3], fence: 2.5}
""")
    assert (plan.name, plan.about, plan.lasts) == ("plan", "Something.", 6.0)
    assert (plan.cluster.nodes, plan.cluster.settings) == (3, {"yarn.scheduler.minimum-allocation-mb": "64"})
    (work,) = plan.work
    assert (work.program, work.tasks, work.seconds, work.users) == (WorkProgram.TASKS, 5, 0.5, ("ann", "bob"))
    partition, kill = plan.faults
    assert (partition.node, partition.at, partition.lasts) == ("rack-2", (1.0, 2.0), (3.0, 3.0))
    assert partition.options == {"lost": "replies", "how": "reset"}
    assert (kill.times, kill.every, kill.lasts, kill.optional) == (2, (0.5, 0.5), (0.0, 0.0), True)
    assert (plan.expect.nodes_lost, plan.expect.attempts, plan.expect.fence) == ((1, 1), (1, 3), 2.5)
    assert plan.needs_network
    assert not plan.awaits_work


def test_users_are_a_list_or_a_string() -> None:
    works = plan_of('work: [{users: [ann, bob]}, {users: "ann, bob"}, {}]').work
    assert [work.users for work in works] == [("ann", "bob"), ("ann", "bob"), ("",)]


def test_all_mistakes_are_reported_with_their_lines() -> None:
    text = """cluster: {nodes: 0, color: red, racks: few}
wrok: []
faults:
  - {fault: kill-nod, at: 3}
  - {fault: pause-node, node: 900, for: [3, 1]}
  - {fault: pause-node, at: 99, containers: false}
lasts: 8
begins: soon
"""
    assert faults_of(text) == [
        "plan.yaml:1: cluster.nodes = '0': is less than 1 (write a number of at least 1)",
        "plan.yaml:1: cluster.racks = 'few': is not a whole number (write a whole number)",
        "plan.yaml:1: cluster.color = 'red': is not a valid key "
        "(valid are nodes, racks, memory, vcores, network, same_ports, settings)",
        "plan.yaml:1: has no work (write work: ...)",
        "plan.yaml:2: wrok: is not a valid key "
        "(did you mean work? valid are about, cluster, work, lasts, faults, begins, expect, seed)",
        "plan.yaml:4: faults[1].fault = 'kill-nod': is not a valid fault "
        f"(did you mean kill-node? valid are {', '.join(KINDS)})",
        "plan.yaml:5: faults[2].for: has its bounds in the wrong order (write [least, most])",
        "plan.yaml:5: faults[2].node = '900': is not a valid node (write any, all, half, or 1 to 100)",
        "plan.yaml:6: faults[3].at = '99': is after the end of the plan, 8 s "
        "(write a higher `lasts`, or an earlier time)",
        "plan.yaml:6: faults[3].containers = 'false': is not a parameter of pause-node (remove it)",
        "plan.yaml:8: begins = 'soon': is not a valid choice (write 'with the work' or 'at once')",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        ("[1, 2]", "is not a mapping"),
        ("a: [", "is not valid YAML: "),
        ("work: []", "plan.yaml:1: work: has 0 items (write at least 1)"),
        ("work: [{may_fail: maybe}]", "may_fail = 'maybe': is not true or false (write true or false)"),
        ("work: [{program: spark}]", "program = 'spark': is not a valid choice (write 'batch', 'service', "),
        (
            "work: [{program: tasks, ignores_term: true}]",
            "ignores_term = 'true': is only valid for batch, service and gang, not for tasks (remove it)",
        ),
        (
            "work: [{program: custom}]",
            "work[1]: is missing: a custom program is a Python file (write file: master.py)",
        ),
        (
            "work: [{program: batch, file: master.py}]",
            "file = 'master.py': is only valid for custom (remove it, or write program: custom)",
        ),
        (
            "work: [{program: custom, file: master.py, keep_containers: true}]",
            "keep_containers = 'true': is not valid for custom, whose attempts start without containers (remove it)",
        ),
        (
            "work: [{program: gang, keep_containers: true}]",
            "keep_containers = 'true': is not valid for gang, of which each attempt starts all members (remove it)",
        ),
        ("work: [{killed_after: -1}]", "killed_after = '-1': is less than 0 (write a number of at least 0)"),
        ("work: [{seconds: .nan}]", "seconds = '.nan': is not a number"),
        ("work: [{seconds: 3601}]", "seconds = '3601': is more than 3600 (write a number of at most 3600)"),
        ("work: {program: batch}", "work: is not a list"),
        ("work: [{}]\nlasts: 0", "lasts = '0': is less than 0.1 (write a number of at least 0.1)"),
        ("work: [{}]\nexpect: {attempts: [3, 1]}", "expect.attempts: has its bounds in the wrong order"),
        ("work: [{}]\nexpect: {attempts: [1, 2, 3]}", "expect.attempts: has 3 items (write one value, or two"),
        ("work: [{}]\nexpect: {attempts: [1, x]}", "expect.attempts[2] = 'x': is not a whole number"),
        ("work: [{}]\nexpect: {attempts: 1.5}", "expect.attempts = '1.5': is not a whole number"),
        ("work: [{}]\nfaults: [{fault: slow-node, loss: 2}]", "loss = '2': is more than 1"),
        ("work: [{}]\nfaults: [{fault: slow-node, loss: x}]", "loss = 'x': is not a valid probability"),
        ("work: [{}]\nfaults: [{at: 2}]", "faults[1]: has no fault"),
        ("work: [{}]\nfaults: [kill-node]", "faults[1] = 'kill-node': is not a mapping"),
        (
            "work: [{}]\nfaults: [{fault: kill-rm, lost: both}]",
            "lost = 'both': is not a parameter of kill-rm (remove it)",
        ),
        (
            "work: [{}]\nfaults: [{fault: kill-node, node: 5}]",
            "node = '5': is not a valid node (write any, all, half, or",
        ),
        ("work: [{}]\nfaults: [{fault: kill-node, count: 5}]", "count = '5': is more than the 4 nodes"),
        ("work: [{}]\ncluster: {racks: 5}", "cluster.racks = '5': is more than the 4 nodes"),
        ("work: [{}]\ncluster: {settings: [1]}", "cluster.settings: is not a mapping"),
    ],
)
def test_an_invalid_plan_is_refused(text: str, expected: str) -> None:
    assert any(expected in line for line in faults_of(text)), faults_of(text)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationException, match="No such file"):
        read_plan(tmp_path / "none.yaml")


@pytest.mark.parametrize("name", plan_names())
def test_ready_made_plans_are_valid(name: str) -> None:
    plan = find_plan(name)
    assert plan.about.endswith(".")
    assert plan.name == name


def test_each_fault_has_an_action_and_a_ready_made_plan() -> None:
    assert set(ACTIONS) == {name for name, kind in KINDS.items() if not kind.only_simulated}
    used = {fault.kind.name for name in plan_names() for fault in find_plan(name).faults}
    assert used == set(KINDS)


def test_only_faults_of_nodes_or_the_resource_manager_hide_nodes() -> None:
    """The fencing window is extended per node, so such a fault must have node numbers."""
    assert all(kind.scope in (FaultScope.NODE, FaultScope.RM) for kind in KINDS.values() if kind.hides_node)
