"""The cases of chapter 19: what lets a queue come back to its guarantee, and what does not."""

from __future__ import annotations

from typing import NamedTuple

from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.settings import SCHEDULER, preemption, queues
from yarnling.lessons.scene.stage import AM_SIZE, TimedSubmission

NODES = 5
SIZE = Resource(1024, 1)
LARGE = Resource(4096, 1)
BOB_S = 20.0
ON = preemption({})
PACE = {"total_preemption_per_round": "1", "natural_termination_factor": "1", "max_ignored_over_capacity": "0"}
AT_ONCE = preemption(PACE)
"""All that may be taken in one round, and no dead zone."""
HALF = {"capacity": "50", "user-limit-factor": "2"}
QUEUES = queues({"a": HALF, "b": HALF})
ONE_QUEUE = queues({"a": {"capacity": "100", "minimum-user-limit-percent": "50", "user-limit-factor": "2"}})
INSIDE = {
    "intra-queue-preemption.enabled": "true",
    "intra-queue-preemption.preemption-order-policy": "userlimit_first",
    "intra-queue-preemption.max-allowable-limit": "1",
}


class ChurnCase(NamedTuple):
    """A cluster in which ann holds more than her half and bob less. `scene`: what is special in it.

    `why`: the reasons for what happens; figures of the run (churn.ChurnFigures) in braces. `claim`: what is often
    written about it, and what Hadoop does. `lasts_s`: from bob's request to the end.
    """

    scene: str
    settings: dict[str, str]
    submissions: tuple[TimedSubmission, ...]
    why: tuple[str, ...]
    claim: str
    nodes: int = NODES
    lasts_s: int = 60


def _two(
    *, ann: Wanted | None = None, bob: Wanted | None = None, queue: str = "b", am_size: Resource = AM_SIZE
) -> tuple[TimedSubmission, ...]:
    """ann takes all, and bob comes later."""
    endless = Wanted(60, SIZE)
    return (
        TimedSubmission(2.0, "ann", (ann or endless,), "a", am_size=am_size),
        TimedSubmission(BOB_S, "bob", (bob or endless,), queue, am_size=am_size),
    )


