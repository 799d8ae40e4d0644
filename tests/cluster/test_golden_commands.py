"""Hadoop's command line, typed into ours: each recorded invocation gives the recorded output and exit status.

Ids, hosts and times are those of the cluster that is asked. REASONS says what differs, and why.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cluster.golden_scene import NAME, THEIRS, USER, golden_cluster, play, recorded
from yarnling.cli import main
from yarnling.cli.hadoop.application import APPLICATION
from yarnling.cli.hadoop.attempt import ATTEMPT
from yarnling.cli.hadoop.container import CONTAINER
from yarnling.cli.hadoop.logs import LOGS
from yarnling.cli.hadoop.node import NODE
from yarnling.cli.hadoop.options import usage
from yarnling.cli.hadoop.queue import QUEUE

pytestmark = pytest.mark.cluster

VERBS = {verb.name: verb for verb in (APPLICATION, ATTEMPT, CONTAINER, NODE, QUEUE, LOGS)}


@dataclass(frozen=True)
class Outcome:
    command: str
    hadoop: str
    ours: str

    @property
    def same(self) -> bool:
        return self.hadoop == self.ours


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Outcome]]:
    """Every recorded invocation of our verbs, in its order: some change what later ones see."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("state")))
        patch.setenv("YARNLING_NAME", NAME)
        patch.setenv("HADOOP_USER_NAME", USER)
        patch.setenv("TZ", "UTC")
        with golden_cluster():
            names = asyncio.run(play())
            yield [_replayed(entry, names) for entry in recorded() if _verb(str(entry["command"])) in VERBS]


SAME_OF_ALL = (105, 107)
REASONS = {
    "yarn logs -applicationId application_<RUNNING> -am ALL": "-am is not there, and refused by its name",
    "yarn logs": "without an application it is our own verb that tells how it is used",
}
"""{invocation: why ours answers otherwise}; all others are the same."""


def test_the_recorded_invocations_are_answered_as_hadoop_answers_them(outcomes: list[Outcome]) -> None:
    different = {outcome.command: outcome for outcome in outcomes if not outcome.same}
    unexplained = [outcome for command, outcome in different.items() if command not in REASONS]
    assert not unexplained, "\n".join(f"{o.command}\n{o.hadoop}\n--- ours\n{o.ours}" for o in unexplained[:3])
    assert different.keys() == REASONS.keys(), "a reason that explains nothing any more"
    assert (len(outcomes) - len(different), len(outcomes)) == SAME_OF_ALL


def _verb(command: str) -> str:
    verb = command.split()[1]
    return "application" if verb == "app" else verb


def _replayed(entry: dict[str, object], names: dict[str, str]) -> Outcome:
    command = str(entry["command"])
    typed = command
    for name, ours in names.items():
        typed = typed.replace(THEIRS[name], ours)
    output, status = run(typed.split()[1:])
    cut = "cut" in entry
    expected = str(entry["stdout"])
    verb = VERBS[_verb(command)]
    expected = re.sub(r"\$\{HELP [^}]*\}", lambda _: usage(verb.name, verb.options), expected)
    wanted = entry["exit"] if entry["exit"] != -1 else 255
    return Outcome(
        neutral(command, THEIRS),
        f"{neutral(expected, THEIRS, cut=cut)}exit {wanted}",
        f"{neutral(output, names, cut=cut)}exit {status}",
    )


def run(arguments: list[str]) -> tuple[str, int]:
    """Standard output and exit status of one command."""
    out = io.TextIOWrapper(io.BytesIO(), write_through=True)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(sys, "argv", ["yarnling", *arguments])
        patch.setattr(sys, "stderr", io.StringIO())
        with pytest.raises(SystemExit) as ended:
            main()
    code = ended.value.code
    return out.buffer.getvalue().decode(), code if isinstance(code, int) else 0  # type: ignore[attr-defined]


def neutral(text: str, names: dict[str, str], *, cut: bool = False) -> str:
    """`text` with common names for its cluster's ids and hosts, without times, use and the order of rows.

    `cut`: rows of the recording were left out, so that only those of our applications count.
    """
    for name, value in names.items():
        text = text.replace(value, name)
    for pattern, common in _PASSING:
        text = re.sub(pattern, common, text)
    if cut:
        text = re.sub(r"\):\d+$", "):<N>", text, flags=re.MULTILINE)
        text = re.sub(r".*<FINISHED BEFORE>.*\n", "", text)
    if text.startswith("Container: "):
        return _neutral_logs(text)
    lines = text.split("\n")
    return "\n".join([*lines[:2], *sorted(lines[2:])]) if text.startswith(("Total", "+")) else text


def _neutral_logs(text: str) -> str:
    """Files in any order. The two that an NM writes of its own machine are held against Hadoop's in tests/nm."""
    files = re.split(r"(?=^Container: )", text, flags=re.MULTILINE)
    files = [re.sub(_MACHINES, r"\1\2", file, flags=re.DOTALL) for file in files]
    files = [re.sub(r" +(launch_container.sh|directory.info)\t +\d+", r"\1", file) for file in files]
    return "".join(sorted("\n".join(sorted(file.split("\n"))) for file in files))


_MACHINES = r"(LogType:(?:launch_container.sh|directory.info)\n).*(End of LogType)"

_PASSING = (
    (r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d \+0000 \d{4}", "<TIME>"),
    (r"\w{3} \d\d/\w{3}/\d\d \d\d:\d\d:\d\d:\d+UTC", "<TIME>"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,]\d{3}(\+0000)?", "<TIME>"),
    (r"-Time : [1-9]\d+", "-Time : <MS>"),
    (r"Allocation : \d+ MB-seconds, \d+ vcore-seconds", "Allocation : <N> MB-seconds, <N> vcore-seconds"),
    (r"PMem:.*", "<USE>"),
    (r"RemainingTime : \d+", "RemainingTime : <S>"),
    (r" *((http://)?<(NODE|WEB))", r"\1"),
)
