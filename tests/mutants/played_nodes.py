"""Planted bugs of nodes and calls that are played: the played run differs from the full one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nm.core.node_manager import NodeManagerCore
from nm.core.played_container import PlayedContainer
from tests.mutants.bug import bug, drop, instead
from yarn.states import ContainerExitStatus
from yarnling.simulation.machine import SimulatedMachine
from yarnling.simulation.node_manager import NodeManagerProcess
from yarnling.simulation.played_calls import MasterCalls

WORKLOADS = "workloads"
"""In PlantedBug.plans: the random workload of each seed, whose played run must be the full one."""
PLANS = (WORKLOADS,)

Original = Callable[..., Any]


def _moved_to_the_end(original: Original, core: NodeManagerCore, container: PlayedContainer, now_ms: int) -> Any:
    for containers in (core.containers, core.status._open):
        if container.id in containers:
            containers[container.id] = containers.pop(container.id)
    return original(core, container, now_ms)


def _before_due_timers(original: Original, core: NodeManagerCore, container: PlayedContainer, now_ms: int) -> Any:
    container.play_end()
    return original(core, container, now_ms)


def _as_failure(original: Original, container: PlayedContainer) -> None:
    original(container)
    container.exit_status = ContainerExitStatus.ABORTED


def _at_once(original: Original, calls: MasterCalls, node_id: Any) -> Any:
    machine = calls._machine_of(node_id)
    if node_id not in calls._connected_ms and machine.nm.plays_starts(node_id):
        calls._connected_ms[node_id] = calls._engine.now_ms
        machine.nm.played_callers[calls] = None
    return original(calls, node_id)


def _one_less(original: Original, nm: NodeManagerProcess, count: int, due_ms: int, under_way: Any) -> None:
    original(nm, max(0, count - 1), due_ms, under_way)


PLAYED_NODE_BUGS = (
    bug(
        "played-ends-in-the-order-of-their-times",
        "A heartbeat reports ended containers in the order of their ends, not of their starts.",
        instead(NodeManagerCore.play_end, _moved_to_the_end),
        plans=PLANS,
    ),
    bug(
        "played-end-before-due-timers",
        "A container that ends in the millisecond of a heartbeat is in that heartbeat, not in the next.",
        instead(NodeManagerCore.play_end, _before_due_timers),
        plans=PLANS,
    ),
    bug(
        "played-end-not-reported-at-once",
        "The end of a container waits for the next regular heartbeat.",
        drop(NodeManagerCore.play_end, "send_soon"),
        plans=PLANS,
    ),
    bug(
        "played-end-with-another-exit-status",
        "A container that ends by itself is reported as aborted.",
        instead(PlayedContainer.play_end, _as_failure),
        plans=PLANS,
    ),
    bug(
        "played-container-not-in-reports",
        "A container that starts is not among the statuses of its node's heartbeats.",
        drop(NodeManagerCore._play_start, "status", "add"),
        plans=PLANS,
    ),
    bug(
        "played-start-is-no-news",
        "A node to which only containers were added leaves out its next heartbeat.",
        drop(NodeManagerCore.play_starts, "has_news"),
        drop(NodeManagerCore._play_start, "has_news"),
        plans=PLANS,
    ),
    bug(
        "played-kill-lost",
        "A signal does not end a container that is played.",
        drop(SimulatedMachine._signal_played, "after"),
        plans=PLANS,
    ),
    bug(
        "played-container-outlives-its-machine",
        "A container that is played ends at its time although its machine was lost.",
        drop(SimulatedMachine.kill, "_played", "clear"),
        plans=PLANS,
    ),
    bug(
        "played-start-without-a-connection",
        "The first start on a node does not wait until its AM has connected.",
        instead(MasterCalls._call, _at_once),
        plans=PLANS,
    ),
    bug(
        "played-heartbeat-not-counted",
        "A node whose heartbeats were left out counts one too few, and so does its response id.",
        instead(NodeManagerProcess.resume_heartbeats, _one_less),
        plans=PLANS,
    ),
)
