"""Loses spot nodes by chance. The times come from the run's seed, one stream of random numbers for each host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from yarn.times import HOUR_MS
from yarnling.simulation.engine import Engine
from yarnling.simulation.node_events import NodeChanges
from yarnling.workload.model import SpotNodes


class SpotLosses:
    """`_lives` {host: how many machines of that name have come}: the loss of an earlier one does not count."""

    def __init__(self, engine: Engine, changes: NodeChanges, spots: Sequence[SpotNodes]) -> None:
        self._changes = changes
        self._spots = {host: each for each in spots for host in each.hosts}
        self._draws = {host: engine.stream(f"losses of {host}") for host in self._spots}
        self._lives = dict.fromkeys(self._spots, 0)
        changes.arrived = self._arrived
        for host in self._spots:
            if changes.is_there(host):
                self._arrived(host)

    def _arrived(self, host: str) -> None:
        spot = self._spots.get(host)
        if spot is not None and spot.lost_per_hour > 0:
            self._lives[host] += 1
            losses_per_hour = -math.log1p(-spot.lost_per_hour)
            lasts_ms = round(self._draws[host].expovariate(losses_per_hour) * HOUR_MS)
            self._changes.after(lasts_ms, host, partial(self._lose, host, self._lives[host]))

    def _lose(self, host: str, life: int) -> None:
        if life != self._lives[host] or not self._changes.is_there(host):
            return
        self._changes.lose(host)
        replaced_ms = self._spots[host].replaced_ms
        if replaced_ms is not None and not self._changes.is_leaving(host):
            self._changes.after(replaced_ms, host, partial(self._replace, host, life))

    def _replace(self, host: str, life: int) -> None:
        if life == self._lives[host] and not self._changes.is_there(host):
            self._changes.arrive(host)
            self._changes.join(host)
