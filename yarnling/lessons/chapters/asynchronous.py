"""Chapter 23: containers are placed by heartbeats of nodes, or by walks over all nodes."""

from __future__ import annotations

from typing import NamedTuple

from yarn.resource import Resource
from yarn.times import short_number
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.samples import Samples
from yarnling.lessons.scene.settings import SCHEDULER
from yarnling.lessons.scene.stage import Stage
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Curve, Curves, Mark
from yarnling.run.names import node
from yarnling.simulation.engine import START_MS
from yarnling.simulation.trace_file import RunTrace

SIZE = Resource(1024, 1)
WANTED = 16
ANN_S = 10.0
END_S = 17.0
SAMPLE_S = 0.25
INTERVAL_MS = 5
ASYNCHRONOUSLY = f"{SCHEDULER}schedule-asynchronously.enable"
HEARTBEATS, WALKS = "heartbeats", "walks"


class Placed(NamedTuple):
    """A container that was placed, and when: ms since its request."""

    after_ms: int
    node: str


class PlacementRun(NamedTuple):
    """A run: its containers in the order of their placement, and how many ms after the request the AM had them all."""

    requested_ms: int
    placed: tuple[Placed, ...]
    received_ms: int
    samples: Samples


def set_up(nodes: int, trace: RunTrace | None = None, by: str = WALKS) -> Stage:
    stage = Stage(nodes=nodes, settings={ASYNCHRONOUSLY: str(by == WALKS).lower()}, trace=trace)
    stage.submit(ANN_S, "ann", (Wanted(WANTED, SIZE),))
    return stage


def play(nodes: int, trace: RunTrace | None = None) -> Story:
    stage = set_up(nodes, trace)
    narrator = Narrator(stage, ("RM", "AM ann"))
    narrator.say(
        f"{nodes} empty nodes of 8192 MB, each with a heartbeat every second. ann requests {WANTED} containers of "
        f"{SIZE.memory_mb} MB. Here scheduling is asynchronous: every {INTERVAL_MS} ms the scheduler walks over all "
        "nodes, and heartbeats of nodes place nothing."
    )
    stage.run(ANN_S)
    narrator.skip()
    walks = watched(stage)
    narrator.show(kinds=(), hidden=("getNewApplication", "startContainers", "registerApplicationMaster"))
    heartbeats = watched(set_up(nodes, by=HEARTBEATS))
    narrator.say(
        "The same without asynchronous scheduling, as by default in Hadoop 3.4.1: a heartbeat serves its own node, and "
        "with one container at most (maximum-offswitch-assignments 1). Containers by the time since the request:"
    )
    narrator.table((HEARTBEATS, "on", WALKS, "on"), *_side_by_side(heartbeats, walks))
    narrator.draw(_picture(heartbeats, walks))
    return narrator.story(_question(nodes, heartbeats, walks), _measured(heartbeats, walks))


def watched(stage: Stage) -> PlacementRun:
    samples = Samples(stage, {"placed": lambda: float(len(stage.containers("ann")))}, SAMPLE_S)
    samples.run(END_S)
    replies = [(at_ms, reply) for at_ms, _, reply in stage.account.allocate_replies]
    requested_ms = replies[0][0]
    # Containers are numbered in the order in which they are placed.
    found = sorted((each.container_id.sequence, each.started_ms, each.node_id) for each in stage.containers("ann"))
    placed = tuple(Placed(at_ms - START_MS - requested_ms, node(node_id)) for _, at_ms, node_id in found)
    received_ms = [at_ms for at_ms, reply in replies if reply.allocated][-1] - requested_ms
    return PlacementRun(requested_ms, placed, received_ms, samples)


def _side_by_side(heartbeats: PlacementRun, walks: PlacementRun) -> list[tuple[str, ...]]:
    """A row for each moment at which containers were placed, in both ways."""
    left, right = _moments(heartbeats), _moments(walks)
    count = max(len(left), len(right))
    return [
        (*row, *other)
        for row, other in zip(
            left + [("", "")] * (count - len(left)), right + [("", "")] * (count - len(right)), strict=True
        )
    ]


