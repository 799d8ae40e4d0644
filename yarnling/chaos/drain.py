"""The last phases of a run: everybody is brought back, all work ends, and what was held is free again."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from yarn.errors import YarnException
from yarn.states import FINAL_APPLICATION_STATES, NodeState
from yarnling.chaos.aftermath import busy_nodes, live_containers, work_files
from yarnling.chaos.history import Outcome, Submission
from yarnling.chaos.notes import FRESH_S, now_s
from yarnling.chaos.plan import Program
from yarnling.chaos.scene import LOOK_S, Scene
from yarnling.chaos.site import Site

ANSWER_S = 5.0
"""What a ResourceManager gets to say which nodes are away."""


async def heal(scene: Scene) -> None:
    """Undo what is left and wait until everybody is there again."""
    scene.tell("phase", "healing")
    site, most_s = scene.site, scene.plan.expect.heal
    try:
        async with asyncio.timeout(most_s):
            await site.heal()
            while not await _all_run(site):
                # One that was told to leave just before it was taken back ends only now.
                await site.bring_all_back()
                await asyncio.sleep(LOOK_S)
    except (YarnException, TimeoutError) as error:
        scene.history.unhealed.append(str(error) or f"not within {most_s:g} s")
        scene.history.unhealed += await _away(site)
    scene.history.healed_s = now_s()


async def drain(scene: Scene) -> None:
    """End the services, wait for all ends, and for all that was held to be free.

    Services run until the last fencing window is over: what ran twice would end with them, and not be seen.
    """
    await asyncio.sleep(max(0.0, _last_window_s(scene) - now_s()))
    scene.tell("phase", "draining")
    history, most_s = scene.history, scene.plan.expect.drain
    try:
        async with asyncio.timeout(most_s):
            await _end_work(scene)
            while held := await _held(scene.site):
                scene.tell("state", held[0])
                await asyncio.sleep(LOOK_S)
        history.drained_s = now_s()
    except TimeoutError:
        history.undrained += await _held(scene.site)
        history.undrained.append(f"not within {most_s:g} s")
    except YarnException as error:
        history.undrained.append(error.message)
    for submitted in history.submissions:
        history.outcomes[submitted.application_id] = await _outcome(scene, submitted)


async def _end_work(scene: Scene) -> None:
    """Kill what would run for ever, and wait until all is over that was accepted."""
    client = scene.site.cluster.client
    accepted = [one for one in scene.history.submissions if one.acknowledged_s is not None]
    for one in accepted:
        if one.program is Program.SERVICE:
            scene.history.killed_at_s[one.application_id] = now_s()
            await client.kill(one.application_id, "the run is over")
    for one in accepted:
        await client.wait(one.application_id)


def _last_window_s(scene: Scene) -> float:
    """When all that was given up while a fault hid its node has to have ended, and a sign of life more."""
    hidden = [one.healed_s for one in scene.history.injected if one.blow.kind.hides and not one.skipped]
    ends = [healed_s for healed_s in hidden if healed_s is not None]
    return max(ends, default=0.0) + scene.plan.expect.fence + FRESH_S


async def _outcome(scene: Scene, submitted: Submission) -> Outcome:
    """What the ResourceManager says in the end; nothing if it cannot be asked."""
    application_id = submitted.application_id
    with suppress(YarnException):
        report = await scene.site.cluster.client.report(application_id)
        over = report.state in FINAL_APPLICATION_STATES
        counted = submitted.program is Program.WORDCOUNT and over
        right = scene.workload.is_right(application_id) if counted else None
        return Outcome(report.state, report.final_status, report.current_attempt_id.attempt, report.diagnostics, right)
    return Outcome(None)


async def _all_run(site: Site) -> bool:
    running = await site.cluster.client.nodes(frozenset({NodeState.RUNNING}))
    return len(running) == len(site.cluster.nodes)


async def _away(site: Site) -> list[str]:
    """The nodes that are not RUNNING, if there is anybody to ask."""
    try:
        async with asyncio.timeout(ANSWER_S):
            nodes = await site.cluster.client.nodes()
    except (YarnException, TimeoutError):
        return ["the ResourceManager does not answer"]
    return [f"{node.node_id} is {node.state.name}" for node in nodes if node.state is not NodeState.RUNNING]


async def _held(site: Site) -> list[str]:
    """What is not free yet: on nodes as the ResourceManager says, and as their processes and files show."""
    return [
        *await busy_nodes(site.cluster.client),
        *await asyncio.to_thread(live_containers, site.cluster.directory.path),
        *work_files(site.cluster.nodes),
    ]
