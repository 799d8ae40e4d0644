"""Many more submissions than a machine could run: users of a cluster without nodes, who note each answer on disk.

What is here for is the word of the ResourceManager: an application waits in its queue, is moved, gets another
priority, is killed, some hundred times between two kills of the ResourceManager.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.cluster.rm_soak.killer import Killer, Moments
from tests.cluster.rm_soak.load import PRIORITY_MAX, QUEUES, RETRY, surely
from wire.cluster_secret import read_client_token
from wire.protocols.client import ApplicationClientProtocol
from yarn.applications import ApplicationFilter, ApplicationReport, ApplicationSubmissionContext
from yarn.errors import CallOutcomeUnknown, YarnException
from yarn.ids import ApplicationId
from yarn.protocols.client import KillApplicationRequest, MoveApplicationRequest, UpdatePriorityRequest
from yarn.resource import Resource
from yarn.settings import resourcemanager
from yarn.states import YarnApplicationState
from yarnling.cluster.local_cluster import LocalCluster

USERS_AT_ONCE = 8
PAUSE_S = 0.01


@dataclass
class Word:
    """The last answers to a user about an application; `unsure` has the changes whose calls were not answered."""

    application_id: ApplicationId
    user: str
    queue: str
    priority: int
    is_killed: bool = False
    unsure: frozenset[str] = frozenset()

    def wrong(self, report: ApplicationReport | None) -> Iterator[str]:
        """The differences between this record and the ResourceManager's report."""
        if report is None:
            yield f"{self.application_id}: lost"
            return
        state = YarnApplicationState.KILLED if self.is_killed else YarnApplicationState.ACCEPTED
        acknowledged = {"user": self.user, "queue": self.queue, "priority": self.priority, "state": state}
        for name, value in acknowledged.items():
            if name not in self.unsure and getattr(report, name) != value:
                yield f"{self.application_id}: {name} is {getattr(report, name)}, was {value}"


class Storm(Moments):
    """Users who submit and change as fast as they are answered, until the event `over`."""

    def __init__(self, cluster: LocalCluster) -> None:
        super().__init__()
        self._address = cluster.addresses[resourcemanager.ADDRESS.key]
        self._token = read_client_token(cluster.configuration)
        self.words: list[Word] = []

    async def user(self, name: str, draw: random.Random) -> None:
        async with ApplicationClientProtocol(self._address, user=name, token=self._token, retry=RETRY) as rm:
            while not self.over.is_set():
                word = await self._submit(rm, name, draw)
                if draw.random() < 0.5:
                    await self._change(rm, word, draw)
                await asyncio.sleep(PAUSE_S * draw.random())

    async def check(self) -> list[str]:
        """The differences between the ResourceManager's reports and its earlier answers."""
        async with ApplicationClientProtocol(self._address, token=self._token, retry=RETRY) as rm:
            reports = {report.application_id: report for report in await rm.get_applications(ApplicationFilter())}
        return [text for word in self.words for text in word.wrong(reports.get(word.application_id))]

    async def _submit(self, rm: ApplicationClientProtocol, name: str, draw: random.Random) -> Word:
        new = await surely(rm.get_new_application)
        word = Word(new.application_id, name, draw.choice(QUEUES), draw.randint(0, PRIORITY_MAX))
        context = ApplicationSubmissionContext(
            word.application_id, resource=Resource(128, 1), queue=word.queue, priority=word.priority
        )
        word.queue = f"root.{word.queue}"
        await self.notify(self.submitting)
        await surely(lambda: rm.submit_application(context))
        self.words.append(word)
        await self.notify(self.acknowledged)
        return word

    async def _change(self, rm: ApplicationClientProtocol, word: Word, draw: random.Random) -> None:
        app, kind = word.application_id, draw.choice(("priority", "queue", "state"))
        word.unsure |= {kind}
        try:
            if kind == "priority":
                word.priority = await rm.update_application_priority(
                    UpdatePriorityRequest(app, draw.randint(0, PRIORITY_MAX))
                )
            elif kind == "queue":
                target = draw.choice(QUEUES)
                await rm.move_application_across_queues(MoveApplicationRequest(app, target))
                word.queue = f"root.{target}"
            else:
                request = KillApplicationRequest(app)
                while not (await surely(lambda: rm.force_kill_application(request))).is_kill_completed:  # noqa: ASYNC110
                    await asyncio.sleep(PAUSE_S)
                word.is_killed = True
        except CallOutcomeUnknown:
            return
        except YarnException:
            # The application is not accepted yet.
            pass
        word.unsure -= {kind}


async def storm(cluster: LocalCluster, killer: Killer, draw: random.Random) -> list[str]:
    """Wait until all kills are done; returns what contradicts the answers."""
    assert isinstance(killer.load, Storm)
    async with asyncio.TaskGroup() as tasks:
        for number in range(USERS_AT_ONCE):
            tasks.create_task(killer.load.user(f"user{number}", random.Random(draw.random())))
        await killer.run()
        killer.load.over.set()
    return await killer.load.check()
