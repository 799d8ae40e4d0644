"""The result of a run: whether the counts are right, what ran where, what was lost and run again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from msgspec import Struct
from rich import box
from rich.table import Table

from am.programs.mapreduce.wordcount import count_words, read_counts
from examples.demo.input_text import InputText
from examples.demo.observation import Observations
from examples.demo.workload import Submitted
from yarn.applications import ApplicationReport
from yarn.ids import ContainerId, NodeId
from yarn.states import FinalApplicationStatus

SHOWN_DIFFERENCES = 3


class Loss(Struct, frozen=True):
    """The losses with the killed node: containers and ApplicationMasters by user, map outputs, repeated tasks."""

    containers: dict[str, list[ContainerId]]
    ams: dict[str, int]
    map_outputs: int
    tasks_again: int


class CountCheck(Struct, frozen=True):
    """True if the job's counts equal those of a plain count; `text` is the sentence for the screen."""

    is_right: bool
    text: str


def check_counts(text: InputText, output: Path) -> CountCheck:
    """Compare the job's counts with a plain count of the same files."""
    counted, expected = read_counts(output), count_words(text.files)
    words = f"{expected.total():,} words, {len(expected):,} kinds"
    size = f"{len(text.files)} files of {text.size_bytes / 1e6:.1f} MB, {words}"
    if counted == expected:
        return CountCheck(True, f"verified: {size}; every count equals that of a plain count")
    wrong = [word for word in counted | expected if counted[word] != expected[word]]
    shown = ", ".join(f"{word!r}: {counted[word]}, must be {expected[word]}" for word in wrong[:SHOWN_DIFFERENCES])
    return CountCheck(False, f"WRONG: {size}; {len(wrong)} words are counted wrongly ({shown})")


def what_was_lost(
    submitted: list[Submitted], observed: Observations, lost: list[ContainerId], job: dict[str, object]
) -> Loss:
    """`lost`: the containers that ran on the node when it was killed; `job`: the last status of the word count."""
    users = {one.application_id: one.job.user for one in submitted}
    containers: dict[str, list[ContainerId]] = {}
    ams: Counter[str] = Counter()
    for container in lost:
        user = users[container.application_id]
        if container in observed.ams:
            ams[user] += 1
        else:
            containers.setdefault(user, []).append(container)
    attempts = job.get("attempts", [])
    assert isinstance(attempts, list)
    tries = Counter(attempt["task"] for attempt in attempts)
    outputs = job.get("lost_outputs", 0)
    assert isinstance(outputs, int)
    return Loss(containers, dict(ams), outputs, sum(count > 1 for count in tries.values()))


def places_table(
    submitted: list[Submitted], observed: Observations, nodes: list[NodeId], killed: NodeId | None
) -> Table:
    """Containers by user and node; a star marks an ApplicationMaster."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title="What ran where (containers, * with an ApplicationMaster)",
        title_justify="left",
    )
    table.add_column("User")
    for node in nodes:
        table.add_column(f"{node.host}{' ✗' if node == killed else ''}", justify="right")
    for one in submitted:
        row = []
        for node in nodes:
            here = [
                container
                for container, place in observed.places.items()
                if place == node and container.application_id == one.application_id
            ]
            star = " *" if any(container in observed.ams for container in here) else ""
            row.append(f"{len(here)}{star}" if here else "")
        table.add_row(one.job.user, *row)
    return table


def application_lines(submitted: list[Submitted], reports: tuple[ApplicationReport, ...]) -> list[str]:
    """The ends of the applications, one line each."""
    return [
        f"{one.job.user}: {one.job.what}, {report.final_status.name} after "
        f"{(report.finish_time_ms - report.start_time_ms) / 1000:.1f} s, "
        f"attempt {report.current_attempt_id.attempt}"
        for one, report in zip(submitted, reports, strict=True)
    ]


def loss_lines(loss: Loss) -> list[str]:
    lines = [
        f"{user}: {len(containers)} running {_plural('container', len(containers))} lost and started again elsewhere"
        for user, containers in loss.containers.items()
    ]
    lines += [f"{user}: the ApplicationMaster was lost, a second attempt took over" for user in loss.ams]
    if loss.map_outputs:
        lines.append(
            f"alice: {loss.map_outputs} finished {_plural('map', loss.map_outputs)} run again, the output was lost"
        )
    if loss.tasks_again:
        lines.append(f"alice: {loss.tasks_again} {_plural('task', loss.tasks_again)} tried more than once")
    return lines or ["nothing: nothing ran on the node"]


def all_succeeded(reports: tuple[ApplicationReport, ...]) -> bool:
    return all(report.final_status is FinalApplicationStatus.SUCCEEDED for report in reports)


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
