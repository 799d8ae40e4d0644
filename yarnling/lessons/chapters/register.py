"""Chapter 1: a NodeManager registers."""

from __future__ import annotations

from yarn.resource import Resource
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.simulation.trace_file import RunTrace

MINIMUM_MB = 1024


def set_up(memory_mb: int, trace: RunTrace | None = None) -> Stage:
    return Stage(nodes=2, resource=Resource(memory_mb, 4), trace=trace)


def play(memory_mb: int, trace: RunTrace | None = None) -> Story:
    stage = set_up(memory_mb, trace)
    narrator = Narrator(stage, participants(stage))
    narrator.say(
        "The ResourceManager (RM) starts with no nodes. Two machines start a NodeManager (NM) each. Each offers "
        f"{memory_mb} MB and 4 vcores. The RM never looks for nodes: it waits until they call."
    )
    stage.run(2)
    narrator.show(every=True)
    nodes, total = len(stage.nodes()), stage.view.cluster_resource()
    smallest, largest = stage.view.allocation_bounds()
    narrator.say("What the scheduler can use now:")
    narrator.table(
        ("nodes", "memory", "vcores", "smallest container", "largest container"),
        (
            nodes,
            f"{total.memory_mb} MB",
            total.vcores,
            f"{smallest.memory_mb} MB",
            f"{largest.memory_mb} MB" if nodes else "none fits",
        ),
    )
    return narrator.story(_question(memory_mb, nodes, total), {"nodes": nodes, "cluster_mb": total.memory_mb})


def _question(memory_mb: int, nodes: int, total: Resource) -> Question:
    if nodes:
        smallest = total.memory_mb // nodes // MINIMUM_MB * nodes
        why = (
            f"Each registration was answered NORMAL, so {nodes} x {memory_mb} MB count.",
            f"The smallest container is {MINIMUM_MB} MB: at most {smallest} of them fit, because none spans two nodes.",
        )
    else:
        why = (
            f"Each registration was answered SHUTDOWN: {memory_mb} MB is less than "
            f"yarn.scheduler.minimum-allocation-mb ({MINIMUM_MB} MB), so not even the smallest container would fit.",
            "A NodeManager that gets SHUTDOWN exits. The RM keeps no trace of it among its usable nodes.",
        )
    return Question(
        f"Two machines of {memory_mb} MB want to join. How much memory does the cluster have afterwards?",
        f"{total.memory_mb} MB",
        why,
    )


LESSON = Lesson(
    1,
    "register",
    "Register: how a machine joins the cluster",
    (
        "A YARN cluster has one ResourceManager, which decides, and a NodeManager on each machine, which acts. A "
        "NodeManager calls the ResourceManager once to register: it says who it is and what it offers. The reply is "
        "an order: NORMAL (stay) or SHUTDOWN (exit). After that the NodeManager sends heartbeats.",
    ),
    {
        "ResourceManager (RM)": "the daemon that knows all nodes and decides which container runs where.",
        "NodeManager (NM)": "the daemon on each machine that starts, watches and stops containers there.",
        "container": "an amount of memory and vcores on one node, in which one process of an application runs.",
        "vcore": "a share of a CPU; how many a machine has is a matter of configuration.",
    },
    Number(
        "memory",
        8192,
        256,
        1_048_576,
        "MB that each node offers (yarn.nodemanager.resource.memory-mb)",
        (8192, 1024, 1023),
    ),
    set_up,
    play,
    (
        "Hadoop: ResourceTrackerService.registerNodeManager, RMNodeImpl",
        "here: rm/core/resource_tracker.py (register), docs/lifecycles/RMNode.md",
    ),
)
