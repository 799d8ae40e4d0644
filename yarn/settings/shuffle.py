"""The settings of the auxiliary service mapreduce_shuffle (mapred-default.xml of Hadoop 3.4.1)."""

from __future__ import annotations

from yarn.settings.kinds import PORT_MAX, BoolSetting, IntSetting

PORT = IntSetting(
    "mapreduce.shuffle.port",
    "0",
    "port of mapreduce_shuffle on each node; 0: any free one (Hadoop: 13562)",
    minimum=0,
    maximum=PORT_MAX,
)
MAX_CONNECTIONS = IntSetting(
    "mapreduce.shuffle.max.connections", "0", "connections of reduces to a node; 0: 400 (Hadoop: no limit)", minimum=0
)
KEEP_ALIVE_ENABLED = BoolSetting(
    "mapreduce.shuffle.connection-keep-alive.enable",
    "false",
    "whether every connection of a reduce is kept, not only where the reduce asks for it",
)
KEEP_ALIVE_TIMEOUT = IntSetting(
    "mapreduce.shuffle.connection-keep-alive.timeout",
    "5",
    "how long a kept connection waits for the next request",
    unit="s",
    minimum=1,
)
