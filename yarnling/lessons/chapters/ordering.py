"""Chapter 13: the ordering policy of a leaf decides which of its applications is served first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from yarn.resource import Resource
from yarn.states import YarnApplicationState
from yarnling.lessons.chapters.failure import RETRY_INTERVALS
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number, WordChoice
from yarnling.lessons.scene.samples import Samples, used_gb
from yarnling.lessons.scene.settings import SCHEDULER
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Mark
from yarnling.simulation.trace_file import RunTrace

SIZE = Resource(1024, 1)
MAPS, REDUCES, SMALL = 40, 8, 12
"""Containers of the early application by the priority of their requests, and of the late one."""
LATE_S = 20.0
LOOK_S = 40.0
LIMIT_S = 300.0
PRIORITY_MAX = 10
SUBMITTED_S = {"early": 2.0, "late": LATE_S}
NAMES = tuple(SUBMITTED_S)
FIFO, FAIR, FOR_PENDING, WITH_PARTITIONS = "fifo", "fair", "fifo-for-pending-apps", "fifo-with-partitions"
POLICIES = (FIFO, FAIR, FOR_PENDING, WITH_PARTITIONS)
OTHER_PRIORITY = 5
RM_DIES_S, RM_RETURNS_S = 10.0, 12.0
LABEL, LABELLED_NODE = "x", 2
_LEAF = f"{SCHEDULER}root.default"
SCENES = {
    FOR_PENDING: {"yarn.resourcemanager.recovery.enabled": "true", **dict.fromkeys(RETRY_INTERVALS, "1000")},
    WITH_PARTITIONS: {
        "yarn.node-labels.enabled": "true",
        f"{SCHEDULER}root.accessible-node-labels.{LABEL}.capacity": "100",
        f"{_LEAF}.accessible-node-labels": LABEL,
        f"{_LEAF}.accessible-node-labels.{LABEL}.capacity": "100",
        f"{_LEAF}.ordering-policy.exclusive-enforced-partitions": LABEL,
    },
}
"""{policy: more settings of its scene}: a policy that differs from fifo only after a restart, or with labels."""


def set_up(policy: str, priority: int = 0, trace: RunTrace | None = None, scene: str = "") -> Stage:
    """The cluster of a policy. `scene`: the policy in whose scene it is to be seen, if that is another."""
    scene = scene or policy
    settings = {
        f"{_LEAF}.ordering-policy": policy,
        "yarn.cluster.max-application-priority": str(PRIORITY_MAX),
        **SCENES.get(scene, {}),
    }
    stage = Stage(nodes=2, settings=settings, trace=trace)
    label = None
    if scene == FOR_PENDING:
        stage.happening(RM_DIES_S, "RM", "the RM is killed", stage.cluster.kill_rm)
        stage.happening(RM_RETURNS_S, "RM", "the RM is started again", stage.cluster.start_rm)
    if scene == WITH_PARTITIONS:
        stage.label(LABEL, LABELLED_NODE, exclusive=False)
        label = LABEL
    wanted = (Wanted(MAPS, SIZE, seconds=15), Wanted(REDUCES, SIZE, seconds=15))
    stage.submit(SUBMITTED_S["early"], "early", wanted, user="ann")
    stage.submit(LATE_S, "late", (Wanted(SMALL, SIZE, seconds=15),), user="ann", priority=priority, label=label)
    return stage


def play(policy: str, priority: int = 0, trace: RunTrace | None = None) -> Story:
    stage = set_up(policy, priority, trace)
    narrator = Narrator(stage, participants(stage, *NAMES))
    narrator.say(
        f"Two nodes of 8192 MB and one queue, whose ordering-policy is {policy}. ann submits the application early, "
        f"which requests {MAPS} containers of 1024 MB at priority 1 and {REDUCES} at priority 2, three times what the "
        f"cluster holds. {LATE_S - 2:.0f} s later she submits late, with {SMALL} containers, to the same queue, with "
        f"priority {priority}; that of early is 0. Every container runs for 15 s."
    )
    if policy in SCENES:
        narrator.say(_SCENE_TEXTS[policy])
    samples = Samples(stage, {name: partial(used_gb, stage, name) for name in NAMES})
    samples.run(LOOK_S)
    narrator.say(f"At {LOOK_S:.0f} s:")
    narrator.table(("application", "containers", "used"), *(_use(stage, name) for name in NAMES))
    for name in NAMES:
        sentence = stage.verdict(name)
        if sentence:
            narrator.say(f"yarnling explain: {name}'s next container {sentence}.")
    while not _is_over(stage) and stage.now_ms < 1000 * LIMIT_S:
        samples.run(stage.now_ms / 1000 + 1)
    facts = _measured(stage)
    mark = Mark(round(1000 * LATE_S), f"late is submitted; it gets its AM at {_s(facts['late_am_ms'])}")
    narrator.draw(samples.curves("Memory of the two applications", "GB", marks=(mark,)))
    narrator.table(
        ("application", "submitted", "AM allocated", "ended"),
        *(
            (name, f"{at_s:.0f} s", _s(facts[f"{name}_am_ms"]), _s(facts[f"{name}_end_ms"]))
            for name, at_s in SUBMITTED_S.items()
        ),
    )
    narrator.say(
        "Within an application the priority of its requests decides, whatever the policy, and the lower number comes "
        "first. When the AM of early got its containers:"
    )
    narrator.table(("priority of the request", "containers", "first", "last"), *_by_priority(stage))
    if policy in SCENES:
        _compare(narrator, policy, priority, facts)
    return narrator.story(_question(policy, priority, facts), facts)


_SCENE_TEXTS = {
    FOR_PENDING: f"The ResourceManager stores its applications. It is killed at {RM_DIES_S:.0f} s and started again at "
    f"{RM_RETURNS_S:.0f} s; it recovers early, whose containers run on. For 10 s after its start it allocates nothing, "
    "so that nodes and AMs can come back.",
    WITH_PARTITIONS: f"n{LABELLED_NODE} has the shared label {LABEL}, late is submitted with that label, and early "
    f"without one. ordering-policy.exclusive-enforced-partitions is {LABEL}.",
}


def _compare(narrator: Narrator, policy: str, priority: int, facts: dict[str, int]) -> None:
    """Show the same scene with fifo; after a restart also with another priority of late."""
    priorities = (priority,) if policy == WITH_PARTITIONS else tuple(dict.fromkeys((priority, OTHER_PRIORITY)))
    rows = []
    for late in priorities:
        for each in (FIFO, policy):
            found = facts if (each, late) == (policy, priority) else seen(each, late, policy)
            rows.append((each, late, *(_s(found[name]) for name in ("late_am_ms", "early_end_ms", "late_end_ms"))))
    narrator.say("The same with fifo:" if len(priorities) == 1 else "The same with fifo, and with another priority:")
    narrator.table(("ordering-policy", "priority of late", "AM of late", "early ends", "late ends"), *rows)


def seen(policy: str, priority: int, scene: str) -> dict[str, int]:
    """The figures of a policy in the scene of another."""
    stage = set_up(policy, priority, scene=scene)
    stage.run(LOOK_S)
    stage.run_until(lambda: _is_over(stage), LIMIT_S)
    stage.run(stage.now_ms / 1000 + 1)
    return _measured(stage)


def _s(at_ms: int) -> str:
    return f"{at_ms / 1000:.1f} s"


def _use(stage: Stage, name: str) -> tuple[str, str, str]:
    held = stage.held(name)
    return name, str(len(held)), f"{sum(each.resource.memory_mb for each in held)} MB"


def _is_over(stage: Stage) -> bool:
    return all(stage.application(name).state is YarnApplicationState.FINISHED for name in NAMES)


def _measured(stage: Stage) -> dict[str, int]:
    """The times at which each application got its AM's container, and at which it had ended."""
    measured = {}
    for name in NAMES:
        measured[f"{name}_am_ms"] = next(
            each.at_ms for each in stage.account.told if each.text.startswith(f"allocates {name}-am ")
        )
        measured[f"{name}_end_ms"] = next(
            each.at_ms
            for each in stage.account.told
            if each.change is not None
            and (each.change.subject, each.change.target) == (f"application {name}", "FINISHED")
        )
    return measured


