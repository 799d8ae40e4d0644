"""The settings of ApplicationMasters."""

from __future__ import annotations

from yarn.settings.kinds import TimeSetting

AM_HEARTBEAT_INTERVAL = TimeSetting(
    "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms",
    "1000",
    "how often a master calls the RM (not only a map-reduce's: Hadoop has no key for the others)",
    minimum=1,
)
