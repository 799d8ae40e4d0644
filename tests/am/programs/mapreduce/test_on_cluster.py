"""Map-reduce on real processes: the counts are right even if nodes and AMs are killed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec import structs

from am.client.submission import ApplicationOptions
from am.programs.mapreduce import client as mapreduce
from am.programs.mapreduce.client import MapReduceSubmission, find_inputs, word_count
from tests.am.programs.on_cluster import DEADLINE_S, Cluster, cluster, counts_in, plain_counts
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus, NodeState

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

MAPS = 8
OPTIONS = ApplicationOptions(name="words", am_resource=Resource(256, 1))


@pytest.fixture
def books(tmp_path: Path) -> list[Path]:
    """Files of random words that fill MAPS splits."""
    rng = random.Random(7)
    directory = tmp_path / "books"
    directory.mkdir()
    paths = [directory / f"book-{number}.txt" for number in range(5)]
    for path in paths:
        lines = (" ".join(f"w{rng.randrange(500)}" for _ in range(rng.randrange(12))) for _ in range(400))
        path.write_text("\n".join(lines))
    return paths


def counting(books: list[Path], output: Path, *, pause: str = "", reduces: int = 2) -> MapReduceSubmission:
    """A word count with MAPS maps, each of which may first sleep."""
    inputs = find_inputs(map(str, books))
    split_bytes = -(-sum(inputs.values()) // MAPS)
    submission = word_count(inputs, output, options=OPTIONS, reduces=reduces, split_bytes=split_bytes)
    return structs.replace(submission, map_command=f"{pause}{submission.map_command}")


class Gate:
    """Blocks all maps but the first three until it is opened, so that faults hit a job that is half done."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.pause = f'[ "$mapreduce_task_partition" -lt 3 ] || while [ ! -e {path} ]; do sleep 0.05; done; '

    def open(self) -> None:
        self._path.touch()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


async def until_lost(it: Cluster, count: int = 1) -> None:
    """Wait until the RM has lost this many nodes."""
    async with asyncio.timeout(DEADLINE_S):
        while len(await it.client.nodes(frozenset({NodeState.LOST}))) < count:  # noqa: ASYNC110  the RM must be asked
            await asyncio.sleep(0.02)


def three_maps_done(status: dict[str, Any]) -> bool:
    return bool(status["maps"]["SUCCEEDED"] >= 3)


@pytest_asyncio.fixture
async def four_nodes(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path, nodes=4) as it:
        yield it


async def test_the_counts_are_those_of_a_plain_count(four_nodes: Cluster, books: list[Path], tmp_path: Path) -> None:
    application_id = await four_nodes.submit(counting(books, tmp_path / "out"))
    report = await four_nodes.end_of(application_id)
    assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
    assert counts_in(tmp_path / "out") == plain_counts(books)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["_SUCCESS", "part-r-00000", "part-r-00001"]
    status = four_nodes.job_status(application_id)
    assert (status["state"], status["maps"]["SUCCEEDED"], status["reduces"]["SUCCEEDED"]) == ("SUCCEEDED", MAPS, 2)


@pytest.mark.case("I2")
async def test_the_counts_are_right_after_a_node_was_killed(
    four_nodes: Cluster, books: list[Path], tmp_path: Path, gate: Gate
) -> None:
    """An NM with map output gets kill -9. The lost output is made again, and the result is right."""
    application_id = await four_nodes.submit(counting(books, tmp_path / "out", pause=gate.pause))
    await four_nodes.until_job(application_id, three_maps_done)
    spared = four_nodes.local.node(await four_nodes.node_of_am(application_id)).id
    succeeded = [a for a in four_nodes.job_status(application_id)["attempts"] if a["state"] == "SUCCEEDED"]
    nodes = {a["node"] for a in succeeded} - {str(spared)}
    victim = next(n for n, node in enumerate(four_nodes.local.nodes, start=1) if str(node.id) in nodes)
    await four_nodes.local.kill_node(victim)
    await until_lost(four_nodes)
    gate.open()
    report = await four_nodes.end_of(application_id)
    assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
    assert report.current_attempt_id.attempt == 1
    assert counts_in(tmp_path / "out") == plain_counts(books)
    status = four_nodes.job_status(application_id)
    lost = [a for a in status["attempts"] if a["node"] == str(four_nodes.local.node(victim).id)]
    assert {a["state"] for a in lost} == {"KILLED"}
    assert status["lost_outputs"] == sum(a["output_lost"] for a in lost) >= 1