CASES: dict[str, ChurnCase] = {
    "churn": ChurnCase(
        "Preemption is off, as it is by default. Each of ann's containers ends after 15 s, and she wants another.",
        QUEUES,
        _two(ann=Wanted(600, SIZE, seconds=15)),
        (
            "All that ends goes to bob until both have {half_gb} GB: the queue with the least use in relation to "
            "its guarantee is served first. Half of ann's containers had to end for it, which took {reached_s} s.",
            "From then on each gets what he gives back himself. No container was killed.",
        ),
        "Often written: churn rebalances queues quickly. Hadoop 3.4.1: in as much time as the surplus takes to end.",
    ),
    "endless": ChurnCase(
        "Preemption is off, as it is by default. ann's containers never end.",
        QUEUES,
        _two(),
        (
            "The scheduler gives what is free. A guarantee says who is served first then, and here nothing "
            "becomes free: bob has {bob_gb} GB, and not even his AM runs.",
        ),
        "Often written: a queue has its guarantee. Hadoop 3.4.1: it has it when containers end or are preempted, and "
        "neither happens by itself. Not even bob's AM runs.",
    ),
    "defaults": ChurnCase(
        "Preemption is on, with Hadoop's defaults: total_preemption_per_round 0.1, natural_termination_factor 0.2, "
        "max_ignored_over_capacity 0.1, max_wait_before_kill 15 s, a round every 3 s. ann's containers never end.",
        {**QUEUES, **ON},
        _two(),
        (
            "A round may take 0.1 of the cluster, 2.4 GB. It takes 0.2 of that at once, which is one container, "
            "and leaves the rest to containers that end by themselves (natural_termination_factor). Here none "
            "does.",
            "Each round chooses the same container again until it is killed, 15 s after the announcement. So bob "
            "gets one container every 18 s.",
            "Up to 1.1 times her guarantee ann is in the dead zone and loses nothing more: she keeps {ann_gb} GB, "
            "and bob stays at {bob_gb} of {half_gb} GB. In a large cluster a round takes many containers, but "
            "ends in the same dead zone.",
        ),
        "Often written: the dead zone is 0.2. Hadoop 3.4.1: max_ignored_over_capacity is 0.1; 0.2 is the default of "
        "natural_termination_factor.",
        nodes=3,
        lasts_s=220,
    ),
    "at-once": ChurnCase(
        "Preemption is on, and may take all in one round: total_preemption_per_round 1, natural_termination_factor 1, "
        "max_ignored_over_capacity 0. ann's containers never end.",
        {**QUEUES, **AT_ONCE},
        _two(),
        (
            "First only bob's AM waited, so one container was enough. Once the AM had registered, its requests "
            "counted too, and one round announced all the others.",
            "bob has his half {reached_s} s after his request: two rounds, and twice the 15 s in which an AM can "
            "react.",
        ),
        "Often written: preemption gives a queue its guarantee. Hadoop 3.4.1: so it is with these settings, not with "
        "its defaults.",
    ),
    "dead-zone": ChurnCase(
        "Preemption is on, and may take all in one round, but max_ignored_over_capacity is 0.1, as by default. bob "
        "holds a little less than his guarantee before ann takes the rest; then he wants more.",
        {**QUEUES, **preemption({**PACE, "max_ignored_over_capacity": "0.1"})},
        (
            TimedSubmission(2.0, "bob1", (Wanted(17, SIZE),), "b", "bob"),
            TimedSubmission(12.0, "ann", (Wanted(60, SIZE),), "a"),
            TimedSubmission(BOB_S, "bob2", (Wanted(10, SIZE),), "b", "bob"),
        ),
        (
            "ann has {ann_gb} GB, 1.1 times her guarantee of {half_gb} GB. Only a queue above that loses "
            "containers: bob stays at {bob_gb} GB.",
            "With one container more she would lose all that she has above her guarantee, not only that one.",
        ),
        "Often written: the dead zone is 0.2. Hadoop 3.4.1: max_ignored_over_capacity is 0.1.",
    ),
    "headroom": ChurnCase(
        "Preemption is on, and may take all in one round. But b's user-limit-factor is 0.25: a user may have a quarter "
        "of its guarantee.",
        {**QUEUES, **AT_ONCE, f"{SCHEDULER}root.b.user-limit-factor": "0.25"},
        _two(),
        (
            "bob's limit is 0.25 x {half_gb} = 5 GB. Preemption counts of his 60 requests what he may get with "
            "it, and so it took {killed} containers, for {bob_gb} GB, although his queue is guaranteed {half_gb} "
            "GB.",
            "The same happens with minimum-user-limit-percent below 100, where the limit follows what the user has.",
        ),
        "Often written: a queue with requests that wait gets its guarantee back. Hadoop 3.4.1: preemption counts of "
        "the requests of a user only what fits under his limit.",
    ),
    "large-victims": ChurnCase(
        "Preemption is on, with Hadoop's total_preemption_per_round of 0.1: 2.4 GB of this cluster of three nodes. "
        "All containers have 4 GB.",
        {**QUEUES, **preemption({**PACE, "total_preemption_per_round": "0.1"})},
        _two(ann=Wanted(10, LARGE), bob=Wanted(4, LARGE), am_size=LARGE),
        (
            "Nothing is taken, round after round: each of ann's containers has 4 GB, and a round may take 2.4 "
            "GB. bob gets nothing although he is guaranteed {half_gb} GB.",
            "The remedy is a larger total_preemption_per_round: at least the size of the largest container.",
        ),
        "Often written: preemption does nothing if it cannot free enough for the largest container that waits. Hadoop "
        "3.4.1: it does nothing if each container that it could take is larger than what a round may take.",
        nodes=3,
    ),
    "large-request": ChurnCase(
        "Preemption is on, and may take all in one round. bob wants one container of 6 GB.",
        {**QUEUES, **AT_ONCE},
        _two(bob=Wanted(1, Resource(6144, 1))),
        (
            "{killed} containers were killed: one for bob's AM, six for his container of 6 GB. They ran on "
            "several nodes, so no node has 6 GB free; bob has {bob_gb} GB, those of his AM.",
            "Now a node is reserved for him. A reservation counts as used, so preemption takes nothing more, and "
            "the killed containers were killed for nothing.",
        ),
        "Often written: preemption does nothing if it cannot free enough for the container that waits. Hadoop 3.4.1: "
        "by default it looks at sums and not at nodes, so it takes what may help nobody (lesson 20).",
    ),
    "inside": ChurnCase(
        "Preemption is on, and may take all in one round. ann and bob are users of the same queue, each with half of "
        "it as limit once both are active.",
        {**ONE_QUEUE, **AT_ONCE},
        _two(queue="a"),
        (
            "Preemption compares queues, and there is only one. bob has {bob_gb} GB, although his limit is half "
            "of the queue.",
        ),
        "Often written: preemption works only between queues. Hadoop 3.4.1: inside a queue it is off by default, and "
        "can be switched on: --case inside-on.",
    ),
    "inside-on": ChurnCase(
        "Preemption inside queues is on, too: intra-queue-preemption.enabled, with preemption-order-policy "
        "userlimit_first and max-allowable-limit 1. ann and bob are users of the same queue, each with half of it as "
        "limit once both are active.",
        {**ONE_QUEUE, **preemption({**PACE, **INSIDE})},
        _two(queue="a"),
        (
            "ann was above her limit, so {killed} of her containers were killed: one for bob's AM, the others in "
            "one round.",
            "She keeps {ann_gb} GB and bob gets {bob_gb}, not {half_gb} each: her limit is half of what both use "
            "and one container more, rounded up (21 GB), and a container that would bring her down to it is "
            "not taken.",
        ),
        "Often written: preemption works only between queues. Hadoop 3.4.1 preempts inside a queue, too, if that is "
        "switched on: by priority of applications, or as here by the limits of users.",
    ),
}
