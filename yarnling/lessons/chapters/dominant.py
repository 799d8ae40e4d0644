"""Chapter 14: vcores count only if the resource calculator counts them."""

from __future__ import annotations

from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, WordChoice
from yarnling.lessons.scene.settings import SCHEDULER
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Bar, Bars
from yarnling.simulation.trace_file import RunTrace

NODE = Resource(16384, 8)
EXECUTOR = Resource(2048, 4)
EXECUTORS = 3
TASK = Resource(1024, 1)
TASKS = 40
ETL_S = 15.0
UNTIL_S = 60.0
DEFAULT, DOMINANT = "default", "dominant"
CALCULATORS = {
    DEFAULT: "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
    DOMINANT: "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
}
ASKED_VCORES = (1, 2, 4)


def set_up(calculator: str, trace: RunTrace | None = None) -> Stage:
    stage = _stage(calculator, trace)
    stage.submit(2.0, "spark", (Wanted(EXECUTORS, EXECUTOR),))
    stage.submit(ETL_S, "etl", (Wanted(TASKS, TASK),))
    return stage


def _stage(calculator: str, trace: RunTrace | None = None) -> Stage:
    settings = {
        f"{SCHEDULER}resource-calculator": CALCULATORS[calculator],
        "yarn.scheduler.maximum-allocation-vcores": str(NODE.vcores),
    }
    return Stage(nodes=2, resource=NODE, settings=settings, trace=trace)


def play(calculator: str, trace: RunTrace | None = None) -> Story:
    stage = set_up(calculator, trace)
    narrator = Narrator(stage, participants(stage, "spark", "etl"))
    narrator.say(
        f"Two nodes of {NODE.memory_mb} MB and {NODE.vcores} vcores; the scheduler has the "
        f"{CALCULATORS[calculator].rpartition('.')[2]}. spark requests {EXECUTORS} executors of "
        f"{EXECUTOR.memory_mb} MB and {EXECUTOR.vcores} vcores, and runs {EXECUTOR.vcores} tasks at a time in each. "
        f"At {ETL_S:.0f} s etl requests {TASKS} containers of {TASK.memory_mb} MB and 1 vcore, more than fit. Nothing "
        f"ends. At {UNTIL_S:.0f} s:"
    )
    stage.run(UNTIL_S)
    narrator.skip()
    rows = [_of_application(stage, name) for name in ("spark", "etl")]
    narrator.table(("application", "containers with the AM", "vcores asked", "vcores that YARN shows", "memory"), *rows)
    narrator.table(
        ("node", "memory in use", "vcores of the node", "vcores that YARN shows", "vcores asked"), *_of_nodes(stage)
    )
    narrator.say("Shares of the cluster, and the one by which the calculator compares:")
    narrator.table(
        ("application", "of the memory", "of the vcores", "counts"),
        *(_shares(stage, name, calculator) for name in ("spark", "etl")),
    )
    for name in ("spark", "etl"):
        sentence = stage.verdict(name)
        if sentence:
            narrator.say(f"yarnling explain: {name}'s next container {sentence}.")
    counts = {vcores: _containers_of_a_node(calculator, vcores) for vcores in ASKED_VCORES}
    narrator.say(
        "So the number of containers on a node is bounded by what the calculator counts. Containers of "
        f"{TASK.memory_mb} MB on a node of {NODE.memory_mb} MB and {NODE.vcores} vcores, by the vcores "
        "that each requests:"
    )
    bars = tuple(Bar(f"{vcores} vcore{'s'[: vcores > 1]}", count) for vcores, count in counts.items())
    narrator.draw(Bars("Containers on a node, by the vcores that each requests", "containers", bars))
    facts = _measured(stage)
    return narrator.story(_question(calculator, facts), facts)


def _asked_vcores(resource: Resource) -> int:
    """The vcores that a container's request named."""
    return EXECUTOR.vcores if resource.memory_mb == EXECUTOR.memory_mb else resource.vcores


def _of_application(stage: Stage, name: str) -> tuple[object, ...]:
    held = [each.resource for each in stage.held(name)]
    shown = sum(each.vcores for each in held)
    return name, len(held), sum(map(_asked_vcores, held)), shown, f"{sum(each.memory_mb for each in held)} MB"


def _shares(stage: Stage, name: str, calculator: str) -> tuple[str, ...]:
    """The application's shares of memory and vcores, as YARN counts them, and the one that the calculator takes."""
    held = [each.resource for each in stage.held(name)]
    memory = sum(each.memory_mb for each in held) / (2 * NODE.memory_mb)
    vcores = sum(each.vcores for each in held) / (2 * NODE.vcores)
    counts = max(memory, vcores) if calculator == DOMINANT else memory
    return name, *(f"{share:.0%}" for share in (memory, vcores, counts))


