"""Chapter 12: limit and headroom over time, in the scenes of a well-known article."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct

from rm.view import UseSnapshot
from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number, WordChoice
from yarnling.lessons.scene.samples import GB_MB, Samples, used_gb
from yarnling.lessons.scene.settings import SCHEDULER, preemption, queues
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Mark
from yarnling.simulation.trace_file import RunTrace

NODE = Resource(20 * GB_MB, 20)
SECOND_S = 10.0
FASTER = preemption(
    {
        "total_preemption_per_round": "1",
        "natural_termination_factor": "1",
        "max_ignored_over_capacity": "0",
        "max_wait_before_kill": "1000",
    }
) | {
    f"{SCHEDULER}per-node-heartbeat.maximum-container-assignments": "-1",
    f"{SCHEDULER}per-node-heartbeat.maximum-offswitch-assignments": "1000",
}
"""Preemption without its brakes, and all that fits placed in one heartbeat, so that the pictures are short."""

MARKS = (Mark(2000, "the first application is submitted to a"), Mark(round(1000 * SECOND_S), "submissions to b"))


class _Scene(Struct, frozen=True):
    """A scene. `watched`: the applications in the pictures, in `queue`; `size_gb`: of their containers.

    `claim`: how the article has it.
    """

    about: str
    nodes: int
    capacities: tuple[str, str]
    queue: str
    watched: dict[str, str]
    size_gb: int
    until_s: float
    claim: str


SCENES = {
    "1": _Scene(
        "One user, one application that never has enough, in queue a; queue b is idle.",
        1,
        ("50", "50"),
        "a",
        {"first": "ann"},
        1,
        30.0,
        "While use is below the queue's capacity, the limit is the capacity; then it is use + required.",
    ),
    "2a": _Scene(
        "ann's first application has filled the cluster from queue a; then she submits a second one, with containers "
        "of 4 GB, to queue b.",
        2,
        ("75", "25"),
        "b",
        {"second": "ann"},
        4,
        60.0,
        "The second queue gets almost its capacity: its limit is the capacity, and what is missing is less than a "
        "container.",
    ),
    "2b": _Scene(
        "ann's first application has filled the cluster from queue a; then she submits a second one, with containers "
        "of 1 GB, to queue b.",
        2,
        ("75", "25"),
        "b",
        {"second": "ann"},
        1,
        75.0,
        "Once the second queue is above its capacity its limit jumps to use + required, and preemption brings back "
        "more and more.",
    ),
    "3": _Scene(
        "ann's application has filled the cluster from queue a; then bob, cem and dan submit to queue b.",
        2,
        ("70", "30"),
        "b",
        {"bob": "bob", "cem": "cem", "dan": "dan"},
        1,
        60.0,
        "The limit divides by the active users of the whole system.",
    ),
}


def set_up(scene: str = "1", factor: float = 100.0, minimum: int = 30, trace: RunTrace | None = None) -> Stage:
    chosen = SCENES[scene]
    watched = {"minimum-user-limit-percent": str(minimum), "user-limit-factor": str(factor)}
    own: dict[str, dict[str, str]] = {"a": {"user-limit-factor": "100"}, "b": {}}
    own[chosen.queue] = watched
    tree = {name: {"capacity": capacity, **own[name]} for name, capacity in zip(own, chosen.capacities, strict=True)}
    settings = {**queues(tree), **(FASTER if chosen.nodes > 1 else {})}
    stage = Stage(nodes=chosen.nodes, resource=NODE, settings=settings, trace=trace, encode=trace is not None)
    stage.submit(2.0, "first", (Wanted(100, Resource(GB_MB, 1)),), user="ann", queue="a")
    wanted = (Wanted(40, Resource(chosen.size_gb * GB_MB, 1)),)
    for index, (name, user) in enumerate((name, user) for name, user in chosen.watched.items() if name != "first"):
        stage.submit(SECOND_S + index, name, wanted, user=user, queue="b")
    return stage


def play(scene: str = "1", factor: float = 100.0, minimum: int = 30, trace: RunTrace | None = None) -> Story:
    chosen = SCENES[scene]
    stage = set_up(scene, factor, minimum, trace)
    narrator = Narrator(stage, participants(stage, "first", *(name for name in chosen.watched if name != "first")))
    narrator.say(
        f"Scene {scene}. {chosen.about} {chosen.nodes} x 20 GB; a has {chosen.capacities[0]} % and b "
        f"{chosen.capacities[1]} %. In {chosen.queue} minimum-user-limit-percent is {minimum} and user-limit-factor "
        f"{factor:g}."
    )
    samples = Samples(stage, _measures(stage, chosen, factor, minimum))
    samples.run(chosen.until_s)
    last = tuple(chosen.watched)[-1]
    marks = MARKS if chosen.nodes > 1 else ()
    title = f"Scene {scene}: {'users' if len(chosen.watched) > 1 else 'application'} in queue {chosen.queue}"
    narrator.draw(samples.curves(title, "GB", marks=marks))
    _table(narrator, samples, chosen)
    use = _use(stage, last)
    assert use is not None, f"{last} runs"
    _contrasts(narrator, scene, stage, samples, chosen)
    first_gb = next((gb for gb in samples.values["limit"] if gb), 0.0)
    held = {name: round(used_gb(stage, name)) for name in chosen.watched}
    limit_gb = use.limit.memory_mb // GB_MB
    measured = {
        **{f"{name}_gb": gb for name, gb in held.items()},
        "first_limit_gb": round(first_gb),
        "limit_gb": limit_gb,
        "headroom_gb": use.headroom.memory_mb // GB_MB,
        "a_gb": stage.queue("a").used.memory_mb // GB_MB,
        "preempted": sum(step == "killed" for _, _, step in stage.account.preempted),
    }
    return narrator.story(_question(scene, factor, minimum, measured, held), measured)


def _use(stage: Stage, name: str) -> UseSnapshot | None:
    application_id = stage.applications.get(name)
    return None if application_id is None else stage.view.use(application_id)


def _measures(stage: Stage, scene: _Scene, factor: float, minimum: int) -> dict[str, Callable[[], float]]:
    """Measure the use of each watched application; limit and headroom of the first; and the limit of the article."""
    first = next(iter(scene.watched))

    def limit() -> float:
        use = _use(stage, first)
        return 0.0 if use is None else use.limit.memory_mb / GB_MB

    def headroom() -> float:
        use = _use(stage, first)
        return 0.0 if use is None else use.headroom.memory_mb / GB_MB

    def written() -> float:
        return 0.0 if _use(stage, first) is None else _written_gb(stage, scene, factor, minimum)

    names = scene.watched
    used = {(name if len(names) > 1 else "used"): lambda name=name: used_gb(stage, name) for name in names}
    return {**used, "limit": limit, "headroom": headroom, "limit as written": written}


def _written_gb(stage: Stage, scene: _Scene, factor: float, minimum: int) -> float:
    """The limit by the article's formula: current capacity over the active users of all queues."""
    queue = stage.queue(scene.queue)
    capacity, used = queue.guaranteed.memory_mb / GB_MB, queue.used.memory_mb / GB_MB
    current = capacity if used < capacity else used + 1
    active = {user.name for path in ("root.a", "root.b") for user in stage.view.users(path) if user.is_active}
    total_gb = stage.view.cluster_resource().memory_mb / GB_MB
    limit = min(max(current / max(1, len(active)), current * minimum / 100), capacity * factor, total_gb)
    return float(math.ceil(limit))


