"""How many reduces to ask for, and how many to stop: RMContainerAllocator's arithmetic, all in MB.

Reduces that run early fetch map output while other maps still run, which is good; reduces that hold the room which
the last maps need bring the job to a standstill, which is fatal. So they are let in by shares: while maps wait, they
get at most `completed maps / all maps` of what the application can have (and never more than `ramp_up_limit`).

    headroom 4000, 4 maps run at 1000 each, half of the maps done
    limit 8000, ideal for reduces 8000 * min(0.5, 0.5) = 4000, maps want 4000 of their 4000  ->  4 reduces of 1000
"""

from __future__ import annotations

import math

from msgspec import Struct

from am.programs.mapreduce.core.job import Tuning


class Demand(Struct, frozen=True):
    """The counts of tasks by state, and the room. `scheduled` = asked for; `assigned` = in a container.

    `stopping_mb` is what containers hold that were told to stop and have not ended yet.
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
        """All that the application can have now (getResourceLimit)."""
        return self.headroom_mb + self.map_mb * self.assigned_maps + self.reduce_mb * self.assigned_reduces


def has_slow_start_passed(demand: Demand, tuning: Tuning) -> bool:
    return demand.completed_maps >= math.ceil(tuning.slow_start * demand.total_maps)


def reduces_to_schedule(demand: Demand, tuning: Tuning) -> int:
    """How many pending reduces to ask for; negative: how many asks to withdraw (scheduleReduces)."""
    if demand.scheduled_maps == 0:
        return demand.pending_reduces
    done_share = demand.completed_maps / demand.total_maps
    limit = demand.limit_mb
    reduce_share_mb = int(limit * min(done_share, tuning.ramp_up_limit))
    map_share_mb = limit - reduce_share_mb
    map_demand_mb = demand.map_mb * (demand.scheduled_maps + demand.assigned_maps)
    if map_share_mb >= map_demand_mb:
        reduce_share_mb += map_share_mb - map_demand_mb
    held_mb = demand.reduce_mb * (demand.scheduled_reduces + demand.assigned_reduces)
    ramp = int((reduce_share_mb - held_mb) / demand.reduce_mb)
    return max(min(ramp, demand.pending_reduces), -demand.scheduled_reduces)


def must_preempt_reduces(demand: Demand, tuning: Tuning, *, hanging_ms: int) -> bool:
    """True if maps wait, none runs, and reduces hold what they wait for. `hanging_ms`: the longest wait of a map."""
    if demand.assigned_maps > 0 or demand.scheduled_maps == 0:
        return False
    if tuning.unconditional_preempt_delay_ms >= 0 and hanging_ms > tuning.unconditional_preempt_delay_ms:
        return True
    # Room that stopped containers are about to leave counts as free. RMContainerAllocator does not count it and can
    # stop more reduces at each heartbeat until the first of them has ended.
    room_mb = demand.headroom_mb + demand.stopping_mb - demand.reduce_mb * demand.scheduled_reduces
    if room_mb >= demand.map_mb:
        return False
    return hanging_ms >= tuning.preempt_delay_ms


def reduces_to_stop(demand: Demand, tuning: Tuning) -> int:
    """How many running reduces make room for the waiting maps (preemptReducer)."""
    for_one_map = math.ceil(demand.map_mb / demand.reduce_mb)
    for_all_maps = math.ceil(demand.map_mb * demand.scheduled_maps / demand.reduce_mb)
    at_limit = math.ceil(demand.limit_mb * tuning.preemption_limit / demand.reduce_mb)
    return min(max(for_one_map, at_limit), for_all_maps, demand.assigned_reduces)
