"""`yarnling explain`: shows why an application has not been given its next container."""

from __future__ import annotations

import asyncio

from yarn.ids import ApplicationId
from yarn.nodes import NodeReport
from yarn.protocols.inspection import Explanation
from yarnling.cli.shared.arguments import reading_arguments
from yarnling.cli.shared.connection import connect
from yarnling.cli.shared.output import print_indented, print_json, terminal
from yarnling.cluster.explanations import explained, waiting


def show(name: str, application: str | None, user: str, *, as_json: bool) -> None:
    """Print the explanation for one application, or for all that wait.

    Raises YarnException if the ResourceManager refuses the request.
    """
    with reading_arguments():
        app_id = None if application is None else ApplicationId.parse(application)
    found, nodes = asyncio.run(_load(name, app_id, user))
    if as_json:
        print_json(found if app_id is None else found[0])
        return
    console = terminal()
    if not found:
        console.print("No application is waiting for containers.")
    for explanation in found:
        for line in explained(explanation, nodes):
            print_indented(console, line)


async def _load(name: str, app_id: ApplicationId | None, user: str) -> tuple[list[Explanation], tuple[NodeReport, ...]]:
    _, client = connect(name, user)
    async with client:
        if app_id is not None:
            return [await client.explain(app_id, what_if=True)], await client.nodes()
        applications = sorted(await client.applications(), key=lambda app: app.application_id)
        return await waiting(client, applications), await client.nodes()