@pytest.mark.case("I2")
@pytest.mark.case("I3")
async def test_an_am_that_outlives_its_lost_node_does_no_harm(
    four_nodes: Cluster, books: list[Path], tmp_path: Path, gate: Gate
) -> None:
    """Only the NM is killed. Its AM and tasks run as orphans beside their successors, until they notice."""
    application_id = await four_nodes.submit(counting(books, tmp_path / "out", pause=gate.pause))
    await four_nodes.until_job(application_id, three_maps_done)
    await four_nodes.local.kill_node(await four_nodes.node_of_am(application_id), containers=False)
    await until_lost(four_nodes)
    gate.open()
    report = await four_nodes.end_of(application_id)
    assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
    assert report.current_attempt_id.attempt == 2
    assert counts_in(tmp_path / "out") == plain_counts(books)


@pytest.mark.case("I2")
async def test_half_of_the_nodes_killed_at_once(
    four_nodes: Cluster, books: list[Path], tmp_path: Path, gate: Gate
) -> None:
    """Two of four NMs are killed, one of them with the AM."""
    application_id = await four_nodes.submit(counting(books, tmp_path / "out", pause=gate.pause))
    await four_nodes.until_job(application_id, three_maps_done)
    first = await four_nodes.node_of_am(application_id)
    for victim in (first, first % 4 + 1):
        await four_nodes.local.kill_node(victim)
    gate.open()
    report = await four_nodes.end_of(application_id)
    assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
    assert counts_in(tmp_path / "out") == plain_counts(books)


@pytest.mark.case("I3")
async def test_after_a_killed_am_only_unfinished_tasks_are_repeated(
    four_nodes: Cluster, books: list[Path], tmp_path: Path, gate: Gate
) -> None:
    application_id = await four_nodes.submit(counting(books, tmp_path / "out", pause=gate.pause))
    await four_nodes.until_job(application_id, three_maps_done)
    await four_nodes.local.kill_master(application_id)
    gate.open()
    report = await four_nodes.end_of(application_id)
    assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
    assert report.current_attempt_id.attempt == 2
    assert counts_in(tmp_path / "out") == plain_counts(books)
    status = four_nodes.job_status(application_id)
    assert status["recovered_tasks"] >= 3
    assert any(a["why"] == "its ApplicationMaster ended" for a in status["attempts"])


async def test_a_task_that_fails_at_first_is_tried_again(
    four_nodes: Cluster, books: list[Path], tmp_path: Path
) -> None:
    """The first attempt of each map, whose id ends with `_0`, fails."""
    fails_first = 'case "$mapreduce_task_attempt_id" in *_m_*_0) exit 7;; esac; '
    application_id = await four_nodes.submit(counting(books, tmp_path / "out", pause=fails_first))
    report = await four_nodes.end_of(application_id)
    assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
    assert counts_in(tmp_path / "out") == plain_counts(books)
    failed = [a for a in four_nodes.job_status(application_id)["attempts"] if a["state"] == "FAILED"]
    assert len(failed) == MAPS
    assert all("subprocess failed with code 7" in a["why"] for a in failed)


async def test_a_task_that_always_fails_fails_the_job_and_leaves_no_output(
    four_nodes: Cluster, books: list[Path], tmp_path: Path
) -> None:
    report = await four_nodes.run(counting(books, tmp_path / "out", pause="exit 9; "))
    assert report.final_status is FinalApplicationStatus.FAILED
    assert "Task failed task_" in report.diagnostics
    assert "subprocess failed with code 9" in report.diagnostics
    assert not (tmp_path / "out").exists()


async def test_a_job_without_reduces_keeps_the_lines_of_its_maps(four_nodes: Cluster, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("".join(f"line {number}\n" for number in range(1000)))
    files = ("-input", str(text), "-output", str(tmp_path / "out"))
    submission = mapreduce.parse([*files, "-mapper", "tac", "-numReduceTasks", "0"])
    report = await four_nodes.run(structs.replace(submission, split_bytes=2000))
    assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
    parts = sorted((tmp_path / "out").glob("part-m-*"))
    assert len(parts) == -(-text.stat().st_size // 2000)
    lines = [line for part in parts for line in reversed(part.read_text().splitlines(keepends=True))]
    assert "".join(lines) == text.read_text()