def _table(narrator: Narrator, samples: Samples, scene: _Scene) -> None:
    """A row for each amount that the first watched application used."""
    first = next(iter(samples.values))
    rows: dict[float, tuple[str, ...]] = {}
    for index, used in enumerate(samples.values[first]):
        if used:
            others = (samples.values[name][index] for name in ("limit", "headroom", "limit as written"))
            rows[used] = (f"{samples.times_ms[index] / 1000:.0f} s", f"{used:.0f}", *(f"{gb:.3g}" for gb in others))
    narrator.say(f"What {next(iter(scene.watched))} used, and the limit and headroom then, in GB:")
    narrator.table(("last at", "used", "limit", "headroom", "limit as written"), *rows.values())


def _contrasts(narrator: Narrator, scene: str, stage: Stage, samples: Samples, chosen: _Scene) -> None:
    limits = [gb for gb in samples.values["limit"] if gb]
    queue = stage.queue(chosen.queue)
    used, guaranteed = queue.used.memory_mb // GB_MB, queue.guaranteed.memory_mb // GB_MB
    killed = sum(step == "killed" for _, _, step in stage.account.preempted)
    truths = {
        "1": f"The limit began at {limits[0]:.0f} GB, with a capacity of {guaranteed} GB: the share of an active user "
        "counts what active users hold, so at first the minimum-user-limit-percent decides, or a small factor. The "
        "limit is flat at the capacity only with a minimum of 100 %.",
        "2a": f"It depends on the minimum: the limit began at {limits[0]:.0f} GB, and b holds {used} of {guaranteed} "
        f"GB. {killed} containers were preempted. What is left under the limit is less than a container, and "
        "preemption sees no more demand than the headroom.",
        "2b": f"The limit does rise, to {limits[-1]:.0f} GB, but b ended at {used} GB, its guarantee is {guaranteed}: "
        "preemption takes nothing for a queue that has its guarantee, and nothing is free.",
        "3": f"By those of its queue, three in b: ({used} + 1) / 3 is {-(-(used + 1) // 3)}; with ann, who is active "
        f"in a, it would be {-(-(used + 1) // 4)}. The limit is {limits[-1]:.0f} GB at the end.",
    }
    narrator.contrast(chosen.claim, truths[scene])
    if scene == "3":
        ends = [samples.values[name][-1] for name in chosen.watched]
        narrator.say(
            "The users are even within a container: the factor keeps the limit below their share."
            if max(ends) - min(ends) <= 1
            else "The users do not even out: a user is served while not above the limit, and the limit rises with "
            "what they hold, so who came first stays ahead. With a small factor (--factor 0.25) they do."
        )


