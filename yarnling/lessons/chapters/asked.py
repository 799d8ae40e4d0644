"""Chapter 22: a node is full by what was requested, whatever is used of it."""

from __future__ import annotations

from functools import partial

from nm.core.events import UtilizationSampled
from yarn.nodes import ResourceUtilization
from yarn.resource import Resource
from yarn.times import short_number
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.samples import Samples, used_gb
from yarnling.lessons.scene.stage import Stage
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Mark
from yarnling.simulation.trace_file import RunTrace

GB = 1024
NODE_GB = 11
NODE = Resource(NODE_GB * GB, NODE_GB)
AM_SIZE = Resource(256, 1)
USED_MB = GB
"""Used by each container, whatever it has requested."""
LASTS_S = 30
SUBMITTED_S = {"ann": 2.0, "bob": 7.0, "cem": 12.0}
LOOK_S = 20.0
END_S = 125
SETTINGS = {
    "yarn.scheduler.minimum-allocation-mb": str(AM_SIZE.memory_mb),
    "yarn.scheduler.maximum-allocation-mb": str(NODE.memory_mb),
    "yarn.scheduler.capacity.root.default.minimum-user-limit-percent": "25",
}


def requests_gb(asked: int) -> dict[str, int]:
    """{application: GB that its container requests}: the third one wanted 9 GB where the others wanted 10."""
    return {"ann": asked, "bob": asked, "cem": 9 if asked == 10 else asked}


def set_up(asked: int, trace: RunTrace | None = None) -> Stage:
    stage = Stage(sizes=(NODE,), settings=SETTINGS, trace=trace)
    for name, gb in requests_gb(asked).items():
        wanted = (Wanted(1, Resource(gb * GB, 1), seconds=LASTS_S),)
        stage.submit(SUBMITTED_S[name], name, wanted, am_size=AM_SIZE)
    for second in range(2, END_S):
        stage.at(second, partial(_measure, stage))
    return stage


def _measure(stage: Stage) -> None:
    """Tell the NodeManager what its monitor would measure: nothing really runs in virtual time."""
    running = sum(not each.is_am and each.state == "RUNNING" for each in stage.node(1).containers)
    usage = ResourceUtilization(running * USED_MB, running * USED_MB, 0.0)
    stage.cluster.machine(1).nm.step(UtilizationSampled(usage, usage))


def play(asked: int, trace: RunTrace | None = None) -> Story:
    stage = set_up(asked, trace)
    narrator = Narrator(stage, ("RM", "NM n1", "AM ann", "AM bob"))
    requests = requests_gb(asked)
    narrator.say(
        f"One node of {NODE_GB} GB. ann, bob and cem each submit an application with one container, which runs for "
        f"{LASTS_S} s and uses {USED_MB // GB} GB; they request {_sum(requests)} GB. The AMs have "
        f"{AM_SIZE.memory_mb} MB each. (Nothing really runs in virtual time: what the node's monitor measures is given "
        "here. python examples/asked/run.py does the same with processes, and reads /proc.)"
    )
    samples = Samples(stage, {"allocated": lambda: _allocated_gb(stage), "used": lambda: _used_gb(stage)})
    samples.run(LOOK_S)
    narrator.show(kinds=(), hidden=("getNewApplication", "registerApplicationMaster", "startContainers"))
    narrator.say(f"The ResourceManager knows both figures. At {LOOK_S:.0f} s:")
    at_first = (len(_running(stage)), _allocated_gb(stage), _used_gb(stage))
    narrator.table(("application", "requested", "runs"), *_applications(stage, requests))
    narrator.table(("node", "total", "allocated", "used, as its NodeManager reports"), _node(stage))
    for name in requests:
        sentence = stage.verdict(name)
        if sentence:
            bob = str(stage.applications["bob"])
            narrator.say(f"yarnling explain: {name}'s application {sentence.replace(bob, 'bob')}.")
    samples.run(END_S)
    over_s = _over_s(samples)
    marks = (Mark(round(1000 * over_s), "all three have ended"),)
    bounds = {"allocated": float(NODE_GB), "used": float(NODE_GB)}
    narrator.draw(samples.curves("Memory of the node", "GB", bounds=bounds, marks=marks))
    return narrator.story(_question(asked, at_first, over_s), _measured(at_first, over_s))


