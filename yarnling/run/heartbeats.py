"""Recognises heartbeats that say nothing new."""

from __future__ import annotations

from typing import Any

from yarnling.run.records import Call

HEARTBEATS = frozenset({"nodeHeartbeat", "packHeartbeat", "allocate"})
# Fields of heartbeats that always change: measurements and counters. Changes of these alone do not make a heartbeat
# worth showing.
_MEASURED = {"response_id", "response_ids", "nodes", "node_id", "next_heartbeat_ms", "headroom", "reported_ms"}
_MEASURED |= {"containers_utilization", "node_utilization", "container_token_key_id", "nm_token_key_id"}
# Fields that describe a state: they are worth showing if they changed. All other fields are worth showing unless they
# are empty.
_STATE = {"containers", "health", "keep_alive_applications", "action", "progress", "cluster_nodes", "tracking_url"}
_STATE |= {"application_priority"}
_NOTHING: tuple[object, ...] = (None, "", [], {}, False, 0)


class Heartbeats:
    """Remembers each caller's last heartbeat, to recognise heartbeats without news."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], object] = {}

    def is_quiet(self, call: Call) -> bool:
        """True for a heartbeat with the same content as the caller's last one.

        Call this once for each call, in order.
        """
        records = [record for record in (call.request, call.reply) if isinstance(record, dict)]
        if call.rpc not in HEARTBEATS or call.error or len(records) < 2:
            return False
        contents = [{key: entry for key, entry in record.items() if key not in _MEASURED} for record in records]
        states = [
            {key: _without_measurements(entry) for key, entry in record.items() if key in _STATE} for record in contents
        ]
        caller = (call.source, call.rpc)
        is_same, self._last[caller] = self._last.get(caller) == states, states
        return is_same and all(
            entry in _NOTHING for record in contents for key, entry in record.items() if key not in _STATE
        )


def without_measurements(record: dict[str, Any]) -> dict[str, Any]:
    """A request or reply without the fields that always change."""
    return {key: _without_measurements(entry) for key, entry in record.items() if key not in _MEASURED}


def _without_measurements(value: object) -> object:
    """`value` without the fields that contain measurements, at any depth."""
    if isinstance(value, dict):
        return {key: _without_measurements(entry) for key, entry in value.items() if key not in _MEASURED}
    return value
