"""Invariants that no process could check, because they compare hosts: the ResourceManager, the machines, the AMs.

I-02: a machine has no more allocated than it has. I-15: a container runs on one machine, the one that the
ResourceManager has it on. I-68: a node and the ResourceManager know the same size of a container. I-69: the
ResourceManager knows which hosts an AM avoids. I-32: a NodeManager forgets the applications that are over.
"""

from __future__ import annotations

from collections.abc import Iterator

from rm.core.states import FINAL_APP_STATES, RMAppAttemptState
from yarn.ids import ContainerId
from yarnling.faults.history import History
from yarnling.simulation.cluster import SimulatedCluster


def over_committed(cluster: SimulatedCluster) -> Iterator[str]:
    """I-02, against the real size of the machine. Cheap enough for each step of the ResourceManager."""
    scheduler = cluster.rm.core.scheduler
    sizes = {machine.nm.node_id: machine.size for machine in cluster.machines}
    fits_in = scheduler.context.calculator.fits_in
    for node in scheduler.nodes.values():
        size = sizes.get(node.node_id)
        if size is not None and not fits_in(node.allocated, size):
            yield f"I-02: {node.node_id} has {node.allocated} allocated, and its machine has {size}"


def running_twice(cluster: SimulatedCluster) -> Iterator[str]:
    """I-15, against the containers that really run."""
    known: dict[ContainerId, int] = {}
    for machine in cluster.machines:
        for container_id in machine.containers.running:
            if container_id in known:
                yield f"I-15: {container_id} runs on nm-{known[container_id]} and on nm-{machine.number}"
            known[container_id] = machine.number


def different_sizes(cluster: SimulatedCluster) -> Iterator[str]:
    """I-68: each change of a size has a number, so of two different sizes one has the higher number."""
    scheduler = cluster.rm.core.scheduler
    for machine in cluster.machines:
        for container in machine.nm.core.containers.values() if machine.nm.is_up else ():
            known = scheduler.container(container.id)
            token = container.token
            if known is None or known.container.version != token.version or known.resource == token.resource:
                continue
            yield f"I-68: {container.id} has {token.resource} on nm-{machine.number}, and {known.resource} in the rm"


def different_blacklists(cluster: SimulatedCluster) -> Iterator[str]:
    """I-69, for each AM without a change under way. A new attempt inherits the blacklist of the last one."""
    context = cluster.rm.core.context
    for master in cluster.masters.values():
        attempt_id, requests, running = master.attempt_id, master.requests, context.attempt(master.attempt_id)
        if running is None or running.state is not RMAppAttemptState.RUNNING or attempt_id.attempt > 1:
            continue
        app = context.scheduler.applications.get(attempt_id.application_id)
        known = app.current_attempt if app is not None else None
        avoided = requests.blacklist if requests is not None else None
        if known is not None and avoided is not None and avoided != known.blacklist:
            yield f"I-69: {attempt_id} avoids {sorted(avoided)}, and the rm has {sorted(known.blacklist)}"


def kept_by_nodes(cluster: SimulatedCluster, history: History) -> Iterator[str]:
    """I-32: no NodeManager keeps an application that has ended, except where Hadoop's would keep it too."""
    apps = cluster.rm.core.context.apps
    for machine in cluster.machines:
        if not machine.nm.is_up:
            continue
        for application_id in machine.nm.core.applications:
            app = apps.get(application_id)
            is_over = app is None or app.state in FINAL_APP_STATES
            if is_over and not history.ignores_start(application_id, machine.number):
                yield f"I-32: nm-{machine.number} still has {application_id}, which has ended"


OF_EACH_STEP = (over_committed, running_twice, different_sizes, different_blacklists)
"""The checks after each step of the ResourceManager: all are cheap."""
