"""Which containers a job requests, and for which task each is used: RMContainerAllocator and RMContainerRequestor.

**Priorities.** A container serves a task of its priority:

    5   maps that run again: before reduces, which wait for their output
    10  reduces, as far as the ramp allows; the others are PENDING and not requested
    20  maps that run for the first time

**The ramp.** Reduces that run early fetch map output while other maps still run, which is good; reduces that hold the
memory which the last maps need bring the job to a standstill, which is fatal. So while maps wait, reduces get at most
`completed maps / all maps` of what the application can have (and never more than `ramp_up_limit`). All in MB:

    headroom 4000, 4 maps run at 1000 each, half of the maps done
    limit 8000, ideal for reduces 8000 * min(0.5, 0.5) = 4000, maps want 4000 of their 4000  ->  4 reduces of 1000

**The blacklist.** A host with three failures gets no more containers. If the blacklist covers a third of the cluster's
nodes, the job itself is probably faulty, and the blacklist is ignored until fewer hosts are on it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from msgspec import Struct

from am.core.actions import RequestContainer, WithdrawRequest
from am.core.requests import ContainerRequest
from am.programs.mapreduce.core.job import JobConf, MapReduceJob
from am.programs.mapreduce.core.tasks import RequestWithdrawn, Task, TaskRequested

PRIORITY_RERUN_MAP = 5
PRIORITY_REDUCE = 10
PRIORITY_MAP = 20


class WaitingTasks:
    """Tasks that wait for a container, first in, first out within each priority. A SCHEDULED task has one request."""

    def __init__(self, job: MapReduceJob) -> None:
        self._maps: dict[int, deque[tuple[Task, int]]] = {PRIORITY_RERUN_MAP: deque(), PRIORITY_MAP: deque()}
        self._pending_reduces: deque[Task] = deque()
        self._scheduled_reduces: deque[Task] = deque()
        map_request = {priority: ContainerRequest(job.map_resource, priority) for priority in self._maps}
        self._requests = {**map_request, PRIORITY_REDUCE: ContainerRequest(job.reduce_resource, PRIORITY_REDUCE)}

    @property
    def scheduled_maps(self) -> int:
        return sum(map(len, self._maps.values()))

    @property
    def pending_reduces(self) -> int:
        return len(self._pending_reduces)

    @property
    def scheduled_reduces(self) -> int:
        return len(self._scheduled_reduces)

    def hanging_ms(self, now_ms: int) -> int:
        """The time, in ms, the map that waits longest has waited; 0 if none waits."""
        return now_ms - min((since_ms for waiting in self._maps.values() for _, since_ms in waiting), default=now_ms)

    def add_map(self, task: Task, priority: int, now_ms: int) -> RequestContainer:
        task.take(TaskRequested(), now_ms)
        self._maps[priority].append((task, now_ms))
        return RequestContainer(self._requests[priority])

    def add_reduces(self, tasks: Iterable[Task]) -> None:
        """Add PENDING reduces, which are requested when the ramp allows it."""
        self._pending_reduces.extend(tasks)

    def ramp_reduces(self, count: int, now_ms: int) -> list[RequestContainer | WithdrawRequest]:
        """Request `count` pending reduces. If `count` is negative, withdraw that many requests, the latest first."""
        actions: list[RequestContainer | WithdrawRequest] = []
        for _ in range(count):
            task = self._pending_reduces.popleft()
            task.take(TaskRequested(), now_ms)
            self._scheduled_reduces.append(task)
            actions.append(RequestContainer(self._requests[PRIORITY_REDUCE]))
        for _ in range(-count):
            task = self._scheduled_reduces.pop()
            task.take(RequestWithdrawn(), now_ms)
            self._pending_reduces.appendleft(task)
            actions.append(WithdrawRequest(self._requests[PRIORITY_REDUCE]))
        return actions

    def is_any_at(self, priority: int) -> bool:
        """True if a task waits for a container of that priority."""
        return bool(self._scheduled_reduces if priority == PRIORITY_REDUCE else self._maps.get(priority))

    def pop(self, priority: int) -> Task:
        """Remove and return the task for a container of this priority."""
        if priority == PRIORITY_REDUCE:
            return self._scheduled_reduces.popleft()
        return self._maps[priority].popleft()[0]


class NodeBlacklist:
    """Counts failures by host, and holds the hosts that the RM has been asked to avoid."""

    def __init__(self, conf: JobConf) -> None:
        self._failures_max = conf.failures_per_node_max
        self._ignored_percent = conf.blacklist_ignored_percent
        self._failures: dict[str, int] = {}
        self._sent: dict[str, None] = {}
        self._ignored = False

    def count_failure(self, host: str) -> None:
        self._failures[host] = self._failures.get(host, 0) + 1

    def changes(self, cluster_nodes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The changes of the blacklist to send to the RM now: (hosts to avoid, hosts to allow again)."""
        bad = self._bad_hosts()
        share_percent = int(len(bad) / cluster_nodes * 100) if cluster_nodes else 0
        self._ignored = self._ignored_percent != -1 and share_percent >= self._ignored_percent
        wanted = dict.fromkeys(() if self._ignored else bad)
        additions = tuple(host for host in wanted if host not in self._sent)
        removals = tuple(host for host in self._sent if host not in wanted)
        self._sent = wanted
        return additions, removals

    def __contains__(self, host: object) -> bool:
        """True if containers on `host` must not be used."""
        return not self._ignored and host in self._bad_hosts()

    def _bad_hosts(self) -> tuple[str, ...]:
        return tuple(host for host, count in self._failures.items() if count >= self._failures_max)