def _of_nodes(stage: Stage) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for number in (1, 2):
        node = stage.node(number)
        asked = sum(_asked_vcores(each.resource) for each in node.containers)
        rows.append((f"n{number}", f"{node.allocated.memory_mb} MB", NODE.vcores, node.allocated.vcores, asked))
    return rows


def _containers_of_a_node(calculator: str, vcores: int) -> int:
    """Count such containers on the second node of a new cluster; the AM is on the first one."""
    stage = _stage(calculator)
    stage.submit(2.0, "filler", (Wanted(2 * NODE.memory_mb // TASK.memory_mb, Resource(TASK.memory_mb, vcores)),))
    stage.run(25.0)
    containers = stage.node(2).containers
    assert not any(each.is_am for each in containers)
    return len(containers)


def _measured(stage: Stage) -> dict[str, int]:
    shown = sum(each.resource.vcores for each in stage.held("spark"))
    busiest = max(sum(_asked_vcores(each.resource) for each in stage.node(number).containers) for number in (1, 2))
    memory_mb = sum(stage.node(number).allocated.memory_mb for number in (1, 2))
    return {"shown": shown, "busiest": busiest, "memory_mb": memory_mb, "etl": len(stage.held("etl"))}


def _question(calculator: str, facts: dict[str, int]) -> Question:
    total_mb = 2 * NODE.memory_mb
    if calculator == DEFAULT:
        why = (
            f"Often asked: I requested {EXECUTOR.vcores} cores for each executor, why does YARN show 1? Because the "
            "default calculator counts memory alone. It drops the vcores of a request and gives every container 1, "
            f"in the web pages, in `yarn` commands and in metrics. Spark still runs {EXECUTOR.vcores} tasks at a time.",
            f"So nothing keeps a node from more work than it has cores: up to {facts['busiest']} vcores' worth on "
            f"{NODE.vcores}. The node's available vcores are negative then, and the scheduler does not mind.",
            "In exchange no memory is idle: for many small tasks that mostly wait for disks this is faster.",
        )
    else:
        why = (
            "The dominant calculator counts all resource types. A container is placed only where memory and vcores "
            f"suffice, and YARN shows what was requested: {EXECUTORS} x {EXECUTOR.vcores} and 1 for the AM.",
            f"No node has more than its {NODE.vcores} vcores in use. In exchange {total_mb - facts['memory_mb']} of "
            f"{total_mb} MB are idle, and etl has {facts['etl']} containers: where cores are the scarce resource, "
            "memory is left over. How many vcores a NodeManager reports is a setting "
            "(yarn.nodemanager.resource.cpu-vcores), and may be more than its cores where tasks wait a lot.",
            "Queues and users are compared by their dominant share then, the largest of their shares: spark counts by "
            "its vcores, although it has little memory.",
        )
    return Question(
        f"The calculator is the {calculator} one. How many vcores does YARN show for spark, and how many vcores are "
        f"asked of the busiest node, which has {NODE.vcores}?",
        f"{facts['shown']} vcores, and {facts['busiest']} of {NODE.vcores}",
        (
            *why,
            "Neither limits what a process really uses: that is done by cgroups, if the NodeManager is set up for them "
            "(yarn.nodemanager.resource.cpu.enabled).",
        ),
    )


LESSON = Lesson(
    14,
    "dominant",
    "vcores: memory alone, or the dominant resource",
    (
        "A request names memory and vcores. Whether the vcores count is decided by the resource calculator of the "
        "CapacityScheduler, for the whole cluster. The default one looks at memory alone.",
    ),
    {
        "vcore": "a share of a node's processors. How many a node has is a setting of its NodeManager.",
        "DefaultResourceCalculator": "compares memory alone; every container has 1 vcore.",
        "DominantResourceCalculator": "compares all resource types; dominant resource fairness (DRF).",
        "dominant share": "the largest of a queue's, a user's or an application's shares of the resource types.",
    },
    WordChoice("calculator", (DEFAULT, DOMINANT), f"the class in {SCHEDULER}resource-calculator"),
    set_up,
    play,
    (
        "Hadoop: DefaultResourceCalculator.normalize and fitsIn, DominantResourceCalculator.compare and fitsIn "
        "(recordings basic-*, types-*, updates-512)",
        "here: rm/scheduler/capacity/resource_calculation.py; tests/scenarios/scripts/"
        "d2-memory-alone-oversubscribes-cores.txt and d2-dominant-resource-stops-at-cores.txt",
    ),
)