def _by_priority(stage: Stage) -> Iterator[tuple[str, str, str, str]]:
    got: dict[int, list[int]] = {}
    for at_ms, place, reply in stage.account.allocate_replies:
        if place == "AM early":
            for container in reply.allocated:
                got.setdefault(container.priority, []).append(at_ms)
    for priority, times in sorted(got.items()):
        yield str(priority), str(len(times)), _s(times[0]), _s(times[-1])


def _question(policy: str, priority: int, facts: dict[str, int]) -> Question:
    waited_s = facts["late_am_ms"] / 1000 - LATE_S
    if policy == FAIR:
        why = [
            "fair offers each node first to the application that uses the least memory. late uses nothing when it "
            f"comes, so the next container that ends makes room for its AM: {waited_s:.1f} s after its submission. "
            "From then on both get what becomes free, until they use the same.",
            "Nothing is taken from early: fair decides who gets what becomes free. Had early's containers been "
            "long-lived, late would have waited as with fifo (preemption within a queue is off by default).",
            "The price: early ends later than with fifo. fair looks at memory alone, whatever the resource "
            "calculator, and ignores the priorities of applications.",
        ]
    elif policy == WITH_PARTITIONS:
        why = [
            "fifo-with-partitions is fifo with a list of its own for each label in "
            "ordering-policy.exclusive-enforced-partitions: a node of such a label is offered only to applications "
            f"that were submitted with it, and other nodes only to the others. So n{LABELLED_NODE} waits for late, "
            f"which gets its AM {waited_s:.1f} s after its submission, and early has to do with the other node.",
            f"With fifo the shared label is lent: early fills n{LABELLED_NODE} while nobody requests {LABEL}. late "
            "comes first there because its requests name the label, but only when containers of early end. Without "
            "labels the two policies are the same.",
        ]
    elif policy == FOR_PENDING:
        why = [
            "fifo-for-pending-apps is fifo, except that applications which the RM has recovered after a restart come "
            f"first, whatever their priority. So late waits for early even with priority {OTHER_PRIORITY}, with which "
            "it would come first under fifo. Without a restart the two policies are the same.",
            "Every leaf activates its waiting applications in this order, whatever its ordering-policy.",
        ]
    elif priority:
        why = [
            "Often written: fifo serves the oldest application first. Hadoop 3.4.1 compares the priorities of the "
            f"applications first, and their age only if these are equal. late has {priority} and early 0, so late "
            f"gets whatever becomes free: its AM {waited_s:.1f} s after its submission, and its containers next.",
            "Nothing is taken from early: its containers run until they end.",
        ]
    else:
        why = [
            f"{policy} offers each node first to the application that came first. As long as early requests more than "
            f"it has, late gets nothing, not even its AM: it waits for {waited_s:.1f} s. Both are ann's: the policy "
            "looks at applications, not at users, so she blocks herself.",
        ]
    return Question(
        f"ordering-policy is {policy}, the priority of late {priority}. When does late get the container of its AM, "
        "and when does each of the two applications end?",
        f"the AM of late at {_s(facts['late_am_ms'])}; early ends at {_s(facts['early_end_ms'])}, late at "
        f"{_s(facts['late_end_ms'])}",
        tuple(why),
    )


