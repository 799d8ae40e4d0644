"""Hosts on which tasks fail too often (RMContainerRequestor).

A host with three failures gets no more containers. If that would rule out a third of the cluster's nodes, the fault
is more likely the job's own, and the whole blacklist is set aside until fewer are bad.
"""

from __future__ import annotations

from am.programs.mapreduce.core.job import Tuning


class NodeBlacklist:
    """Failures by host, and which hosts the RM has been told to avoid."""

    def __init__(self, tuning: Tuning) -> None:
        self._failures_max = tuning.failures_per_node_max
        self._ignored_percent = tuning.blacklist_ignored_percent
        self._failures: dict[str, int] = {}
        self._told: dict[str, None] = {}
        self._ignored = False

    def count_failure(self, host: str) -> None:
        self._failures[host] = self._failures.get(host, 0) + 1

    def changes(self, cluster_nodes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What to tell the RM now: (hosts to avoid, hosts to come back to)."""
        bad = self._bad_hosts()
        share_percent = int(len(bad) / cluster_nodes * 100) if cluster_nodes else 0
        self._ignored = self._ignored_percent != -1 and share_percent >= self._ignored_percent
        wanted = dict.fromkeys(() if self._ignored else bad)
        additions = tuple(host for host in wanted if host not in self._told)
        removals = tuple(host for host in self._told if host not in wanted)
        self._told = wanted
        return additions, removals

    def __contains__(self, host: object) -> bool:
        """True if containers on `host` are not to be used."""
        return not self._ignored and host in self._bad_hosts()

    def _bad_hosts(self) -> tuple[str, ...]:
        return tuple(host for host, count in self._failures.items() if count >= self._failures_max)
