"""HTML of clusters, jobs, applications and explanations, as notebooks show them.

The words and tables are those of the command line, the HTML that of the reports (yarnling.report.page).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator

from yarn.applications import ApplicationReport
from yarn.errors import YarnException
from yarn.protocols.inspection import Explanation
from yarn.states import FINAL_APPLICATION_STATES, FinalApplicationStatus
from yarnling.cluster.client import Client
from yarnling.cluster.explanations import request_text, waiting
from yarnling.cluster.nodes import Node
from yarnling.cluster.snapshot import ANSWER_S, application_table, node_table, queue_table
from yarnling.report.listing import Listing
from yarnling.report.page import Fragment, Table, html_of_fragment

OUTPUT_CHARS_MAX = 200
"""The part of a container's output that is shown: its end."""


def register_records() -> None:
    """Register in IPython how records of `yarn` are shown, which is pure and has no HTML."""
    shell = sys.modules["IPython"].get_ipython()
    if shell is not None:
        html = shell.display_formatter.formatters["text/html"]
        html.for_type(ApplicationReport, application_html)
        html.for_type(Explanation, lambda explanation: explanations_html([explanation]))


async def cluster_html(client: Client) -> str | None:
    """Nodes, queues and applications, and why applications wait; None if the ResourceManager does not answer."""
    try:
        async with asyncio.timeout(ANSWER_S):
            nodes = sorted(await client.nodes(), key=lambda node: node.node_id.reading_order)
            root = await client.queue("root")
            applications = sorted(await client.applications(), key=lambda app: app.application_id)
            found = await waiting(client, applications)
    except (TimeoutError, YarnException):
        return None
    tables = [_waiting_table("Waiting", found)] if found else []
    tables += [_table("Nodes", node_table(nodes)), _table("Queues", queue_table(root))]
    tables += [_table("Applications", application_table(tuple(applications)))] if applications else []
    live = sum(app.state not in FINAL_APPLICATION_STATES for app in applications)
    counts = (_count(len(nodes), "node"), _count(live, "live application"), f"{len(found)} waiting for containers")
    return html_of_fragment(Fragment(f"Cluster of {', '.join(counts)}", tables=tuple(tables)))


def process_html(nodes: Iterable[Node], *, rm_runs: bool) -> str:
    """The processes of a cluster, without a call to its ResourceManager."""
    listing = Listing("Node", "Name", "Process")
    for node in nodes:
        listing.add_row(str(node.id), node.name, "running" if node.alive else "ended")
    state = "runs" if rm_runs else "has ended"
    fragment = Fragment(f"Cluster whose ResourceManager {state}", tables=(_table("Nodes", listing),))
    return html_of_fragment(fragment)


def job_html(report: ApplicationReport, containers: Iterable[tuple[str, int | None, str]]) -> str:
    """The outcome of a job; `containers`: (id, exit status, output) of each, of which the end is shown."""
    rows = [
        (container_id, "none" if status is None else str(status), output.strip()[-OUTPUT_CHARS_MAX:])
        for container_id, status, output in containers
    ]
    return html_of_fragment(
        _application_fragment(report, Table("", ("Container", "Exit status", "Output"), tuple(rows)))
    )


def application_html(report: ApplicationReport) -> str:
    """The state of an application, and why it failed."""
    return html_of_fragment(_application_fragment(report, _table("", application_table((report,)))))


def explanations_html(found: Iterable[Explanation]) -> str:
    """Show each pending request with the reason why it waits, and the changes that would help, if they were tried."""
    explanations = tuple(found)
    headline = "Why applications wait" if explanations else "No application is waiting for containers."
    tables = (_waiting_table("", explanations),) if explanations else ()
    return html_of_fragment(Fragment(headline, tables=tables))


def _application_fragment(report: ApplicationReport, table: Table) -> Fragment:
    outcome = report.state if report.final_status is FinalApplicationStatus.UNDEFINED else report.final_status
    succeeded = report.final_status in (FinalApplicationStatus.SUCCEEDED, FinalApplicationStatus.UNDEFINED)
    diagnostics = () if succeeded else tuple(report.diagnostics.strip().splitlines())
    return Fragment(f"{report.application_id} {outcome.name}", diagnostics, (table,))


def _waiting_table(title: str, found: Iterable[Explanation]) -> Table:
    columns = ("Application", "Queue", "Request", "Reason", "What would help")
    rows = [(str(each.application_id), each.queue, *reason) for each in found for reason in _reasons(each)]
    shown = len(columns) if any(row[-1] for row in rows) else len(columns) - 1
    return Table(title, columns[:shown], tuple(row[:shown] for row in rows))


def _reasons(found: Explanation) -> Iterator[tuple[str, str, str]]:
    """(request, reason, what would help) of each pending request; of an application without one, why."""
    requests: dict[tuple[int, int], list[str]] = {}
    for ask in found.asks:
        key = ask.priority, ask.allocation_request_id
        requests.setdefault(key, []).append(request_text(ask, found.counted_types))
    for verdict in found.verdicts:
        texts = requests.pop((verdict.priority, verdict.allocation_request_id), [])
        yield "; ".join(texts), verdict.sentence, "; ".join(verdict.changes)
    for texts in requests.values():
        yield "; ".join(texts), "", ""
    if not found.asks and not found.verdicts:
        yield "", "no pending requests", ""


def _table(title: str, listing: Listing) -> Table:
    return Table(title, listing.columns, tuple(tuple(cell.plain for cell in row) for row in listing.rows))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
