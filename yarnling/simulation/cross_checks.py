"""Invariants that no process could check, because they compare hosts: the ResourceManager, the machines, the AMs.

I-02: a machine has no more allocated than it has. I-15: a container runs on one machine, the one that the
ResourceManager has it on. I-32: a NodeManager forgets the applications that are over.
"""

from __future__ import annotations

from collections.abc import Iterator

from rm.core.states import FINAL_APP_STATES
from yarn.ids import ContainerId
from yarnling.chaos.history import History
from yarnling.simulation.cluster import SimulatedCluster


def over_committed(cluster: SimulatedCluster) -> Iterator[str]:
    """I-02, against the real size of the machine. Cheap: for each step of the ResourceManager."""
    scheduler = cluster.rm.core.scheduler
    sizes = {machine.nm.node_id: machine.size for machine in cluster.machines}
    fits_in = scheduler.context.calculator.fits_in
    for node in scheduler.nodes.values():
        size = sizes.get(node.node_id)
        if size is not None and not fits_in(node.allocated, size):
            yield f"I-02: {node.node_id} has {node.allocated} allocated, and its machine has {size}"


def running_twice(cluster: SimulatedCluster) -> Iterator[str]:
    """I-15, against what really runs."""
    known: dict[ContainerId, int] = {}
    for machine in cluster.machines:
        for container_id in machine.containers.running:
            if container_id in known:
                yield f"I-15: {container_id} runs on nm-{known[container_id]} and on nm-{machine.number}"
            known[container_id] = machine.number


def kept_by_nodes(cluster: SimulatedCluster, history: History) -> Iterator[str]:
    """I-32: the applications that NodeManagers still have although they are over, except as Hadoop keeps them."""
    apps = cluster.rm.core.context.apps
    for machine in cluster.machines:
        if not machine.nm.is_up:
            continue
        for application_id in machine.nm.core.applications:
            app = apps.get(application_id)
            is_over = app is None or app.state in FINAL_APP_STATES
            if is_over and not history.ignores_start(application_id, machine.number):
                yield f"I-32: nm-{machine.number} still has {application_id}, which has ended"
