"""Users of a cluster whose ResourceManager is killed again and again: their submissions, and the answers they got."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from tests.cluster.applications import shell
from tests.cluster.rm_soak.killer import Moments
from wire.cluster_secret import read_client_token
from wire.protocols.client import ApplicationClientProtocol
from wire.retry import RetryPolicy
from yarn.applications import ApplicationReport, ApplicationSubmissionContext
from yarn.errors import CallOutcomeUnknown, YarnException
from yarn.ids import ApplicationId
from yarn.protocols.client import KillApplicationRequest, MoveApplicationRequest, UpdatePriorityRequest
from yarn.settings import resourcemanager
from yarn.states import FINAL_APPLICATION_STATES
from yarnling.cluster.local_cluster import LocalCluster

T = TypeVar("T")

QUEUES = ("a", "b")
PRIORITY_MAX = 9
CONTAINERS_MAX = 4
WORK_S_MAX = 2.0
OPEN_MAX = 3
"""The number of unfinished applications of one user."""
PAUSE_S_MAX = 0.8
LOOK_S = 0.1
RETRY = RetryPolicy(max_wait_ms=60_000, interval_ms=40)
CHANGES = ("none", "none", "none", "priority", "move", "kill", "crash")
"""The change of an application after its submission; `crash`: its AM is killed."""


@dataclass
class Submitted:
    """An application whose submission was acknowledged, the answers to its user since, and its containers' notes.

    `final` is its report once it was over. `unsure` has the changes whose calls were not answered.
    """

    application_id: ApplicationId
    user: str
    noted: Path
    containers: int
    queue: str
    priority: int
    change: str = "none"
    killed: bool = False
    crashes: int = 0
    unsure: set[str] = field(default_factory=set)
    final: ApplicationReport | None = None


async def surely(call: Callable[[], Awaitable[T]]) -> T:
    """The result of a call, which is repeated until it is answered."""
    while True:
        try:
            return await call()
        except CallOutcomeUnknown:
            await asyncio.sleep(LOOK_S / 2)


class Load(Moments):
    """The work of some users until the event `over`."""

    def __init__(self, cluster: LocalCluster, directory: Path) -> None:
        super().__init__()
        self._cluster = cluster
        self._directory = directory
        self._address = cluster.addresses[resourcemanager.ADDRESS.key]
        self._token = read_client_token(cluster.configuration)
        self.submitted: list[Submitted] = []
        self.lost: list[str] = []
        """Answers to a user that contradict earlier ones."""

    async def user(self, name: str, draw: random.Random) -> None:
        """A user: submits, changes, checks, and finally waits for unfinished applications."""
        open_: list[Submitted] = []
        async with ApplicationClientProtocol(self._address, user=name, token=self._token, retry=RETRY) as rm:
            while not self.over.is_set():
                one = await self._submit(rm, name, draw)
                open_.append(one)
                await self._change(rm, one, draw)
                await asyncio.sleep(draw.uniform(0.1, PAUSE_S_MAX))
                open_ = await self._look(rm, open_)
                while len(open_) >= OPEN_MAX and not self.over.is_set():
                    await asyncio.sleep(LOOK_S)
                    open_ = await self._look(rm, open_)
            while open_:
                await asyncio.sleep(LOOK_S)
                open_ = await self._look(rm, open_)

    async def _submit(self, rm: ApplicationClientProtocol, name: str, draw: random.Random) -> Submitted:
        new = await surely(rm.get_new_application)
        noted = self._directory / str(new.application_id)
        count = draw.randint(1, CONTAINERS_MAX)
        queue, priority = draw.choice(QUEUES), draw.randint(0, PRIORITY_MAX)
        note = f"echo $CONTAINER_ID $YARN_SHELL_ID $EPOCHREALTIME >> {noted}"
        work = shell(f"{note}; sleep {draw.uniform(0, WORK_S_MAX):.2f}; {note}.over; true", count)
        context = replace(work.build(new.application_id, self._directory / "staging"), queue=queue, priority=priority)
        await self.notify(self.submitting)
        await surely(lambda: rm.submit_application(context))
        one = Submitted(new.application_id, name, noted, count, f"root.{queue}", priority)
        self.submitted.append(one)
        await self.notify(self.acknowledged)
        if draw.random() < 0.1:
            await self._submit_again(rm, context)
        return one

    async def _submit_again(self, rm: ApplicationClientProtocol, context: ApplicationSubmissionContext) -> None:
        """Submit the same id again, which changes nothing."""
        await surely(lambda: rm.submit_application(context))

    async def _change(self, rm: ApplicationClientProtocol, one: Submitted, draw: random.Random) -> None:
        one.change = draw.choice(CHANGES)
        await asyncio.sleep(draw.uniform(0, 0.5))
        app = one.application_id
        match one.change:
            case "priority":
                wanted = draw.randint(0, PRIORITY_MAX)
                await self._maybe(
                    one, rm.update_application_priority(UpdatePriorityRequest(app, wanted)), priority=wanted
                )
            case "move":
                target = draw.choice(QUEUES)
                await self._maybe(
                    one, rm.move_application_across_queues(MoveApplicationRequest(app, target)), queue=f"root.{target}"
                )
            case "kill":
                one.killed = (
                    await surely(lambda: rm.force_kill_application(KillApplicationRequest(app)))
                ).is_kill_completed
                while not one.killed:
                    await asyncio.sleep(LOOK_S)
                    one.killed = (
                        await surely(lambda: rm.force_kill_application(KillApplicationRequest(app)))
                    ).is_kill_completed
            case "crash":
                await self._crash(one)

    async def _maybe(self, one: Submitted, call: Awaitable[object], **becomes: object) -> None:
        """Make a change, which is refused if the application is over or not accepted yet."""
        (name, value), *_ = becomes.items()
        try:
            answer = await call
        except CallOutcomeUnknown:
            one.unsure.add(name)
        except YarnException:
            return
        else:
            setattr(one, name, answer if isinstance(answer, int) else value)

    async def _crash(self, one: Submitted) -> None:
        """Kill the application's AM, if it gets one before it ends."""
        with contextlib.suppress(YarnException, TimeoutError):
            async with asyncio.timeout(3.0):
                await self._cluster.kill_master(one.application_id)
                one.crashes += 1

    async def _look(self, rm: ApplicationClientProtocol, those: list[Submitted]) -> list[Submitted]:
        """The applications that are not over yet."""
        for one in those:
            try:
                report = await rm.get_application_report(one.application_id)
            except YarnException as error:
                self.lost.append(f"{one.application_id}, acknowledged to {one.user}: {error}")
                one.final = None
                continue
            if report.state in FINAL_APPLICATION_STATES:
                one.final = report
        lost = {text.split(",")[0] for text in self.lost}
        return [one for one in those if one.final is None and str(one.application_id) not in lost]
