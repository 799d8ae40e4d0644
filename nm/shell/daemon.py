"""The NodeManager as a process: one server, one core, containers beside it.

await serve(conf, ready)      until SIGTERM or SIGINT, or the RM's order; `ready` is called once, when registered
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping

from nm.shell.node_host import NodeHost
from wire.daemon import ended_by_signal
from yarn.configuration import Configuration
from yarn.errors import YarnException

ROLE = "nodemanager"
_logger = logging.getLogger(__name__)

Ready = Callable[[dict[str, object]], None]


async def serve(
    conf: Configuration,
    ready: Ready,
    *,
    stop: asyncio.Event | None = None,
    environ: Mapping[str, str] | None = None,
) -> int:
    """Be a NodeManager until told to stop; the exit status: 1 if it lost the RM, 0 else (sent away by it, too).

    `stop` given: signals are left alone, it ends the node. `environ`: the NM's variables, of which containers get the
    whitelisted ones. Raises YarnException, naming key and remedy, for what keeps it from starting.
    """
    stopping = stop or asyncio.Event()
    variables = dict(os.environ if environ is None else environ)
    if stop is None:
        # Containers inherit it: OUTPUT_THREAD_DUMP is for programs that want it (a JVM), and must not end the others.
        # Hadoop's daemons have it from the shell that starts them in the background.
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    async with (
        ended_by_signal(stopping, use_signals=stop is None),
        NodeHost.start(conf, variables, stopping) as host,
    ):
        registered = await host.wait_registered()
        if registered:
            ready(facts(host))
        failure = await host.stopped
    if failure and not registered:
        raise YarnException(failure)
    if failure:
        _logger.error("stopped: %s", failure)
    return 1 if failure else 0


def facts(host: NodeHost) -> dict[str, object]:
    """What the ready line tells; `node_id` is that of the first of `nodes`, whose hosts follow one another."""
    first = host.nodes[0]
    return {
        "role": ROLE,
        "pid": os.getpid(),
        "node_id": str(first.node_id),
        "nodes": len(host.nodes),
        "http_port": first.facts.http_port,
        "registered": True,
    }
