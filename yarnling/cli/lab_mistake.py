"""`yarnling lab mistake`: a cluster with a mistake in its configuration, to be found, and the grades of answers."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

from am.client.submission import ApplicationOptions
from am.programs.distributed_shell.client import DistributedShell
from am.programs.distributed_shell.core import Width
from yarn.errors import YarnException
from yarn.nodes import NodeLabel
from yarn.protocols.admin import ReplaceLabelsRequest
from yarn.resource import Resource
from yarn.settings.scheduler import ROOT
from yarnling.cli.options.cluster import UpOptions
from yarnling.cli.shared.arguments import ArgumentFaults, check_output_directory
from yarnling.cli.shared.connection import connect
from yarnling.cli.shared.output import print_json, terminal
from yarnling.cli.up import run_detached
from yarnling.cluster.state import name_option
from yarnling.labs.mistake.answer import POINTS, POINTS_MAX, LabGrade, grade, read_answer, run_lab
from yarnling.labs.mistake.cluster import AM_MB, GPU, LabCluster, LabJob
from yarnling.labs.mistake.files import ANSWER, CONF, README, TASKS, command_of, write_case
from yarnling.labs.mistake.planted import LabCase, lab_case
from yarnling.report.escapes import in_line
from yarnling.report.listing import Listing

ALL_RIGHT, NOT_ALL = 0, 1


def write_cases(seeds: range, output: Path | None, *, as_json: bool) -> None:
    """Write the cluster of each seed; of several, each into a directory of its number below `output`."""
    check_output_directory(output)
    written = []
    for seed in seeds:
        directory = Path(f"mistake-{seed}") if output is None else output / str(seed) if len(seeds) > 1 else output
        written.append(_write(lab_case(seed), directory))
    if as_json:
        print_json([{"seed": seed, "directory": str(path)} for seed, path in zip(seeds, written, strict=True)])
        return
    console = terminal()
    for path in written:
        answer = shlex.quote(str(path / ANSWER))
        console.print(
            f"Written: {path}. Read {path / README}, then judge your answer: yarnling lab mistake {answer}",
            soft_wrap=True,
        )


def _write(case: LabCase, directory: Path) -> Path:
    _, complaints = run_lab(case.cluster, case.settings)
    try:
        write_case(case, complaints, directory)
    except OSError as error:
        raise YarnException(f"{directory}: the cluster cannot be written: {error.strerror}") from None
    return directory


def grade_answers(paths: Sequence[Path], *, as_json: bool) -> int:
    """Grade answers. Prints one in full, and a table of several. The exit status: 0 if all points were given."""
    faults = ArgumentFaults()
    answers = [answer for path in paths if (answer := faults.of(partial(read_answer, path))) is not None]
    faults.refuse()
    grades = [grade(answer) for answer in answers]
    if as_json:
        print_json([_plain(each) for each in grades])
    elif len(grades) == 1:
        _print(grades[0], terminal())
    else:
        _print_all(grades, terminal())
    return ALL_RIGHT if all(each.points == POINTS_MAX for each in grades) else NOT_ALL


def _print(graded: LabGrade, console: Console) -> None:
    console.print(Text(in_line(graded.key), "bold"), soft_wrap=True)
    for part in graded.parts:
        line = f"  {part.name:<8}  {part.points:>2} of {POINTS[part.name]:>2}  {in_line(part.remark)}"
        console.print(Text(line), soft_wrap=not console.is_terminal)
    if graded.hint:
        console.print(Text(f"Hint: {graded.hint}"), soft_wrap=not console.is_terminal)
    style = "green" if graded.points == POINTS_MAX else "red"
    console.print(Text(f"{graded.points} of {POINTS_MAX} points", f"bold {style}"))


def _print_all(grades: Sequence[LabGrade], console: Console) -> None:
    table = Listing("Name", "Cluster", *(f"{name} ({most})" for name, most in POINTS.items()), "Points", "Key")
    for each in grades:
        table.add_row(
            each.name or "-", str(each.seed), *(str(part.points) for part in each.parts), str(each.points), each.key
        )
    console.print(table, crop=False)


def _plain(graded: LabGrade) -> dict[str, object]:
    return {
        "lab": "mistake",
        "name": graded.name,
        "seed": graded.seed,
        "key": graded.key,
        "points": graded.points,
        "of": POINTS_MAX,
        "parts": [
            {"part": part.name, "points": part.points, "of": POINTS[part.name], "remark": part.remark}
            for part in graded.parts
        ],
        "hint": graded.hint,
    }


def bring_up(seed: int, output: Path | None, name: str) -> None:
    """Start the faulty cluster as processes, and submit the jobs at their times, as their users."""
    directory = Path(f"mistake-{seed}") if output is None else output
    check_output_directory(directory)
    case = lab_case(seed)
    _write(case, directory)
    nodes = len(case.cluster.hosts)
    table = str((directory / TASKS).absolute())
    run_detached(UpOptions(nodes=nodes, conf=directory / CONF, emulate=table, name=name, detach=True))
    console = terminal()
    console.print(f"What people say, and what should be: {directory / README}", soft_wrap=True)
    try:
        asyncio.run(_submit_all(case.cluster, name, console))
    except KeyboardInterrupt:
        console.print("No more applications are submitted.")
    console.print(f"The cluster stays up. Stop it: yarnling down{name_option(name)}")


async def _submit_all(cluster: LabCluster, name: str, console: Console) -> None:
    await _label(name)
    console.print("Applications are submitted for a quarter of an hour, as on the page; Ctrl-C ends that.")
    began_s = asyncio.get_running_loop().time()
    for job in cluster.jobs:
        await asyncio.sleep(max(0.0, began_s + job.submit_s - asyncio.get_running_loop().time()))
        console.print(in_line(f"{job.submit_s:>4g} s  {await _submit(job, name)}"), soft_wrap=True)


async def _label(name: str) -> None:
    """Put the last node into the partition of the GPU."""
    _, client = connect(name)
    async with client:
        node_ids = sorted(node.node_id for node in await client.nodes())
        await client.admin.add_to_cluster_node_labels((NodeLabel(GPU),))
        await client.admin.replace_labels_on_nodes(ReplaceLabelsRequest(((node_ids[-1], (GPU,)),)))


async def _submit(job: LabJob, name: str) -> str:
    """Submit a job, and say what became of it."""
    what = f"{job.user} submits {job.name} to {ROOT}.{job.queue}"
    _, client = connect(name, job.user)
    async with client:
        try:
            report = await client.start(submission_of(job))
        except YarnException as error:
            return f"{what}: {error.message.splitlines()[0]}"
    return f"{what}: {report.application_id} in {report.queue}"


def submission_of(job: LabJob) -> DistributedShell:
    """The job as a distributed shell, of which each container runs the command of a task."""
    return DistributedShell(
        command_of(job.seconds),
        Width(job.containers, Resource(job.memory_mb, job.vcores)),
        ApplicationOptions(job.name, queue=f"{ROOT}.{job.queue}", am_resource=Resource(AM_MB, 1)),
    )