def _moments(seen: PlacementRun) -> list[tuple[str, str]]:
    moments: dict[int, list[str]] = {}
    for after_ms, place in seen.placed:
        moments.setdefault(after_ms, []).append(place)
    return [(f"{after_ms / 1000:.3f} s", " ".join(places)) for after_ms, places in moments.items()]


def _picture(heartbeats: PlacementRun, walks: PlacementRun) -> Curves:
    start = round(ANN_S / SAMPLE_S)
    times_ms = walks.samples.times_ms[start:]
    curves = [
        Curve(f"by {name}", tuple(seen.samples.values["placed"][start:]), float(WANTED))
        for name, seen in ((HEARTBEATS, heartbeats), (WALKS, walks))
    ]
    marks = (Mark(walks.requested_ms - times_ms[0], "ann requests them"),)
    return Curves("Containers", "placed", tuple(each - times_ms[0] for each in times_ms), tuple(curves), marks)


def _measured(heartbeats: PlacementRun, walks: PlacementRun) -> dict[str, int]:
    measured: dict[str, int] = {}
    for name, seen in ((HEARTBEATS, heartbeats), (WALKS, walks)):
        measured |= {
            f"{name}_first_ms": seen.placed[0].after_ms,
            f"{name}_last_ms": seen.placed[-1].after_ms,
            f"{name}_received_ms": seen.received_ms,
        }
    return measured


def _question(nodes: int, heartbeats: PlacementRun, walks: PlacementRun) -> Question:
    last = {name: seen.placed[-1].after_ms / 1000 for name, seen in ((HEARTBEATS, heartbeats), (WALKS, walks))}
    received = {name: seen.received_ms / 1000 for name, seen in ((HEARTBEATS, heartbeats), (WALKS, walks))}
    walked = len(_moments(walks))
    return Question(
        f"How long does it take with {nodes} nodes until all {WANTED} containers are placed, by heartbeats and by "
        "walks?",
        f"{last[HEARTBEATS]:.3f} s by heartbeats, {last[WALKS]:.3f} s by walks",
        (
            f"By heartbeats {nodes} nodes place {nodes} containers a second: {WANTED} take "
            f"{short_number(WANTED / nodes)} s or a little less, because the first heartbeats come soon.",
            f"A walk starts at a random node, here {walks.placed[0].node}, and visits each node once and the first "
            f"one again: {nodes + 1} containers every {INTERVAL_MS} ms. {walked} "
            f"{'walk was' if walked == 1 else 'walks were'} enough.",
            f"The AM learns of its containers when it calls allocate, once a second: it had all after "
            f"{received[HEARTBEATS]:.3f} s and after {received[WALKS]:.3f} s. allocate itself places nothing.",
            "Often written: the scheduler goes over all nodes from a random one on (schedule(cs)). Hadoop 3.4.1: only "
            "with schedule-asynchronously.enable, which is off by default there, and on from 3.5.0.",
        ),
    )


LESSON = Lesson(
    23,
    "asynchronous",
    "Asynchronous scheduling: heartbeats of nodes against walks over all nodes",
    (
        "Who decides when a container is placed? In Hadoop 3.4.1 the heartbeat of a node: it brings the scheduler to "
        "look at this node, and at no other. With asynchronous scheduling a thread of the scheduler walks over all "
        "nodes, again and again, and heartbeats only report. Descriptions of the code that show a loop over all nodes "
        "describe this way, which is the default from 3.5.0 on.",
    ),
    {
        "schedule-asynchronously.enable": "whether walks place containers; false in 3.4.1, true in 3.5.0.",
        "scheduling-interval-ms": "the pause between two walks, 5 ms.",
        "maximum-offswitch-assignments": "containers without a preferred node that a heartbeat may place: 1.",
    },
    Number("nodes", 4, 3, 40, "nodes of the cluster", (4, 8, 16)),
    set_up,
    play,
    (
        "Hadoop: CapacityScheduler.schedule, AsyncScheduleThread, CapacityScheduler.nodeUpdate; YARN-7327 for 3.5.0",
        "the releases: docs/design/releases.md; an upgrade with both: docs/what-if-examples.md",
        "here: rm/scheduler/placement/walk.py, rm/scheduler/heartbeat.py",
    ),
)
