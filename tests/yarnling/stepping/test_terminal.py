"""The terminal user interface, driven by Textual's pilot: what each key shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from yarnling.lessons.chapters import preemption
from yarnling.stepping.controls import Controls
from yarnling.stepping.sources import Scene

textual = pytest.importorskip("textual")

from textual.pilot import Pilot  # noqa: E402
from textual.widgets import Input, Static  # noqa: E402

from yarnling.stepping.terminal import StepApp  # noqa: E402


@asynccontextmanager
async def opened(width: int = 140, height: int = 45) -> AsyncIterator[tuple[Pilot[None], Controls]]:
    controls = Controls(Scene(preemption.LESSON))
    async with StepApp(controls).run_test(size=(width, height)) as pilot:
        yield pilot, controls
    controls.close()


def shown(pilot: Pilot[None], pane: str) -> str:
    return str(pilot.app.query_one(f"#{pane}", Static).render())


async def test_keys_move_through_the_run() -> None:
    async with opened() as (pilot, controls):
        assert "Nothing has happened yet" in shown(pilot, "step")
        assert "the ResourceManager is down" in shown(pilot, "queues")
        await pilot.press("n")
        assert "the ResourceManager starts" in shown(pilot, "step")
        await pilot.press("space", "h")
        assert "nodeHeartbeat from NM n1" in shown(pilot, "step")
        first = shown(pilot, "step")
        await pilot.press("n", "b")
        assert shown(pilot, "step") == first
        await pilot.press("2")
        assert "nodeHeartbeat from NM n2" in shown(pilot, "step")
        await pilot.press("9")
        assert "nodeHeartbeat from NM n2" in shown(pilot, "step")
        await pilot.press("c", "c", "C")
        assert controls.session.step is not None
        assert controls.session.step.is_change
        await pilot.press("home", "b")
        assert "this is the start of the run" in shown(pilot, "said")


@pytest.mark.slow
async def test_a_time_is_asked_for_and_a_wrong_one_is_refused() -> None:
    async with opened() as (pilot, controls):
        await pilot.press("g", "8", "enter")
        position = controls.session.position
        assert 7_000 < controls.session.at_ms <= 8_000
        assert "ann-c2" in shown(pilot, "nodes")
        await pilot.press("g", "x", "enter")
        assert "'x' is not a time in seconds" in shown(pilot, "said")
        await pilot.press("g", "9", "escape")
        assert controls.session.position == position
        assert not pilot.app.query_one("#command", Input).has_class("-asked")


@pytest.mark.slow
async def test_a_fork_is_a_run_beside_the_first() -> None:
    async with opened() as (pilot, controls):
        await pilot.press("g", "8", "enter", "k", "n", "2", "enter")
        assert "kill n2" in shown(pilot, "step")
        assert "process down" in shown(pilot, "nodes")
        assert "run 2 of 2: kill n2 (after step" in shown(pilot, "where")
        await pilot.press("right_square_bracket")
        assert "process down" not in shown(pilot, "nodes")
        assert "run 1 of 2" in shown(pilot, "where")
        await pilot.press("k", "n", "7", "enter")
        assert "there is no node n7" in shown(pilot, "said")
        assert len(controls.branches) == 2


@pytest.mark.slow
async def test_why_an_application_waits_and_the_fields_of_a_message() -> None:
    async with opened() as (pilot, _):
        await pilot.press("g", "1", "6", "enter", "d", "h")
        assert "waits because the cluster is full" in shown(pilot, "applications").replace("\n  ", "")
        assert "- container_id: c0001_" in shown(pilot, "step")
        assert "16384/16384/16384 MB" in shown(pilot, "queues")


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80, 140])
async def test_bars_fit_the_width(width: int) -> None:
    async with opened(width) as (pilot, _):
        await pilot.press("g", "1", "6", "enter")
        room = pilot.app.query_one("#right").size.width
        for pane in ("queues", "nodes"):
            assert max(map(len, shown(pilot, pane).split("\n")[1:])) <= room


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(60, 16), (80, 24), (140, 45)])
async def test_the_current_step_is_in_sight_at_every_size(width: int, height: int) -> None:
    async with opened(width, height) as (pilot, controls):
        for keys in (("g", "1", "6", "enter"), ("m",), ("d",), ("end",)):
            await pilot.press(*keys)
            await pilot.pause()
            trail = pilot.app.query_one("#trail", Static)
            lines = shown(pilot, "trail").split("\n")
            number = str(controls.session.position)
            current = next(row for row, line in enumerate(lines) if line.split()[:1] == [number])
            assert trail.region.y + current < pilot.app.query_one("#left").region.bottom
        assert ("needs 80 x 24" in shown(pilot, "where")) == (width < 80)


@pytest.mark.slow
async def test_the_list_of_moments_leads_to_each_of_them() -> None:
    async with opened() as (pilot, controls):
        await pilot.press("m")
        assert "submitApplication" in shown(pilot, "step")
        await pilot.press("m", "m", "m")
        assert "wants ann-c16 back" in shown(pilot, "step")
        position = controls.session.position
        await pilot.press("l", "down", "enter")
        assert "kills ann-c16" in shown(pilot, "step")
        await pilot.press("l", "up", "escape")
        await pilot.press("M")
        assert controls.session.position == position


@pytest.mark.slow
async def test_a_run_is_played_until_it_is_paused_or_over() -> None:
    async with opened() as (pilot, controls):
        app = pilot.app
        assert isinstance(app, StepApp)
        await pilot.press("p")
        assert "playing" in shown(pilot, "where")
        async with asyncio.timeout(60):
            while controls.session.position < 2:
                await pilot.pause(0.05)
        await pilot.press("p")
        assert "playing" not in shown(pilot, "where")
        await pilot.press("end", "p")
        async with asyncio.timeout(60):
            while app.is_playing:
                await pilot.pause(0.05)
        assert "this is the end of the run" in shown(pilot, "said")