LESSON = Lesson(
    13,
    "ordering",
    "Ordering: which application of a queue is served first",
    (
        "Queues share the cluster by their guarantees, users share a queue by their limits. What is left to decide is "
        "which application of a leaf queue is offered a node first: this is the leaf's ordering policy.",
        "Often written: there are two policies, fifo and fair. Hadoop 3.4.1 has four: fifo (the default), fair, "
        "fifo-for-pending-apps and fifo-with-partitions. A parent has other ones, utilization and "
        "priority-utilization, which order its queues.",
    ),
    {
        "ordering-policy": "the order in which a leaf's applications are offered each node.",
        "fifo": "first in, first out: by priority of the application, then by age.",
        "fair": "the application that uses the least memory comes first. With enable-size-based-weight, what it uses "
        "is divided by the logarithm of all that it wants, so that large applications may use more.",
        "churn": "that containers end and others start. A policy can only give what ends.",
    },
    WordChoice("policy", POLICIES, f"{_LEAF}.ordering-policy"),
    set_up,
    play,
    (
        "Hadoop: FifoOrderingPolicy, FairOrderingPolicy, FifoOrderingPolicyForPendingApps, "
        "FifoOrderingPolicyWithExclusivePartitions (recordings orders-512, priorities-512, "
        "gap-3-fair-tie-by-start, labels-511)",
        "here: rm/scheduler/model/application_order.py; tests/scenarios/scripts/d1-fifo-shuts-out.txt and "
        "d1-fair-gives-what-churns.txt",
    ),
    (Number("late-priority", 0, 0, PRIORITY_MAX, "the priority with which late is submitted", (0, 5)),),
)
