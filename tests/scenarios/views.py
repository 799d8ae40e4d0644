"""The cluster as a scenario's commands print it, one line for each queue, node or application."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rm.core.explain.obstacles import obstacles
from rm.scheduler.capacity.activation import user_am_limit
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import ParentQueue
from rm.scheduler.model.requests import SchedulerKey
from tests.rm.scheduler.cluster import Cluster
from yarn.resource import Resource


class Views:
    """Amounts are memory alone, or, with `vcores`, memory:vcores."""

    def __init__(self, cluster: Cluster, *, vcores: bool) -> None:
        self._cluster = cluster
        self._vcores = vcores

    def queue(self, path: str) -> str:
        queue = self._cluster.scheduler.queues[path]
        usage = queue.usage.default
        text = (
            f"{path}: {queue.state.name} used {self._of(usage.used)} reserved {self._of(usage.reserved)} "
            f"pending {self._of(usage.pending)} guaranteed {self._of(queue.effective_minimum(''))} "
            f"maximum {self._of(queue.effective_maximum(''))}"
        )
        if isinstance(queue, LeafQueue):
            ams = f"masters {self._of(usage.am_used)} of {self._of(usage.am_limit)}"
            return f"{text} {ams} apps {queue.active_count}+{queue.pending_count}"
        assert isinstance(queue, ParentQueue)
        return text + f" apps {queue.application_count}"

    def partition(self, path: str, label: str) -> str:
        """The amount that a queue uses of the nodes with a label, containers of other partitions included."""
        queue = self._cluster.scheduler.queues[path]
        usage, own = queue.usage, queue.capacities.at(label)
        text = (
            f"{path} on {label}: used {self._of(usage.used(label))} reserved {self._of(usage.reserved(label))} "
            f"pending {self._of(usage.pending(label))} guaranteed {self._of(queue.effective_minimum(label))} "
            f"maximum {self._of(queue.effective_maximum(label))} share {_short(own.used_capacity)}"
        )
        if isinstance(queue, LeafQueue):
            text += f" masters {self._of(usage.am_used(label))} of {self._of(usage.am_limit(label))}"
            lent = [self._cluster.name_of(container_id) for container_id in queue.borrowed.get(label, {})]
            text += f" lent {' '.join(lent)}" if lent else ""
        return text

    def shares(self, path: str) -> str:
        """The numbers that the queue order compares: binary32 numbers, printed with as many digits as they need."""
        queue = self._cluster.scheduler.queues[path]
        own = queue.capacities.default
        return (
            f"{path}: capacity {_short(own.capacity)} of cluster {_short(own.absolute_capacity)} "
            f"used {_short(own.used_capacity)} of cluster {_short(own.absolute_used_capacity)}"
        )

    def limits(self, path: str) -> str:
        """The limits of a leaf."""
        leaf = self._cluster.leaf(path)
        ams = f"masters {self._of(leaf.am_limit(''))}, of a user {self._of(user_am_limit(leaf, '', 1.0))}"
        applications = f"applications {leaf.maximum_applications}, of a user {leaf.maximum_applications_per_user}"
        largest = self._of(self._cluster.scheduler.maximum_allocation(self._cluster.now_ms, leaf.path))
        counted = f"users counted {leaf.users.active_count}, {leaf.users.only_pending_count} of them only waiting"
        return f"{leaf.path}: {ams}, {applications}, {counted}, largest container {largest}"

    def users(self, path: str) -> Iterator[str]:
        users = self._cluster.leaf(path).users
        for name, user in users.users.items():
            yield (
                f"{name}: used {self._of(user.usage.default.used)} limit {self._of(user.limit)} "
                f"{'active' if users.is_active(name) else 'idle'} "
                f"apps {user.active_applications}+{user.pending_applications}"
            )

    def node(self, name: str) -> str:
        node = self._cluster.node_of(name)
        text = f"{name}: used {self._of(node.allocated)} free {self._of(node.unallocated)} of {self._of(node.total)}"
        if node.partition:
            text += f" label {node.partition}"
        if node.killable:
            text += f" killable {self._of(node.total_killable)}"
        reserved = node.reserved_container
        if reserved is None:
            return text
        return f"{text} reserved {self._cluster.name_of(reserved.id)} {self._of(reserved.resource)}"

    def held(self, app: str) -> str:
        attempt = self._cluster.attempt(app)
        return f"{app}: {self._of(attempt.usage.default.used)} in {len(attempt.live_containers)} containers"

    def asked(self, app: str) -> Iterator[str]:
        """Pending requests, and the missed scheduling opportunities of each priority."""
        attempt = self._cluster.attempt(app)
        rows: dict[SchedulerKey, list[str]] = {}
        for key, row in attempt.requests.rows():
            rows.setdefault(key, []).append(f"{row.count} at {row.terms.resource_name}")
        for key, places in rows.items():
            missed = attempt.opportunities.get(key, 0)
            yield f"{app} priority {key.priority}: {', '.join(places)}; passed over {missed}"

    def poll(self, app: str) -> Iterator[str]:
        allocation = self._cluster.poll(app)
        names = " ".join(self._cluster.name_of(container.id) for container in allocation.containers)
        headroom = f"{allocation.headroom.memory_mb}:{allocation.headroom.vcores}"
        yield f"{app}: headroom {headroom}, fetched {names or 'nothing'}"
        if allocation.preemption is not None:
            named = " ".join(self._cluster.name_of(container_id) for container_id in allocation.preemption.negotiable)
            asked = " ".join(f"{ask.count}x{self._of(ask.capability)}" for ask in allocation.preemption.asks)
            yield f"{app}: is to give back {named}, or {asked}"

    def obstacles(self, app: str) -> Iterable[str]:
        attempt_id = self._cluster.attempt(app).attempt_id
        for obstacle in obstacles(self._cluster.scheduler, attempt_id.application_id):
            yield str(obstacle).replace(str(attempt_id), app)

    def _of(self, amount: Resource) -> str:
        return f"{amount.memory_mb}:{amount.vcores}" if self._vcores else str(amount.memory_mb)


def _short(number: float) -> str:
    return f"{number:.9g}"
