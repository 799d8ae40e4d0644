"""The first phase of a run: work and faults, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from msgspec.structs import replace

from yarn.errors import YarnException
from yarnling.chaos.faults import FAULTS
from yarnling.chaos.history import Injected, Role
from yarnling.chaos.notes import now_s
from yarnling.chaos.plan import Work
from yarnling.chaos.scene import LOOK_S, Scene, told
from yarnling.chaos.schedule import Blow

T = TypeVar("T")


async def strike(scene: Scene) -> None:
    """Until every fault has ended and every submission is acknowledged."""
    history = scene.history
    history.begun_s = now_s()
    scene.tell("phase", "working")
    most_s = scene.plan.lasts + scene.plan.expect.heal
    try:
        async with asyncio.timeout(most_s), asyncio.TaskGroup() as tasks:
            for work in scene.plan.work:
                tasks.create_task(_submit(scene, work))
            if scene.plan.awaits_work:
                await _until_work(scene)
            for blow in scene.blows:
                tasks.create_task(_blow(scene, blow))
    except TimeoutError:
        history.unhealed.append(f"{most_s:g} s after the beginning a fault or a submission is not over")


async def _submit(scene: Scene, work: Work) -> None:
    try:
        await scene.workload.run(work)
    except YarnException as error:
        scene.history.problem = f"{work.program.value} could not be submitted: {error.message}"


async def _until_work(scene: Scene) -> None:
    """From here on times count, once a container works: harm before that is harm to nothing."""
    while not scene.notes.alive(Role.CONTAINER, Role.TASK):  # noqa: ASYNC110  files set no event
        await asyncio.sleep(LOOK_S)
    scene.history.begun_s = now_s()


async def _blow(scene: Scene, blow: Blow) -> None:
    """Do it when it is time, and undo it when that is over."""
    history = scene.history
    fault = FAULTS[blow.kind.name](scene.site, blow)
    await asyncio.sleep(max(0.0, history.begun_s + blow.at_ms / 1000 - now_s()))
    start_s = now_s()
    index = len(history.injected)
    history.injected.append(Injected(blow, start_s))
    try:
        whom = await _done(fault.start())
    except YarnException as error:
        # Nobody was there to do it to, or has just gone: of no matter where that was to be expected.
        problem = "" if blow.optional else error.message
        history.injected[index] = Injected(blow, start_s, now_s(), problem=problem, skipped=blow.optional)
        scene.tell("problem", f"{blow}: {error.message}")
        return
    injected = Injected(blow, start_s, whom=whom)
    history.injected[index] = injected
    scene.tell("fault", f"{blow.kind.name} {whom}")
    if blow.until_ms is None:
        return
    # As long as planned, from when it was done: on a busy machine that takes a while.
    await asyncio.sleep((blow.until_ms - blow.at_ms) / 1000)
    try:
        await _done(fault.heal())
    except YarnException as error:
        history.unhealed.append(f"{blow.kind.name} {whom}: {error.message}")
    history.injected[index] = replace(injected, healed_s=now_s())
    scene.tell("healed", f"{blow.kind.name} {whom}")


async def _done(work: Coroutine[Any, Any, T]) -> T:
    """The result of a fault's step. Raises YarnException for what the cluster makes of it, or one that has gone."""
    try:
        return await work
    except* (YarnException, ProcessLookupError, TimeoutError) as errors:
        problem = told(errors)
    # Not from within `except*`: Python 3.11.2 would make a group of it.
    raise YarnException(problem)