def _sum(requests: dict[str, int]) -> str:
    return f"{' + '.join(map(str, requests.values()))} = {sum(requests.values())}"


def _allocated_gb(stage: Stage) -> float:
    return sum(used_gb(stage, name) for name in SUBMITTED_S)


def _used_gb(stage: Stage) -> float:
    """Use of the node's containers as the ResourceManager knows it from the last heartbeat."""
    usage = stage.view.containers_utilization(stage.node_id(1)) if stage.applications else None
    return 0.0 if usage is None else usage.physical_memory_mb / GB


def _running(stage: Stage) -> list[str]:
    return [name for name in SUBMITTED_S if stage.containers(name)]


def _applications(stage: Stage, requests: dict[str, int]) -> list[tuple[str, str, str]]:
    running = _running(stage)
    return [(name, f"{gb} GB", "yes" if name in running else "no, it waits") for name, gb in requests.items()]


def _node(stage: Stage) -> tuple[str, ...]:
    amounts = (float(NODE_GB), _allocated_gb(stage), _used_gb(stage))
    return ("n1", *(f"{amount:.2f} GB" for amount in amounts))


def _over_s(samples: Samples) -> float:
    """The time from which on nothing is allocated any more."""
    busy = [at_ms for at_ms, gb in zip(samples.times_ms, samples.values["allocated"], strict=True) if gb]
    return busy[-1] / 1000 + 1


def _measured(at_first: tuple[int, float, float], over_s: float) -> dict[str, float]:
    running, allocated_gb, used_gb = at_first
    return {"running": running, "allocated_gb": allocated_gb, "used_gb": used_gb, "over_s": over_s}


def _question(asked: int, at_first: tuple[int, float, float], over_s: float) -> Question:
    running, allocated_gb, used_gb = at_first
    requests = requests_gb(asked)
    return Question(
        f"The containers request {_sum(requests)} GB and use {USED_MB // GB} GB each. How many of the three run at "
        f"{LOOK_S:.0f} s, how much of the node's {NODE_GB} GB do they use then, and when have all ended?",
        f"{running} of 3, which use {short_number(used_gb)} GB; all have ended after {over_s:.0f} s",
        (
            f"The scheduler subtracts what was requested, not what is used: {NODE_GB} - {allocated_gb:.2f} = "
            f"{NODE_GB - allocated_gb:.2f} GB are left at {LOOK_S:.0f} s (with the AMs), although "
            f"{short_number(NODE_GB - used_gb)} GB are idle.",
            "The NodeManager reports the use with every heartbeat. The ResourceManager shows it (yarnling status, the "
            "web pages) and decides nothing by it.",
            "With requests of 5 GB two fit at a time, and with 3 GB all three. Requests of 10 + 10 + 9 = 29 GB that "
            "become 5 + 5 + 5 = 15 GB free 14 GB for others.",
            "Often written: YARN reads the available resources from /proc. Hadoop 3.4.1: a node has what is "
            "configured, 8192 MB and 8 vcores by default, whatever the machine has; only with "
            "yarn.nodemanager.resource.detect-hardware-capabilities does the NodeManager read /proc, once, at its "
            "start. Free is then what was not allocated.",
        ),
    )


LESSON = Lesson(
    22,
    "asked",
    "Requested, not used: the node of 11 GB",
    (
        "A container has the memory that was requested for it, whether it uses it or not. Someone who requests ten "
        "times what he needs fills a node that is idle, and others wait for memory that nobody uses. This lesson has "
        "one node of 11 GB and three applications that request more than they need.",
    ),
    {
        "allocated": "the sum of what was requested for the containers of a node, AMs among them.",
        "used": "what the processes of the containers have in memory, as the NodeManager measures it.",
        "yarn.nodemanager.resource.memory-mb": "the memory that a node offers; configured, not measured.",
    },
    Number("asked", 10, 1, 10, "GB that the container of ann and of bob requests (cem: 9 of 10)", (10, 5, 3)),
    set_up,
    play,
    (
        "With processes: python examples/asked/run.py",
        "Hadoop: SchedulerNode.getUnallocatedResource, NodeManagerHardwareUtils.getContainerMemoryMB, "
        "RMNodeImpl.getContainersUtilization",
        "the same on a cluster of processes: tests/cluster/test_nodes_and_use.py",
        "here: rm/scheduler/model/node.py, nm/shell/monitor.py",
    ),
)
