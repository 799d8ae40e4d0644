"""The NodeManager as a process: one server, a core for each node, and containers as child processes.

`await serve(conf, ready)` runs until SIGTERM or SIGINT, or until the RM shuts the node down. `ready` is called once,
when the node has registered.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Mapping

from nm.shell.node_host import Hosting, NodeHost, NodeWebServices, OneNode
from wire.core_shell import WallClock
from wire.daemon import ReportReady, ended_by_signal
from wire.garbage_collection import collect_less_often
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings.yarnling import PACK, WEB_ENABLED

ROLE = "nodemanager"
_logger = logging.getLogger(f"yarnling.{__name__}")


async def serve(
    conf: Configuration,
    ready: ReportReady,
    *,
    stop: asyncio.Event | None = None,
    environ: Mapping[str, str] | None = None,
) -> int:
    """Run a NodeManager until it is stopped. Returns the exit status: 1 if the connection to the RM was lost, else 0.

    Setting `stop` stops the NodeManager; if it is given, signals are not handled. `environ` are the NM's variables;
    containers get those that are whitelisted. Raises YarnException, naming setting and remedy, if the NodeManager
    cannot start.
    """
    stopping = stop or asyncio.Event()
    variables = dict(os.environ if environ is None else environ)
    if stop is None:
        collect_less_often()
        # Containers inherit that SIGQUIT is ignored. OUTPUT_THREAD_DUMP sends SIGQUIT, which is meant for programs that
        # handle it (a JVM) and must not end other programs. Hadoop's daemons inherit this from the shell that starts
        # them in the background.
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    async with (
        ended_by_signal(stopping, use_signals=stop is None),
        NodeHost.start(hosting(conf), variables, stopping) as host,
    ):
        registered = await host.wait_registered()
        if registered:
            ready(facts(host))
        failure = await host.stopped
    if failure and not registered:
        raise YarnException(failure)
    if failure:
        _logger.error("the NodeManager stopped: %s", failure)
    return 1 if failure else 0


def hosting(conf: Configuration) -> Hosting:
    """The kind of host: one node, or a pack of nodes.

    Raises YarnException if the configuration does not allow the pack.
    """
    if PACK.of(conf) == 1:
        return OneNode(conf, _web_services(conf))
    # This is the only import of nm.pack: without that folder, processes with one node still work.
    from nm.pack.host import NodePack

    return NodePack(conf)


def _web_services(conf: Configuration) -> NodeWebServices | None:
    if not WEB_ENABLED.of(conf):
        return None
    # Imported here: a process that does not serve them is smaller.
    from nm.shell.web.server import NodeManagerWeb

    return NodeManagerWeb(conf, WallClock())


def facts(host: NodeHost) -> dict[str, object]:
    """The contents of the ready line. `node_id` is that of the first of `nodes` nodes, whose hosts are consecutive."""
    first = host.nodes[0]
    return {
        "role": ROLE,
        "pid": os.getpid(),
        "node_id": str(first.node_id),
        "nodes": len(host.nodes),
        "http_port": first.facts.http_port,
        "registered": True,
    }