class Demand(Struct, frozen=True):
    """The numbers of tasks in each state, and the memory that the job has and needs.

    `scheduled` = requested; `assigned` = in a container. `stopping_mb` is held by containers that are being stopped and
    have not ended yet.
    """

    total_maps: int
    completed_maps: int
    scheduled_maps: int
    assigned_maps: int
    pending_reduces: int
    scheduled_reduces: int
    assigned_reduces: int
    headroom_mb: int
    map_mb: int
    reduce_mb: int
    stopping_mb: int = 0

    @property
    def limit_mb(self) -> int:
        """All memory (MB) that the application can have now (getResourceLimit)."""
        return self.headroom_mb + self.map_mb * self.assigned_maps + self.reduce_mb * self.assigned_reduces


def has_slow_start_passed(demand: Demand, conf: JobConf) -> bool:
    return demand.completed_maps >= math.ceil(conf.slow_start * demand.total_maps)


def reduces_to_schedule(demand: Demand, conf: JobConf) -> int:
    """The number of pending reduces to request; negative: how many requests to withdraw (scheduleReduces)."""
    if demand.scheduled_maps == 0:
        return demand.pending_reduces
    done_share = demand.completed_maps / demand.total_maps
    limit = demand.limit_mb
    reduce_share_mb = int(limit * min(done_share, conf.ramp_up_limit))
    map_share_mb = limit - reduce_share_mb
    map_demand_mb = demand.map_mb * (demand.scheduled_maps + demand.assigned_maps)
    if map_share_mb >= map_demand_mb:
        reduce_share_mb += map_share_mb - map_demand_mb
    held_mb = demand.reduce_mb * (demand.scheduled_reduces + demand.assigned_reduces)
    ramp = int((reduce_share_mb - held_mb) / demand.reduce_mb)
    return max(min(ramp, demand.pending_reduces), -demand.scheduled_reduces)


def must_preempt_reduces(demand: Demand, conf: JobConf, *, hanging_ms: int) -> bool:
    """True if maps wait, none runs, and reduces hold the memory that maps need.

    `hanging_ms`: the longest wait of a map.
    """
    if demand.assigned_maps > 0 or demand.scheduled_maps == 0:
        return False
    if conf.unconditional_preempt_delay_ms >= 0 and hanging_ms > conf.unconditional_preempt_delay_ms:
        return True
    # Memory that stopped containers are about to free counts as free. RMContainerAllocator does not count it and can
    # stop more reduces at each heartbeat until the first of them has ended.
    free_mb = demand.headroom_mb + demand.stopping_mb - demand.reduce_mb * demand.scheduled_reduces
    if free_mb >= demand.map_mb:
        return False
    return hanging_ms >= conf.preempt_delay_ms


def reduces_to_stop(demand: Demand, conf: JobConf) -> int:
    """The number of running reduces to stop for the waiting maps (preemptReducer)."""
    for_one_map = math.ceil(demand.map_mb / demand.reduce_mb)
    for_all_maps = math.ceil(demand.map_mb * demand.scheduled_maps / demand.reduce_mb)
    at_limit = math.ceil(demand.limit_mb * conf.preemption_limit / demand.reduce_mb)
    return min(max(for_one_map, at_limit), for_all_maps, demand.assigned_reduces)
