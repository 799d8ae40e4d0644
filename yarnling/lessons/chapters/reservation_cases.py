"""The cases of chapter 21: the nodes, queues and applications in which a reservation ends in different ways."""

from __future__ import annotations

from typing import NamedTuple

from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.settings import SCHEDULER, preemption, queues
from yarnling.lessons.scene.stage import TimedSubmission

GB = 1024
SMALL = Resource(GB, 1)
BOB_S = 15.0
LOOKING = f"{SCHEDULER}reservations-continue-look-all-nodes"
UPWARDS = f"{SCHEDULER}ordering-policy.priority-utilization.underutilized-preemption."
SHARED = queues({"a": {"capacity": "100", "minimum-user-limit-percent": "25"}})


def capped(most_gb: float) -> dict[str, str]:
    """Queue a may use so much of the 16 GB, and b the rest."""
    share = f"{100 * most_gb / 16:g}"
    return queues({"a": {"capacity": share, "maximum-capacity": share}, "b": f"{100 - 100 * most_gb / 16:g}"})


PRIORITIES = {
    **queues(
        {
            "a": {"capacity": "75", "priority": "5", "minimum-user-limit-percent": "50"},
            "b": {"capacity": "25", "user-limit-factor": "2"},
        }
    ),
    f"{SCHEDULER}root.ordering-policy": "priority-utilization",
    f"{UPWARDS}enabled": "true",
    f"{UPWARDS}allow-move-reservation": "true",
    f"{UPWARDS}reserved-container-delay-ms": "0",
    **preemption({"total_preemption_per_round": "1", "natural_termination_factor": "1"}),
}


class ReservationCase(NamedTuple):
    """A cluster whose first nodes to report have no room for bob's container. `scene`: what is special in it."""

    scene: str
    settings: dict[str, str]
    submissions: tuple[TimedSubmission, ...]
    why: tuple[str, ...]
    nodes: int = 2


def on(number: int, count: int, size: Resource = SMALL, seconds: int | None = None) -> Wanted:
    """A request for containers on that node and no other."""
    return Wanted(count, size, hosts=(f"n{number:05}",), seconds=seconds, relax_locality=False)


def ann(*wanted: Wanted, queue: str = "a") -> TimedSubmission:
    return TimedSubmission(2.0, "ann", wanted, queue)


def big(name: str, gb: int, later_s: float = 0.0) -> TimedSubmission:
    return TimedSubmission(BOB_S + later_s, name, (Wanted(1, Resource(gb * GB, 1)),), "a")


CASES: dict[str, ReservationCase] = {
    "filled": ReservationCase(
        "ann uses most of both: 3 GB are free on each when bob requests a container of 4 GB. Later a container of "
        "ann ends on the node that is reserved.",
        SHARED,
        (ann(on(1, 3), on(2, 1, seconds=30), on(2, 4)), big("bob", 4)),
        (
            "The reservation was made by the first node that sent a heartbeat and lacked the room. When a container "
            "ended there, the next heartbeat turned it into a container.",
            "Often written: the reservation is made on the node with a finished container. Hadoop 3.4.1: on any node "
            "that has its turn and too little room, if the limits of queue and user have room for it.",
        ),
    ),
    "dropped": ReservationCase(
        "ann uses most of both: 3 GB are free on each when bob requests a container of 4 GB. Later a container of "
        "ann ends on the other node, not on the reserved one.",
        SHARED,
        (ann(on(1, 1, seconds=30), on(1, 2), on(2, 5)), big("bob", 4)),
        (
            "The other node could serve the request first. The reservation was dropped in the same step, and what it "
            "had kept can be used by others.",
            "The container has a new id: the id of a reservation that is dropped is never used again.",
        ),
    ),
    "moved": ReservationCase(
        "Queue a has a higher priority than b, and may preempt for its reservations (underutilized-preemption) and "
        "move them (allow-move-reservation); both are off by default. n2 is filled by a itself, n1 by dan in b.",
        PRIORITIES,
        (ann(on(2, 4)), TimedSubmission(4.0, "dan", (on(1, 3),), "b"), big("bob", 5)),
        (
            "Preemption for the reservation found nothing to take on n2: all that runs there is of a itself. On n1 it "
            "could take dan's containers, so the reservation was moved there, once, and became a container there.",
            "This is the only way in which a reservation moves. In all other cases it is dropped, and another may be "
            "made elsewhere.",
        ),
    ),
    "one-per-node": ReservationCase(
        "ann and the AMs use 3 GB or more of each. bob, cem and dan want a container of 6 GB each, one after the "
        "other.",
        SHARED,
        (
            ann(on(1, 1), on(2, 3), on(3, 3)),
            big("bob", 6),
            big("cem", 6, 2.0),
            big("dan", 6, 4.0),
        ),
        (
            "A node has one reservation at most: while it has, its heartbeats serve nobody else. So cem got another "
            "node than bob.",
            "dan got none: reservations count as used, and with a third the queue would be above its maximum. This, "
            "not the number of nodes, is what usually bounds them.",
        ),
        nodes=3,
    ),
    "looking": ReservationCase(
        "bob's queue a may use 5 GB at most; b, ann's queue, has the rest. n2, which sends the first heartbeat, has "
        "2 GB free, n1 has 6 GB. bob wants a container of 4 GB.",
        capped(5),
        (ann(on(2, 1, Resource(6 * GB, 1)), queue="b"), big("bob", 4)),
        (
            "With the reservation on n2 the queue was at its maximum. When n1, which had room, sent its heartbeat, "
            "the scheduler gave the reservation up to stay within the maximum, and placed the container on n1 "
            "(reservations-continue-look-all-nodes, on by default).",
        ),
    ),
    "not-looking": ReservationCase(
        "As with --case looking, but reservations-continue-look-all-nodes is false.",
        {**capped(5), LOOKING: "false"},
        (ann(on(2, 1, Resource(6 * GB, 1)), queue="b"), big("bob", 4)),
        (
            "With the reservation on n2 the queue was at its maximum, so it may get nothing on n1, where 6 GB are "
            "free. bob waits for ann's container on n2 to end: his own reservation is in his way.",
        ),
    ),
    "second": ReservationCase(
        "As with --case looking, but cem has an older application in a, whose AM requests nothing. a may use 6 GB.",
        capped(6),
        (
            ann(on(2, 1, Resource(6 * GB, 1)), queue="b"),
            TimedSubmission(4.0, "cem", (), "a"),
            big("bob", 4),
        ),
        (
            "The reservation is kept, although reservations-continue-look-all-nodes is on: whether a queue at its "
            "maximum may get something in exchange for a reservation is asked for the first application in its order. "
            "That is cem's, which has no reservation.",
            "Often written: with this setting a reservation never keeps its application from other nodes. Hadoop "
            "3.4.1: it does if an application without a reservation comes first in the queue.",
        ),
    ),
}
