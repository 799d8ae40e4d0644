"""The common parts of the daemons' `serve` functions: types, handling of signals, and gRPC's environment variables."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import grpc

from yarn.configuration import Configuration

ReportReady = Callable[[dict[str, object]], None]
"""The type of the function that is called once, when the daemon answers calls, with the facts of its ready line."""
Reload = Callable[[], Configuration]
"""The type of a function that reads the configuration files again."""


_EXPERIMENTS = "GRPC_EXPERIMENTS"
_OWN_POLLER_VERSIONS = ("1.85.",)
"""The gRPC releases for which the experiments were measured and tested. A release without these experiments logs an
error for them, so other releases keep their defaults, which are slower but correct."""
_OWN_POLLER = "-event_engine_client,-event_engine_listener"
"""The experiments to disable, so that gRPC's loop thread reads the sockets itself. With gRPC's event engine a
message passes through two more threads, each of which polls some fifteen times for further work."""


@asynccontextmanager
async def ended_by_signal(stopping: asyncio.Event, *, use_signals: bool) -> AsyncIterator[None]:
    """A context in which SIGTERM and SIGINT set `stopping`, if `use_signals`."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT) if use_signals else ()
    for number in numbers:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def grpc_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables to add to a daemon's `environment` before it imports gRPC; experiments that are set there are kept.

    gRPC's fork handlers are disabled: in a forked daemon they would wait for threads that do not exist.
    """
    added = {"GRPC_ENABLE_FORK_SUPPORT": "false"}
    if _EXPERIMENTS not in environment and grpc.__version__.startswith(_OWN_POLLER_VERSIONS):
        added[_EXPERIMENTS] = _OWN_POLLER
    return added
