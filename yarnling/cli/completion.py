"""What a shell offers at Tab: clusters and nodes as their state files tell, applications as the ResourceManager does.

Nobody waits for it long, and no fault shows: a shell that is asked offers nothing then.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import typer

LOOK_S = 1.0


def clusters() -> list[str]:
    """Those that are up."""
    from yarnling.cluster.state import known_clusters

    return [state.name for state in known_clusters() if state.supervisor.process() is not None]


def nodes(context: typer.Context) -> list[tuple[str, str]]:
    """(number, what it is) of the cluster's nodes."""
    from yarn.errors import YarnException
    from yarnling.cluster.state import find_cluster

    with suppress(YarnException):
        entries = find_cluster(_name(context)).nodes
        return [(str(entry.number), " ".join((entry.name, entry.node_id, entry.condition))) for entry in entries]
    return []


def applications(context: typer.Context) -> list[tuple[str, str]]:
    """(id, what it is), the newest first."""
    from yarn.errors import YarnException

    with suppress(YarnException, TimeoutError):
        return asyncio.run(_applications(_name(context)))
    return []


async def _applications(name: str) -> list[tuple[str, str]]:
    from yarnling.cli.connection import connect

    _, client = connect(name)
    async with asyncio.timeout(LOOK_S), client:
        found = await client.applications()
    newest_first = sorted(found, key=lambda app: app.application_id, reverse=True)
    return [(str(app.application_id), f"{app.name} {app.state.name}") for app in newest_first]


def _name(context: typer.Context) -> str:
    name = context.params.get("name")
    return name if isinstance(name, str) else "default"
