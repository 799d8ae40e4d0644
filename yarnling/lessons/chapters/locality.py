"""Chapter 5: a container should run where its data is; how long is that worth waiting for?"""

from __future__ import annotations

from functools import partial

from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.settings import SCHEDULER
from yarnling.lessons.scene.stage import Stage
from yarnling.lessons.scene.story import Question, Story
from yarnling.run.names import node
from yarnling.simulation.account import Told
from yarnling.simulation.trace_file import RunTrace

NODES = 8
SIZE = Resource(1024, 1)
ROWS_MAX = 100
ANN_S = 17.4
HOST = "n00001"
SETTINGS = {
    f"{SCHEDULER}root.default.minimum-user-limit-percent": "50",
    f"{SCHEDULER}rack-locality-additional-delay": "40",
}


def set_up(delay: int, trace: RunTrace | None = None) -> Stage:
    settings = {**SETTINGS, f"{SCHEDULER}node-locality-delay": str(delay)}
    stage = Stage(nodes=NODES, racks=2, settings=settings, trace=trace)
    stage.submit(2.0, "bob", (Wanted(8, SIZE, hosts=(HOST,), seconds=15, relax_locality=False),))
    stage.submit(ANN_S, "ann", (Wanted(1, SIZE, hosts=(HOST,), seconds=4),))
    return stage


def play(delay: int, trace: RunTrace | None = None) -> Story:
    stage = set_up(delay, trace)
    narrator = Narrator(stage, ("RM", "NM n1", "AM ann"))
    narrator.say(
        "Eight nodes in two racks: n1, n3, n5 and n7 in one, the others in the other. bob's containers fill n1. The "
        "data that ann's container reads is on n1, so she prefers n1, then its rack, then any node. Only n1 is drawn."
    )
    stage.run(ANN_S - 0.001)
    free = {f"n{number}": stage.node(number).unallocated.memory_mb for number in range(1, NODES + 1)}
    narrator.table(("node", "rack", "free"), *((name, _rack(stage, name), f"{mb} MB") for name, mb in free.items()))
    narrator.skip()
    stage.run_until(lambda: _asked_ms(stage) is not None, 60)
    rows = _opportunities(stage)
    narrator.show(kinds=(), hidden=("getNewApplication", "registerApplicationMaster"))
    narrator.say(
        "The heartbeats of nodes from the request on, and what the scheduler made of each for ann's container:"
    )
    narrator.table(("time", "node", "rack", "free then", "decision", "missed so far"), *rows)
    return _concluded(stage, narrator, delay)


def _asked_ms(stage: Stage) -> int | None:
    return next((at_ms for at_ms, who, _ in stage.account.allocate_replies if who == "AM ann"), None)


def _opportunities(stage: Stage) -> list[tuple[str, ...]]:
    """A row for each node's heartbeat, until the container is placed."""
    rows: list[tuple[str, ...]] = []
    while not _mine(stage) and len(rows) < ROWS_MAX:
        seen = len(_heartbeats(stage))
        stage.run_until(partial(_is_more, stage, seen), 60)
        heartbeat = _heartbeats(stage)[-1]
        name = heartbeat.place.removeprefix("NM ")
        free_mb = stage.node(int(name[1:])).unallocated.memory_mb
        decision = "placed" if _mine(stage) else "full" if free_mb < SIZE.memory_mb else "passed over"
        missed = "" if decision == "placed" else str(stage.view.missed_opportunities(stage.applications["ann"]))
        at = f"{heartbeat.at_ms / 1000:.3f} s"
        rows.append((at, name, _rack(stage, name), f"{free_mb} MB", decision, missed))
    return rows


def _is_more(stage: Stage, seen: int) -> bool:
    return len(_heartbeats(stage)) > seen


def _heartbeats(stage: Stage) -> list[Told]:
    return [told for told in stage.account.told if told.rpc == "nodeHeartbeat" and not told.is_reply]


def _rack(stage: Stage, name: str) -> str:
    return stage.node(int(name[1:])).rack


def _mine(stage: Stage) -> list[str]:
    return [node(each.node_id) for each in stage.containers("ann")]


def _concluded(stage: Stage, narrator: Narrator, delay: int) -> Story:
    place = _mine(stage)[0]
    placed = next(told for told in stage.account.told if "allocates ann-c" in told.text)
    asked_ms = _asked_ms(stage) or 0
    waited_s = (placed.at_ms - asked_ms) / 1000
    kind = (
        "node-local" if place == "n1" else "rack-local" if _rack(stage, place) == _rack(stage, "n1") else "off-switch"
    )
    return narrator.story(
        Question(
            f"node-locality-delay is {delay}. On which node does ann's container run, and how long does it wait?",
            f"on {place} ({kind}), after {waited_s:.3f} s",
            (
                "Each node that sends a heartbeat and is passed over is a missed opportunity. After "
                f"node-locality-delay of them ({delay}; at most the number of nodes, {NODES}) a node of the same rack "
                "will do.",
                "For a node of another rack the application waits for more of them (rack-locality-additional-delay).",
                f"The container was requested at {asked_ms / 1000:.3f} s and placed at {placed.at_ms / 1000:.3f} s.",
            ),
        ),
        {"node": place, "waited_ms": placed.at_ms - asked_ms},
    )


LESSON = Lesson(
    5,
    "locality",
    "Locality: waiting for the right node",
    (
        "Reading data over the network costs more than reading it from the local disk. A resource request can name "
        "the nodes that have the data. The scheduler then passes over other nodes for a while (delay scheduling): a "
        "short wait often brings the right node, a long one costs more than it saves.",
    ),
    {
        "node-local, rack-local, off-switch": "on the named node; on another node of its rack; anywhere else.",
        "scheduling opportunity": "a heartbeat of a node at which the application could have got a container.",
        "delay scheduling": "to let opportunities pass in the hope of a better place.",
    },
    Number("delay", 40, 0, 100, "missed opportunities (yarn.scheduler.capacity.node-locality-delay)", (40, 0, 1)),
    set_up,
    play,
    (
        "Hadoop: RegularContainerAllocator (canAssign, assignContainersOnNode), AppPlacementAllocator",
        "here: rm/scheduler/placement/allocator.py",
    ),
)
