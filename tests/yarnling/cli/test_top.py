"""The frames of `yarnling top`: bars of used, guaranteed and maximum capacity, and why applications wait."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.yarnling.cli.test_explain import WAITING
from tests.yarnling.cli.test_output import EVIL, TAMED
from yarn.applications import ApplicationReport, ApplicationResourceUsage
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.nodes import NodeHealth, NodeReport
from yarn.queues import QueueInfo, QueueStatistics
from yarn.resource import NONE, Resource
from yarn.states import NodeState, QueueState, YarnApplicationState
from yarnling.cli.top import APPLICATIONS_MAX, TopView, as_object, frame
from yarnling.cluster.snapshot import ClusterSnapshot
from yarnling.report.block_characters import bar

APP = ApplicationId(1, 1)


def queue(name: str, used: float, guaranteed: float, most: float, *children: QueueInfo) -> QueueInfo:
    state, counts = QueueState.RUNNING, QueueStatistics()
    return QueueInfo(name, f"root.{name}", state, 0.0, 0.0, 0.0, guaranteed, most, used, counts, children)


def application(number: int = 1, state: YarnApplicationState = YarnApplicationState.RUNNING) -> ApplicationReport:
    app_id = ApplicationId(1, number)
    usage = ApplicationResourceUsage(3, 0, NONE, NONE, NONE)
    return ApplicationReport(app_id, "ann", "root.a", "n", state, ApplicationAttemptId(app_id, 1), usage=usage)


NODE = NodeReport(
    NodeId("127.0.0.2", 41000), NodeState.RUNNING, "", "/r", Resource(4096, 3), Resource(8192, 8), 3, NodeHealth()
)
ROOT = queue("root", 0.35, 1.0, 1.0, queue("a", 0.3, 0.2, 0.6), queue("b", 0.05, 0.8, 1.0))
TOP = TopView("default", "2023-11-14T12:00:01.000+00:00", ClusterSnapshot((NODE,), ROOT, (application(),)), (WAITING,))


def lines(top: TopView = TOP, width: int = 60) -> list[str]:
    return [line.plain for line in frame(top, width)]


def test_a_frame_of_sixty_columns() -> None:
    drawn = lines()
    assert max(map(len, drawn)) <= 60
    assert drawn == [
        "default  12:00:01  1 of 1 nodes running, 1 application",
        "queue: used / guaranteed / maximum",
        "root              ████████░░░░░░░░░░░░░░   35% / 100% / 100%",
        "  a               ███████░░░░░░            30% /  20% /  60%",
        "  b               █░░░░░░░░░░░░░░░░░|░░░    5% /  80% / 100%",
        "node: memory and vcores in use",
        "127.0.0.2:41000   █████████░░░░░░░░░ 4096 / 8192 MB, 3 / 8",
        "application: its containers, what it waits for",
        "application_1_0001 RUNNING a, 3 containers",
        "  waits for 3 x 1024 MB, 1 vcore",
        "    because queue root.a is at its maximum: it would use 51…",
    ]


@pytest.mark.parametrize(
    ("used", "guaranteed", "most", "drawn"),
    [
        (0.0, 0.5, 1.0, "░░░░░|░░░░"),
        (0.3, 0.5, 0.8, "███░░|░░  "),
        (0.7, 0.5, 0.8, "███████░  "),
        (1.0, 1.0, 1.0, "██████████"),
        (0.0, 0.0, 0.2, "░░        "),
    ],
)
def test_a_bar(used: float, guaranteed: float, most: float, drawn: str) -> None:
    assert bar(used, guaranteed, most, 10).plain == drawn


def test_use_above_the_guarantee_is_yellow() -> None:
    styles = [span.style for span in bar(0.4, 0.2, 1.0, 10).spans]
    assert styles[:4] == ["green", "green", "yellow", "yellow"]


def test_ended_applications_are_left_out_and_excess_ones_counted() -> None:
    over = application(99, YarnApplicationState.FINISHED)
    many = tuple(application(number) for number in range(1, APPLICATIONS_MAX + 4))
    drawn = lines(replace(TOP, view=ClusterSnapshot((NODE,), ROOT, (*many, over))))
    assert not any("application_1_0099" in line for line in drawn)
    assert drawn[-1] == "... and 3 more"
    assert drawn[0].endswith(f"{APPLICATIONS_MAX + 3} applications")


def test_a_node_that_is_not_running_shows_its_state() -> None:
    lost = replace(NODE, state=NodeState.LOST)
    assert "127.0.0.2:41000   LOST" in lines(replace(TOP, view=ClusterSnapshot((lost,), ROOT, ())))


@pytest.mark.parametrize(
    ("state", "condition", "shown"),
    [
        (NodeState.RUNNING, "paused", "RUNNING, paused"),
        (NodeState.RUNNING, "ended", "RUNNING, ended"),
        (NodeState.LOST, "paused", "LOST, paused"),
        (NodeState.LOST, "ended", "LOST"),
        (NodeState.DECOMMISSIONED, "ended", "DECOMMISSIONED"),
        (NodeState.RUNNING, "partitioned", "RUNNING, partitioned"),
        (NodeState.LOST, "partitioned", "LOST, partitioned"),
    ],
)
def test_the_condition_of_a_process_is_shown_if_it_adds_something(state: NodeState, condition: str, shown: str) -> None:
    node = replace(NODE, state=state)
    view = ClusterSnapshot((node,), ROOT, (), {str(NODE.node_id): condition})
    assert f"127.0.0.2:41000   {shown}" in lines(replace(TOP, view=view))


def test_a_paused_node_that_is_unknown_to_a_new_resource_manager_is_shown() -> None:
    view = ClusterSnapshot((NODE,), ROOT, (), {"127.0.0.9:1": "paused", "127.0.0.8:1": "ended"})
    drawn = lines(replace(TOP, view=view))
    assert "127.0.0.9:1 is paused, and unknown to the ResourceManager" in drawn
    assert not any("127.0.0.8" in line for line in drawn)


def test_control_characters_in_names_are_escaped() -> None:
    evil = replace(application(), queue=EVIL)
    view = ClusterSnapshot((), queue(EVIL, 0, 0, 1), (evil,))
    assert any(TAMED[:20] in line for line in lines(replace(TOP, view=view)))
    assert not any("\x1b" in line for line in lines(replace(TOP, cluster=EVIL, view=replace(view, root=ROOT))))


def test_json_is_one_object() -> None:
    printed = as_object(TOP)
    assert list(printed) == ["cluster", "time", "nodes", "root", "applications", "conditions", "waiting"]
    ((waiting),) = printed["waiting"]  # type: ignore[misc]
    assert waiting["obstacles"][0]["bound"]["memory-mb"] == 4096  # type: ignore[index]


def test_in_a_pipe_names_and_reasons_are_not_cut() -> None:
    name = "a-queue-with-a-name-that-is-longer-than-any-column"
    top = replace(TOP, view=replace(TOP.view, root=queue("root", 0.3, 1.0, 1.0, queue(name, 0.3, 0.2, 0.6))))
    assert not any(name in line for line in lines(top, 80))
    assert any(name in line for line in lines(top, 160))
    piped = [line.plain for line in frame(top, 80, cut=False)]
    assert any(name in line for line in piped)
    assert not any("…" in line for line in piped)
