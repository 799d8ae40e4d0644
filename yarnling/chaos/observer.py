"""Looks at the cluster ten times a second while a run lasts, and notes what has changed since the last look."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from yarn.applications import ApplicationReport
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.nodes import NodeReport
from yarn.settings import resourcemanager
from yarn.states import FINAL_APPLICATION_STATES, NodeState
from yarnling.chaos.history import Change, History
from yarnling.chaos.notes import now_s
from yarnling.chaos.scene import LOOK_S, Tell
from yarnling.chaos.site import Site
from yarnling.cluster.client import Client

ANSWER_S = 1.0
"""A ResourceManager that does not answer for so long is noted as silent."""
RM = "rm"
SILENT, ANSWERS = "SILENT", "ANSWERS"


class Observer:
    """Fills `history.changes`. It calls the ResourceManager straight, whatever is done to the work's ways."""

    def __init__(
        self,
        site: Site,
        addresses: Mapping[str, str],
        conf: Configuration,
        history: History,
        tell: Tell,
    ) -> None:
        # A look that fails is a finding: it is not tried again.
        impatient = conf.overridden({resourcemanager.CONNECT_MAX_WAIT.key: "0"}, "chaos")
        self._client = Client(addresses, conf=impatient)
        self._site = site
        self._history = history
        self._tell = tell
        self._seen: dict[str, Change] = {}

    async def run(self) -> None:
        """Look for ever."""
        try:
            while True:
                await self.look()
                slept_s = now_s()
                await asyncio.sleep(LOOK_S)
                self._history.lag_s = max(self._history.lag_s, now_s() - slept_s - LOOK_S)
        finally:
            await self._client.close()

    async def look(self) -> None:
        self._site.note_ends()
        try:
            async with asyncio.timeout(ANSWER_S):
                nodes, applications = await self._client.nodes(), await self._client.applications()
        except (YarnException, TimeoutError):
            self._note(RM, SILENT)
            self._tell("state", "the ResourceManager does not answer")
            return
        self._note(RM, ANSWERS)
        for node in nodes:
            self._note_node(node, nodes)
        for report in applications:
            self._note_application(report)
        over = sum(1 for report in applications if report.state in FINAL_APPLICATION_STATES)
        running = sum(1 for node in nodes if node.state is NodeState.RUNNING)
        self._tell("state", f"{over} of {len(applications)} applications are over, {running} nodes are RUNNING")

    def _note_node(self, report: NodeReport, all_reports: tuple[NodeReport, ...]) -> None:
        """A node that came back under another port has two reports; what runs tells."""
        same_host = [other for other in all_reports if other.node_id.host == report.node_id.host]
        if len(same_host) > 1 and report.node_id not in self._ids():
            return
        name = next((node.name for node in self._site.cluster.nodes if node.place.host == report.node_id.host), "")
        self._note(name, report.state.name)

    def _note_application(self, report: ApplicationReport) -> None:
        self._note(str(report.application_id), report.state.name, report.current_attempt_id.attempt)

    def _ids(self) -> set[object]:
        return {node.id for node in self._site.cluster.nodes}

    def _note(self, subject: str, state: str, attempt: int = 0) -> None:
        before = self._seen.get(subject)
        if before is None or (before.state, before.attempt) != (state, attempt):
            self._seen[subject] = change = Change(now_s(), subject, state, attempt)
            self._history.changes.append(change)
