"""Questions about decisions: where a container is placed, which application is preempted, how a failure ends."""

from __future__ import annotations

import random

from yarn.resource import Resource
from yarnling.lessons.chapters.failure import kill_am
from yarnling.lessons.chapters.preemption import PREEMPTION, QUEUES
from yarnling.lessons.quiz.question import QuizQuestion
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.stage import Stage
from yarnling.lessons.scene.story import Rows, Text
from yarnling.run.names import am, node

SIZE = Resource(1024, 1)
STARTED_S = 12.0
SETTLED_S = 26.0


def placement(draw: random.Random) -> QuizQuestion:
    nodes = draw.randint(3, 4)
    names = [f"n{number}" for number in range(1, nodes + 1)]
    stage = Stage(nodes=nodes, encode=False)
    fill = tuple(Wanted(draw.randint(3, 7), SIZE, (f"n{int(name[1:]):05}",), relax_locality=False) for name in names)
    stage.submit(2.0, "bob", fill)
    big_mb = draw.choice((2048, 3072, 4096))
    stage.submit(SETTLED_S + draw.random(), "ann", (Wanted(1, Resource(big_mb, 1), seconds=30),))
    stage.run(SETTLED_S)
    stage.run_until(lambda: any(who == am("ann") for _, who, _ in stage.account.allocate_replies), SETTLED_S + 10)
    asked_ms = stage.now_ms
    free = {name: stage.node(int(name[1:])).unallocated.memory_mb for name in names}
    last = {name: _last_heartbeat_ms(stage, name) for name in names}
    order = sorted(names, key=lambda name: last[name])
    if max(free.values()) < big_mb:
        return placement(draw)
    stage.run_until(lambda: bool(stage.containers("ann")), SETTLED_S + 30)
    place = node(stage.containers("ann")[0].node_id)
    rows = tuple((name, f"{free[name]} MB", f"{(asked_ms - last[name]) / 1000:.3f} s ago") for name in names)
    return QuizQuestion(
        (
            Text(
                f"ann's AM has just requested one container of {big_mb} MB anywhere. Nobody else waits, and nothing "
                "ends."
            ),
            Rows(("node", "free", "last heartbeat"), rows),
        ),
        "Every node sends a heartbeat each second. On which node is the container placed?",
        place,
        (
            f"The next heartbeats come from {', '.join(order)}, in this order: the longest ago comes first.",
            *(
                f"{name} has {free[name]} MB free: " + ("it fits." if free[name] >= big_mb else "too little for it.")
                for name in order[: order.index(place) + 1]
            ),
            "The scheduler does not look for the best node: it serves the node that calls.",
        ),
        tuple(names),
    )


def _last_heartbeat_ms(stage: Stage, name: str) -> int:
    return max(told.at_ms for told in stage.account.told if told.rpc and told.place == f"NM {name}")


def preemption(draw: random.Random) -> QuizQuestion:
    stage = Stage(nodes=2, settings={**PREEMPTION, **QUEUES}, encode=False)
    first, second = draw.sample(("ann", "cat"), 2)
    counts = {first: draw.randint(3, 6), second: draw.randint(3, 6)}
    stage.submit(2.0, first, (Wanted(counts[first], SIZE),), queue="a")
    stage.submit(STARTED_S, second, (Wanted(20, SIZE),), queue="a")
    stage.run(SETTLED_S)
    held = {name: stage.use(name).used.memory_mb for name in (first, second)}
    stage.submit(SETTLED_S, "bob", (Wanted(2, SIZE),), queue="b")
    stage.run_until(lambda: bool(stage.account.preempted), SETTLED_S + 60)
    container_id = stage.account.preempted[0][1]
    victim = stage.names.application(container_id.application_id)
    rows = tuple((name, "a", f"{at_s:.0f} s", f"{held[name]} MB") for name, at_s in ((first, 2.0), (second, STARTED_S)))
    return QuizQuestion(
        (
            Text("The cluster is full. Queues a and b are guaranteed half each; b is idle, and preemption is enabled."),
            Rows(("application", "queue", "submitted at", "uses"), rows),
        ),
        "bob submits an application to queue b. Of which application is the first container that is preempted?",
        victim,
        (
            "Within a queue, applications are preempted in the reverse order of their submission: the latest first, "
            "and of each its latest containers first, AMs last.",
            f"{second} was submitted after {first}; the first container to go was "
            f"{stage.names.container(container_id)}.",
        ),
        tuple(sorted((first, second))),
    )


def failure(draw: random.Random) -> QuizQuestion:
    allowed, kills = draw.randint(1, 4), draw.randint(0, 4)
    settings = {"yarn.resourcemanager.am.max-attempts": str(allowed)}
    requested = draw.choice((0, 0, draw.randint(1, 6)))
    stage = Stage(nodes=2, settings=settings, encode=False)
    stage.submit(2.0, "ann", (Wanted(1, SIZE),), attempts=requested)
    for number in range(kills):
        stage.happening(10 + 8 * number, am("ann"), "the AM is killed", lambda: kill_am(stage))
    stage.run(10 + 8 * (kills + 1))
    app = stage.application("ann")
    made, state = app.attempts, app.state.name
    asked = f"The application was submitted with max-app-attempts {requested}. " if requested else ""
    bound = min(allowed, requested) if requested else allowed
    return QuizQuestion(
        (
            Text(
                f"yarn.resourcemanager.am.max-attempts is {allowed}. {asked}ann's AM runs; its process is killed "
                f"{kills} time{'' if kills == 1 else 's'} (as often as it is started again)."
            ),
        ),
        "In which state is the application afterwards: RUNNING or FAILED?",
        state,
        (
            f"Attempts allowed: {bound}" + (" (the smaller of the two numbers)." if requested else "."),
            f"Attempts made: {made}. Each kill ends one, and the RM starts the next one while it may.",
        ),
        ("RUNNING", "FAILED"),
    )
