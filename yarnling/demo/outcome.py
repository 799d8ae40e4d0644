"""What came of it: is the result right, who ran where, what was lost and done again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from msgspec import Struct
from rich import box
from rich.table import Table

from yarn.applications import ApplicationReport
from yarn.ids import ContainerId, NodeId
from yarn.states import FinalApplicationStatus
from yarnling.demo.input_text import InputText, count_words, read_counts
from yarnling.demo.observation import Memory
from yarnling.demo.workload import Submitted

SHOWN_DIFFERENCES = 3


class Loss(Struct, frozen=True):
    """What a dead node took with it, by user."""

    containers: dict[str, list[ContainerId]]
    masters: dict[str, int]
    map_outputs: int
    tasks_again: int


class Verdict(Struct, frozen=True):
    """Whether the counts are those of a plain count; `text` says so."""

    is_right: bool
    text: str


def judge(text: InputText, output: Path) -> Verdict:
    """Hold the job's counts against a plain count of the same files."""
    counted, expected = read_counts(output), count_words(text.files)
    words = f"{expected.total():,} words, {len(expected):,} kinds"
    size = f"{len(text.files)} files of {text.size_bytes / 1e6:.1f} MB, {words}"
    if counted == expected:
        return Verdict(True, f"verified: {size}; every count equals that of a plain count")
    wrong = [word for word in counted | expected if counted[word] != expected[word]]
    shown = ", ".join(f"{word!r}: {counted[word]}, must be {expected[word]}" for word in wrong[:SHOWN_DIFFERENCES])
    return Verdict(False, f"WRONG: {size}; {len(wrong)} words are counted wrongly ({shown})")


def what_was_lost(submitted: list[Submitted], memory: Memory, lost: list[ContainerId], job: dict[str, object]) -> Loss:
    """`lost` are the containers that lived on the node when it was killed; `job` the word count's last status."""
    users = {one.application_id: one.work.user for one in submitted}
    containers: dict[str, list[ContainerId]] = {}
    masters: Counter[str] = Counter()
    for container in lost:
        user = users[container.application_id]
        if container in memory.masters:
            masters[user] += 1
        else:
            containers.setdefault(user, []).append(container)
    attempts = job.get("attempts", [])
    assert isinstance(attempts, list)
    tries = Counter(attempt["task"] for attempt in attempts)
    outputs = job.get("lost_outputs", 0)
    assert isinstance(outputs, int)
    return Loss(containers, dict(masters), outputs, sum(count > 1 for count in tries.values()))


def places_table(submitted: list[Submitted], memory: Memory, nodes: list[NodeId], killed: NodeId | None) -> Table:
    """Containers by user and node, masters with a star."""
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, title="Who ran where (containers, * with a master)", title_justify="left"
    )
    table.add_column("User")
    for node in nodes:
        table.add_column(f"{node.host}{' ✗' if node == killed else ''}", justify="right")
    for one in submitted:
        row = []
        for node in nodes:
            here = [
                container
                for container, place in memory.places.items()
                if place == node and container.application_id == one.application_id
            ]
            star = " *" if any(container in memory.masters for container in here) else ""
            row.append(f"{len(here)}{star}" if here else "")
        table.add_row(one.work.user, *row)
    return table


def application_lines(submitted: list[Submitted], reports: tuple[ApplicationReport, ...]) -> list[str]:
    """How each application ended."""
    return [
        f"{one.work.user}: {one.work.what}, {report.final_status.name} after "
        f"{(report.finish_time_ms - report.start_time_ms) / 1000:.1f} s, "
        f"attempt {report.current_attempt_id.attempt}"
        for one, report in zip(submitted, reports, strict=True)
    ]


def loss_lines(loss: Loss) -> list[str]:
    lines = [
        f"{user}: {len(containers)} running {_plural('container', len(containers))} lost, started again elsewhere"
        for user, containers in loss.containers.items()
    ]
    lines += [f"{user}: the master lost, another attempt took over" for user in loss.masters]
    if loss.map_outputs:
        lines.append(
            f"alice: {loss.map_outputs} finished {_plural('map', loss.map_outputs)} done again, the output was gone"
        )
    if loss.tasks_again:
        lines.append(f"alice: {loss.tasks_again} {_plural('task', loss.tasks_again)} tried more than once")
    return lines or ["nothing: the node had no work that mattered"]


def all_succeeded(reports: tuple[ApplicationReport, ...]) -> bool:
    return all(report.final_status is FinalApplicationStatus.SUCCEEDED for report in reports)


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
