"""Chapter 11: the limit of a user, computed in three steps with the numbers of a run."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.samples import GB_MB, Samples, used_gb
from yarnling.lessons.scene.settings import queues
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Bar, Bars
from yarnling.simulation.trace_file import RunTrace

SIZE = Resource(GB_MB, 1)
NODE = Resource(25 * GB_MB, 25)
USERS = ("ann", "bob", "cem", "dan", "eve")
MINIMUM_PERCENT = 30
QUEUE_GB = 100
SOON_S, UNTIL_S = 4.0, 35.0


class _Steps(Struct, frozen=True):
    """The formula at one moment, in GB. `simple_limit`: with what the queue has instead of what active users hold."""

    used: int
    held_by_active: int
    active: int
    capacity: int
    current: int
    fair_share: int
    minimum_share: int
    bound: int
    limit: int
    simple_share: int
    simple_limit: int


def set_up(users: int = 2, factor: float = 1.0, trace: RunTrace | None = None) -> Stage:
    stage = Stage(nodes=4, resource=NODE, settings=_settings(factor), trace=trace, encode=trace is not None)
    for name in USERS[:users]:
        stage.submit(2.0, name, (Wanted(150, SIZE),), queue="a")
    return stage


def _settings(factor: float, policy: str = "fifo") -> dict[str, str]:
    queue = {
        "capacity": "100",
        "minimum-user-limit-percent": str(MINIMUM_PERCENT),
        "user-limit-factor": str(factor),
        "ordering-policy": policy,
    }
    return queues({"a": queue})


def play(users: int = 2, factor: float = 1.0, trace: RunTrace | None = None) -> Story:
    stage = set_up(users, factor, trace)
    names = USERS[:users]
    narrator = Narrator(stage, participants(stage, *names))
    narrator.say(
        f"A queue of {QUEUE_GB} GB with minimum-user-limit-percent {MINIMUM_PERCENT} and user-limit-factor {factor:g}. "
        f"{_counted(users)} one application with 150 containers of 1 GB, at the same time."
    )
    samples = Samples(
        stage,
        {
            **{name: lambda name=name: used_gb(stage, name) for name in names},  # type: ignore[misc]
            "limit": lambda: _limit_gb(stage),
        },
    )
    samples.run(SOON_S)
    soon = _steps(stage, factor)
    samples.run(UNTIL_S)
    late = _steps(stage, factor)
    _formula(narrator, soon, late, factor)
    narrator.draw(samples.curves("Memory of each user, and the limit of each", "GB"))
    held = {name: round(used_gb(stage, name)) for name in names}
    bars = tuple(Bar(name, gb, late.limit) for name, gb in held.items())
    narrator.draw(Bars("At the end, with the limit", "GB", bars))
    _contrasts(narrator, soon, held)
    _second_job(narrator)
    measured = {
        **{f"{name}_gb": gb for name, gb in held.items()},
        "soon_limit_gb": soon.limit,
        "soon_scheduler_gb": round(samples.values["limit"][int(SOON_S)]),
        "limit_gb": late.limit,
        "scheduler_gb": round(_limit_gb(stage)),
    }
    return narrator.story(_question(users, factor, late, held), measured)


def _counted(users: int) -> str:
    return f"{users} users submit" if users > 1 else "A user submits"


def _limit_gb(stage: Stage) -> float:
    """The limit of each user, as the scheduler has it; 0 before there are users."""
    limits = [user.limit.memory_mb for user in stage.view.users("root.a")]
    return max(limits, default=0) / GB_MB


def _steps(stage: Stage, factor: float) -> _Steps:
    """Compute the limit as UsersManager.computeUserLimit does, for containers of 1 GB, which is the minimum."""
    active = [user for user in stage.view.users("root.a") if user.is_active]
    queue = stage.queue("a")
    used = queue.used.memory_mb // GB_MB
    held = sum(user.used.memory_mb for user in active) // GB_MB
    count = max(1, len(active))
    capacity = max(queue.guaranteed.memory_mb // GB_MB, 1)
    current = capacity if used < capacity else used + 1
    fair_share, simple_share = -(-(held + 1) // count), -(-current // count)
    minimum_share = -(-current * MINIMUM_PERCENT // 100)
    bound = -(-int(1000 * capacity * factor) // 1000)
    limit, simple = (min(max(share, minimum_share), bound) for share in (fair_share, simple_share))
    return _Steps(used, held, count, capacity, current, fair_share, minimum_share, bound, limit, simple_share, simple)


def _formula(narrator: Narrator, soon: _Steps, late: _Steps, factor: float) -> None:
    narrator.say(
        "The limit of each user in three steps, with the numbers of two moments, in GB (required: 1 GB). In "
        "step 2 use + required counts once the queue's use has reached queueCapacity."
    )
    both = (soon, late)
    narrator.table(
        ("step", f"at {SOON_S:.0f} s", f"at {UNTIL_S:.0f} s"),
        ("the queue's use", *(str(each.used) for each in both)),
        ("active users", *(str(each.active) for each in both)),
        ("1. queueCapacity: max(guarantee, required)", *(f"max({QUEUE_GB}, 1) = {each.capacity}" for each in both)),
        (
            "2. currentCapacity: queueCapacity, or use + required",
            *(f"{each.current}" for each in both),
        ),
        (
            "3a. (active users' use + required) / their number",
            *(f"({each.held_by_active} + 1) / {each.active} = {each.fair_share}" for each in both),
        ),
        (
            f"3b. currentCapacity x {MINIMUM_PERCENT} %",
            *(f"{each.current} x {MINIMUM_PERCENT} % = {each.minimum_share}" for each in both),
        ),
        (
            "3c. queueCapacity x user-limit-factor",
            *(f"{each.capacity} x {factor:g} = {each.bound}" for each in both),
        ),
        (
            "limit: min(3c, max(3a, 3b))",
            *(f"min({each.bound}, max({each.fair_share}, {each.minimum_share})) = {each.limit}" for each in both),
        ),
    )


def _contrasts(narrator: Narrator, soon: _Steps, held: dict[str, int]) -> None:
    narrator.contrast(
        "Step 3a is currentCapacity / active users.",
        "It is what the active users hold plus one container, divided by their number, so it grows with them: at "
        f"{SOON_S:.0f} s {soon.fair_share} GB instead of {soon.current}/{soon.active} = {soon.simple_share}, and the "
        f"limit was {soon.limit} GB instead of {soon.simple_limit}.",
    )
    narrator.contrast(
        "With 30 %, one user gets 100 % of the queue, two 50 %, three 33.3 %, four or more 30 % each.",
        f"The limits end there, but a user ends one container above the limit, and who comes last gets the rest: here "
        f"{', '.join(f'{name} {gb}' for name, gb in held.items())} GB.",
    )


def _second_job(narrator: Narrator) -> None:
    """Compare two jobs of one user under both ordering policies."""
    fifo, fair = two_jobs("fifo"), two_jobs("fair")
    narrator.say(
        "One more run: ann has two jobs and bob one, all submitted at the same time, in the same queue with "
        "user-limit-factor 1."
    )
    narrator.table(
        ("ordering-policy", "ann's first job", "ann's second job", "bob's job"),
        *((policy, *(f"{gb} GB" for gb in held)) for policy, held in (("fifo (default)", fifo), ("fair", fair))),
    )
    narrator.contrast(
        "A user's second job gets half of the user's share.",
        f"Not under FIFO, the default: the first job has {fifo[0]} GB and the second {fifo[1]}: not even its AM "
        "starts. The limit counts the user, and within it the oldest application comes first. It is true of the fair "
        "policy.",
    )


@lru_cache(maxsize=2)
def two_jobs(policy: str) -> tuple[int, ...]:
    stage = Stage(nodes=4, resource=NODE, settings=_settings(1.0, policy), encode=False)
    jobs = {"ann-1": "ann", "ann-2": "ann", "bob": "bob"}
    for name, user in jobs.items():
        stage.submit(2.0, name, (Wanted(150, SIZE),), user=user, queue="a")
    stage.run(UNTIL_S)
    return tuple(round(used_gb(stage, name)) for name in jobs)


def _question(users: int, factor: float, late: _Steps, held: dict[str, int]) -> Question:
    decides = {late.bound: "3c, the factor", late.minimum_share: "3b, the minimum", late.fair_share: "3a, the share"}
    why = [
        f"At the end the limit is {late.limit} GB; what decides is step {decides[late.limit]}.",
        "A container is given to a user who is not above the limit, so at the limit one more is allowed.",
    ]
    idle = QUEUE_GB - sum(held.values())
    if idle:
        why.append(f"{idle} GB stay idle, although everybody wants more: this is the price of factor {factor:g}.")
    elif users > 1:
        why.append("The queue is full. The oldest application is served first up to its user's limit, then the next.")
    return Question(
        f"{_counted(users)} 150 containers of 1 GB each; the factor is {factor:g}. How much has each at the end?",
        ", ".join(f"{name} {gb} GB" for name, gb in held.items()),
        tuple(why),
    )


LESSON = Lesson(
    11,
    "user-limit",
    "User limit: the formula in three steps",
    (
        "In a queue each user has a limit, and all users have the same. It decides who gets the next container, and it "
        "is part of the headroom that is reported to ApplicationMasters. It changes as containers come and go.",
        "minimum-user-limit-percent says how small the limit may become when many users share the queue, "
        "user-limit-factor how large when there are few.",
    ),
    {
        "active user": "a user with requests that wait, in this queue.",
        "required": "the minimum allocation, here 1 GB.",
        "minimum-user-limit-percent": "the least that the limit may be, in percent of the queue (default 100).",
        "user-limit-factor": "the most that the limit may be, as a multiple of the queue's guarantee (default 1).",
    },
    Number("users", 2, 1, 5, "users who submit at the same time", (2, 1, 3, 4, 5)),
    set_up,
    play,
    (
        "Hadoop: UsersManager.computeUserLimit, AbstractLeafQueue.canAssignToUser, FifoOrderingPolicy",
        "here: rm/scheduler/capacity/limits.py, [common claims](../what-hadoop-does.md); cases B1, B2 and B3 of [the "
        "mission cases](../design/mission-cases.md)",
    ),
    (Number("factor", 1.0, 0.05, 100.0, "user-limit-factor of the queue", (1.0, 0.25)),),
)
