"""What the environment of a process says to gRPC before it is imported: most of it cannot be said in any other way."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

_KEY = "GRPC_EXPERIMENTS"
_OWN_POLLER_VERSIONS = ("1.85.",)
"""Where it was measured, and its tests ran. A version that no longer has the choice writes an error for it, so others
are left as they are: slower, and right."""
_OWN_POLLER = "-event_engine_client,-event_engine_listener"
"""The loop's thread of gRPC reads sockets by itself. With gRPC's event engine a message goes through two threads more,
which then look some fifteen times whether there is something else to do."""


def grpc_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What a daemon's environment needs beside `environment`, whose own choice of experiments stays.

    gRPC's fork handlers would wait for threads that are not there.
    """
    added = {"GRPC_ENABLE_FORK_SUPPORT": "false"}
    if _KEY not in environment and grpc.__version__.startswith(_OWN_POLLER_VERSIONS):
        added[_KEY] = _OWN_POLLER
    return added
