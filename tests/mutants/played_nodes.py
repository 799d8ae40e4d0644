"""Planted bugs of nodes and calls that are played: the played run differs from the full one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nm.core.node_manager import NodeManagerCore
from nm.core.played_container import PlayedContainer
from nm.core.status_updater import NodeStatusUpdater
from rm.core.rm_node import RMNode
from tests.mutants.bug import bug, drop, instead
from yarn.states import ContainerExitStatus
from yarnling.simulation.machine import SimulatedMachine
from yarnling.simulation.node_manager import NodeManagerProcess
from yarnling.simulation.played_calls import MasterCalls
from yarnling.simulation.quiet_heartbeats import QuietHeartbeats

WORKLOADS = "workloads"
"""In PlantedBug.plans: the random workload of each seed, whose played run must be the full one."""
PLANS = (WORKLOADS,)

Original = Callable[..., Any]


def _last_start_first(original: Original, status: NodeStatusUpdater) -> Any:
    ended = [container for container in status._open.values() if container.is_done]
    for container in reversed(ended):
        status._open[container.id] = status._open.pop(container.id)
    return original(status)


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


def _of_no_application(original: Original, node: RMNode) -> bool:
    return not (node.to_signal or node.to_update or node.capability_changed)


def _at_any_time(original: Original, quiet: QuietHeartbeats, nm: NodeManagerProcess) -> bool:
    known = quiet._nodes.get(nm.node_id)
    if known is not None and known.nm is nm:
        quiet._catch_up(known)
    return known is not None and known.nm is nm


def _one_less(original: Original, nm: NodeManagerProcess, count: int, due_ms: int, under_way: Any) -> None:
    original(nm, max(0, count - 1), due_ms, under_way)


PLAYED_NODE_BUGS = (
    bug(
        "played-ends-in-another-order",
        "A heartbeat reports the containers that have ended in the reverse order of their starts.",
        instead(NodeStatusUpdater._note_ends, _last_start_first),
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
    bug(
        "played-news-in-a-heartbeat-under-way",
        "A heartbeat that was sent contains what happens before it arrives.",
        instead(QuietHeartbeats.is_between_heartbeats, _at_any_time),
        plans=PLANS,
    ),
    bug(
        "played-running-containers-of-an-application-that-is-over",
        "A heartbeat that fetches the order to clean up an application does not report its running containers again.",
        instead(RMNode.needs_only_news, _of_no_application),
        plans=PLANS,
    ),
    bug(
        "played-end-reported-again",
        "A container's end is reported in each heartbeat after the first.",
        drop(NodeStatusUpdater.reports_received, "clear"),
        plans=PLANS,
    ),
)
