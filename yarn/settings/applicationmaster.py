"""The settings of ApplicationMasters."""

from __future__ import annotations

from yarn.settings.kinds import TimeSetting

AM_HEARTBEAT_INTERVAL = TimeSetting(
    "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms",
    "1000",
    "time between two heartbeats of any AM to the RM (in Hadoop: of a MapReduce AM only)",
    minimum=1,
)