def _question(scene: str, factor: float, minimum: int, measured: dict[str, int], held: dict[str, int]) -> Question:
    amounts = ", ".join(f"{name} {gb} GB" for name, gb in held.items())
    return Question(
        f"Scene {scene}, user-limit-factor {factor:g}, minimum-user-limit-percent {minimum}. At which limit does "
        f"{next(iter(held))} begin, and how much is used at the end, under which limit?",
        f"{measured['first_limit_gb']} GB; {amounts} under {measured['limit_gb']} GB",
        (
            "The limit is min(capacity x factor, max((held by active users + 1) / active users, current capacity x "
            "minimum)): lesson 11 computes it.",
            f"The headroom reported to the application is {measured['headroom_gb']} GB. Headroom is the least of what "
            "the limit leaves, what the queue's maximum leaves, and what is free in the cluster.",
            f"Queue a holds {measured['a_gb']} GB at the end; {measured['preempted']} containers were preempted.",
        ),
    )


LESSON = Lesson(
    12,
    "headroom",
    "Headroom: limit and use over time",
    (
        "A user's limit is not a constant: it moves with what users hold, and the headroom that is reported to "
        "ApplicationMasters moves with it. An article on Hadoop 2.7 follows it through three scenes; here they are "
        "with Hadoop 3.4.1, as curves, beside the limit by the article's formula.",
    ),
    {
        "limit": "what one user may use in a queue now.",
        "headroom": "what an application could still get now, as its allocate replies report it.",
        "limit as written": "the article's: current capacity / active users of all queues, at least the minimum.",
        "guarantee": "the queue's capacity; preemption restores it, and no more.",
    },
    WordChoice("scene", tuple(SCENES), "the scene of the article"),
    set_up,
    play,
    (
        "Hadoop: UsersManager.computeUserLimit, CapacityHeadroomProvider, TempQueuePerPartition (pending)",
        "here: rm/scheduler/capacity/limits.py, rm/scheduler/preemption/, [timelines](../timelines.md#headroom); cases "
        "B4, B5 and B6 of [the mission cases](../design/mission-cases.md)",
    ),
    (
        Number("factor", 100.0, 0.05, 100.0, "user-limit-factor of the queue", (100.0, 0.25)),
        Number("minimum", 30, 1, 100, "minimum-user-limit-percent of the queue", (30, 100)),
    ),
)
