"""The text of an explanation: amounts with units, ages, keys, and no control characters."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeHealth, NodeReport
from yarn.protocols.inspection import (
    Explanation,
    NodesAlike,
    ObstacleReport,
    ObstacleScope,
    PendingAsk,
    RefusedStartReport,
    Reservation,
    SettingInForce,
    VerdictReport,
)
from yarn.resource import Resource
from yarn.states import NodeState, YarnApplicationState
from yarnling.cli.shared.output import print_indented
from yarnling.cluster.explanations import explained

APP = ApplicationId(1, 1)
N1 = NodeId("127.0.0.2", 1000)
FULL = ObstacleReport(
    ObstacleScope.QUEUE,
    "root.a",
    N1,
    "QUEUE_MAXIMUM",
    "Queue hits max-capacity limit",
    Resource(4096, 4),
    Resource(4096, 4, (("yarn.io/gpu", 2),)),
    7_000,
    (SettingInForce("yarn.scheduler.capacity.root.a.maximum-capacity", "50 %"),),
)
WAITING = Explanation(
    APP,
    "ann",
    "root.a",
    YarnApplicationState.RUNNING,
    10_000,
    (PendingAsk(1, -1, "*", Resource(1024, 1), 3, relax_locality=True, label="gpu"),),
    (Reservation(N1, Resource(2048, 2), 10_000 - 125_000),),
    (FULL,),
    (
        VerdictReport(
            1,
            -1,
            "QUEUE_MAXIMUM",
            "waits because queue root.a is at its maximum: it would use 5120 of 4096 MB (maximum-capacity 50 %)",
            4_000,
            FULL.settings,
            ("n9 is LOST",),
            (
                NodesAlike(37, "512 MB free, 1024 needed", (N1, N1)),
                NodesAlike(3, "blacklisted", (N1,)),
            ),
            ("with maximum-capacity 60 of queue root.a",),
        ),
    ),
)


def lines(explanation: Explanation) -> list[str]:
    return [line.plain for line in explained(explanation)]


def test_an_explanation_for_people() -> None:
    assert lines(WAITING) == [
        "application_1_0001 of ann in root.a: RUNNING",
        "  3 x 1024 MB, 1 vcore anywhere, priority 1, label gpu",
        "    waits because queue root.a is at its maximum: it would use 5120 of 4096 MB (maximum-capacity 50 %)",
        "    it would get a container with maximum-capacity 60 of queue root.a",
        "    yarn.scheduler.capacity.root.a.maximum-capacity = 50 %",
        "    n9 is LOST",
        "    on 37 of 40 nodes (127.0.0.2, 127.0.0.2, ...): 512 MB free, 1024 needed",
        "    on 3 of 40 nodes (127.0.0.2, ...): blacklisted",
        "    requested 6 s ago",
        "Reserved for it on 127.0.0.2:1000: 2048 MB, 2 vcores, for 2.1 min",
        "Last refusals",
        "  on 127.0.0.2:1000, 3 s ago, queue root.a: Queue hits max-capacity limit",
        "    in use 4096 MB, 4 vcores; at most 4096 MB, 4 vcores, 2 yarn.io/gpu",
        "    yarn.scheduler.capacity.root.a.maximum-capacity = 50 %",
    ]


def test_only_types_that_count_are_printed() -> None:
    printed = lines(replace(WAITING, counted_types=("memory-mb",)))
    assert printed[1] == "  3 x 1024 MB anywhere, priority 1, label gpu"
    assert printed[-2] == "    in use 4096 MB; at most 4096 MB"


def test_equal_refusals_are_printed_once() -> None:
    other = replace(FULL, node_id=NodeId("127.0.0.3", 1000), at_ms=5_000)
    everywhere = replace(FULL, node_id=None, scope=ObstacleScope.USER, subject="ann", asked=None, bound=None)
    printed = lines(replace(WAITING, obstacles=(everywhere, FULL, other), verdicts=()))
    assert printed[4] == "  everywhere, 3 s ago, user ann: Queue hits max-capacity limit"
    together = "  on 2 nodes (127.0.0.2, 127.0.0.3), 3 s to 5 s ago, queue root.a: Queue hits max-capacity limit"
    assert [line for line in printed if "root.a:" in line and "hits" in line] == [together]


def test_without_obstacles_the_reason_is_given() -> None:
    assert lines(replace(WAITING, obstacles=()))[-1].startswith("No refusal yet")
    assert lines(replace(WAITING, asks=(), obstacles=(), reservations=(), verdicts=()))[1:] == [
        "It has no pending requests."
    ]
    over = replace(WAITING, state=YarnApplicationState.KILLED, asks=(), obstacles=(), reservations=(), verdicts=())
    assert lines(over)[1:] == ["It has ended."]
    refused = VerdictReport(0, -1, "APPLICATION_LIMIT", "was refused: Queue root.a already has 1 applications", 1)
    assert lines(replace(over, verdicts=(refused,)))[1:] == ["It has ended.", f"    {refused.sentence}"]


def test_without_a_running_node_the_complaints_of_nodes_are_given() -> None:
    ill = NodeReport(
        N1,
        NodeState.UNHEALTHY,
        "127.0.0.2:0",
        "/default-rack",
        Resource(0, 0),
        Resource(0, 0),
        0,
        NodeHealth(False, "free space below limit of 16MB", 0),
    )
    unserved = replace(WAITING, obstacles=())
    printed = [line.plain for line in explained(unserved, (ill,))]
    assert printed[-2:] == ["No node is running.", "  127.0.0.2:1000 UNHEALTHY: free space below limit of 16MB"]
    well = replace(ill, state=NodeState.RUNNING, health=NodeHealth())
    assert [line.plain for line in explained(unserved, (ill, well))][-1] == printed[-1]
    assert lines(unserved) == [line.plain for line in explained(unserved, (well,))]


def test_a_refused_start_is_named_first() -> None:
    container_id = ContainerId.parse("container_1_0001_01_000002")
    refused = RefusedStartReport(container_id, N1, "The auxService:x\x1b does not exist", 4_000)
    assert lines(replace(WAITING, refused_start=refused))[1:3] == [
        f"127.0.0.2:1000 refused to start {container_id}, 6 s ago:",
        "    The auxService:x\\x1b does not exist",
    ]


def test_an_accepted_application_waits_for_its_application_master() -> None:
    assert lines(replace(WAITING, state=YarnApplicationState.ACCEPTED))[1].endswith(", for its ApplicationMaster")


def test_control_characters_in_names_are_escaped() -> None:
    printed = lines(replace(WAITING, user="\x1b[2J", queue="[/x]"))
    assert printed[0] == "application_1_0001 of \\x1b[2J in [/x]: RUNNING"


@pytest.mark.parametrize("width", [24, 40, 80])
def test_a_line_longer_than_the_terminal_is_wrapped_between_words_and_indented(width: int) -> None:
    console = Console(width=width, force_terminal=True, color_system=None, highlight=False)
    line = "    the key yarn.scheduler.capacity.root.a.maximum-capacity decides what this queue may have"
    with console.capture() as capture:
        print_indented(console, Text(line))
    printed = capture.get().splitlines()
    assert " ".join(capture.get().split()) == line.strip()
    assert len(printed) > 1
    assert [len(part) - len(part.lstrip()) for part in printed] == [4] + [6] * (len(printed) - 1)
    assert all(len(part) <= width for part in printed if " " in part.strip())
