"""Recorded invocations of Hadoop's command line, replayed with ours: output and exit status are the same.

Ids, hosts and times are replaced by common names. REASONS lists the differences and why they exist.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cluster import command_line
from tests.cluster.golden_scene import (
    LABEL_SETTINGS,
    LABEL_THEIRS,
    NAME,
    NM_WEB,
    RM_WEB,
    THEIRS,
    USER,
    ConfigurationFile,
    golden_cluster,
    node_names,
    play,
    recorded,
)
from yarnling.cli.hadoop.application import APPLICATION, ATTEMPT
from yarnling.cli.hadoop.container import CONTAINER
from yarnling.cli.hadoop.logs import LOGS
from yarnling.cli.hadoop.node import CLUSTER, NODE
from yarnling.cli.hadoop.queue import QUEUE
from yarnling.cli.hadoop.verb import Verb, usage

pytestmark = pytest.mark.cluster

VERBS: dict[str, Verb | None] = {
    **{verb.name: verb for verb in (APPLICATION, ATTEMPT, CONTAINER, NODE, QUEUE, CLUSTER, LOGS)},
    "rmadmin": None,
}


@dataclass(frozen=True)
class Outcome:
    command: str
    hadoop: str
    ours: str

    @property
    def same(self) -> bool:
        return self.hadoop == self.ours


@pytest.fixture(scope="module", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("state")))
        patch.setenv("YARNLING_NAME", NAME)
        patch.setenv("TZ", "UTC")
        yield


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    """All recorded invocations, in order: some change what later ones see."""
    with golden_cluster():
        names = asyncio.run(play())
        file = ConfigurationFile()
        found = []
        for entry in (*recorded("cli-client"), *recorded("cli-rmadmin")):
            if "before" in entry:
                file.edit(str(entry["before"]))
            if _verb(str(entry["command"])) in VERBS:
                found.append(_replayed(entry, THEIRS, names))
        return found


@pytest.fixture(scope="module")
def label_outcomes() -> list[Outcome]:
    """The invocations about labels, on a cluster with labels."""
    with golden_cluster(LABEL_SETTINGS):
        names = asyncio.run(node_names())
        return [_replayed(entry, LABEL_THEIRS, names) for entry in recorded("cli-labels")]


SAME_OF_ALL = (153, 160)
ALL_FAULTS = "all errors are reported, with file, line and remedy; Hadoop reports the first, inside exceptions"
REASONS = {
    "yarn logs -applicationId application_<RUNNING> -am ALL": "-am is not supported, and refused by name",
    "yarn logs": "without -applicationId it is our own verb, with its own usage",
    "yarn rmadmin -refreshNodesResources": "node resources are not read from a file, and the RM does not have the RPC",
    "yarn rmadmin -refreshQueues (capacities of root's children sum to 120)": ALL_FAULTS,
    "yarn rmadmin -refreshQueues (running queue root.dev taken out of the list of queues)": ALL_FAULTS,
    "yarn rmadmin -refreshQueues (state of a queue set to NONSENSE)": ALL_FAULTS,
    "yarn rmadmin -refreshQueues (the file is not XML)": ALL_FAULTS,
}
"""{invocation: why ours differs}; all others are the same."""

LABELS_SAME_OF_ALL = (19, 19)
LABEL_REASONS: dict[str, str] = {}


def test_recorded_invocations_give_the_same_output_as_hadoop(outcomes: list[Outcome]) -> None:
    check(outcomes, REASONS, SAME_OF_ALL)


def test_recorded_invocations_about_labels_give_the_same_output(label_outcomes: list[Outcome]) -> None:
    check(label_outcomes, LABEL_REASONS, LABELS_SAME_OF_ALL)


def check(outcomes: list[Outcome], reasons: dict[str, str], same_of_all: tuple[int, int]) -> None:
    different = {outcome.command: outcome for outcome in outcomes if not outcome.same}
    unexplained = [outcome for command, outcome in different.items() if command not in reasons]
    assert not unexplained, "\n".join(f"{o.command}\n{o.hadoop}\n--- ours\n{o.ours}" for o in unexplained[:9])
    assert different.keys() == reasons.keys(), "a reason without a difference"
    assert (len(outcomes) - len(different), len(outcomes)) == same_of_all


def _verb(command: str) -> str:
    verb = command.split()[1]
    return "application" if verb == "app" else verb


def _replayed(entry: dict[str, object], theirs: dict[str, str], names: dict[str, str]) -> Outcome:
    command = str(entry["command"])
    typed = command
    for name, ours in names.items():
        typed = typed.replace(theirs[name], ours)
    user = {"HADOOP_USER_NAME": str(entry.get("user", USER))}
    done = command_line.run(*typed.split()[1:], environment=os.environ | user)
    output, errors, status = done.stdout, done.stderr, done.returncode
    cut = "cut" in entry
    expected, wanted = (
        _WEB.sub(r"<WEB>\1", _PROXY.sub("N/A", str(entry["stdout"]))),
        entry["exit"] if entry["exit"] != -1 else 255,
    )
    verb = VERBS[_verb(command)]
    if verb is None:
        # rmadmin prints errors and usage to standard error.
        expected, output = expected + _error_text(str(entry["stderr"])), output + _error_text(errors)
    else:
        expected = re.sub(r"\$\{HELP [^}]*\}", lambda _: usage(verb.name, verb.options), expected)
    before = f" ({entry['before']})" if "before" in entry else ""
    return Outcome(
        neutral(command, theirs, padded=False) + before,
        f"{neutral(expected, theirs, cut=cut)}exit {wanted}",
        f"{neutral(output, names, cut=cut)}exit {status}",
    )


def _error_text(text: str) -> str:
    """The text before the usage, which is our own, or before a Java stack trace."""
    said = re.split(r"^Usage: |^\tat |^Caused by", text, maxsplit=1, flags=re.MULTILINE)[0].strip()
    return f"{said}\n" + ("<USAGE>\n" if "Usage: " in text else "")


def neutral(text: str, names: dict[str, str], *, cut: bool = False, padded: bool = True) -> str:
    """`text` with common names for ids and hosts, without times, resource usage and the order of rows.

    `cut`: the recording lacks some rows, so only those of our applications are compared. `padded`: the text has
    columns, where a name of another length has other spaces before it.
    """
    for name, value in names.items():
        text = text.replace(value, name)
    text = _OUR_WEB.sub(r"<WEB>\1", text)
    for pattern, common in _PASSING if padded else ():
        text = re.sub(pattern, common, text)
    if cut:
        text = re.sub(r"\):\d+$", "):<N>", text, flags=re.MULTILINE)
        text = re.sub(r".*<FINISHED BEFORE>.*\n", "", text)
    if text.startswith("Container: "):
        return _neutral_logs(text)
    lines = text.split("\n")
    return "\n".join([*lines[:2], *sorted(lines[2:])]) if text.startswith(("Total", "+")) else text


def _neutral_logs(text: str) -> str:
    """Files in any order, without the two that describe the machine; tests/nm compares those with Hadoop's."""
    files = re.split(r"(?=^Container: )", text, flags=re.MULTILINE)
    files = [re.sub(_MACHINES, r"\1\2", file, flags=re.DOTALL) for file in files]
    files = [re.sub(r" +(launch_container.sh|directory.info)\t +\d+", r"\1", file) for file in files]
    return "".join(sorted("\n".join(sorted(file.split("\n"))) for file in files))


_PROXY = re.compile(rf"(?<!\S)(?:http://)?{re.escape(RM_WEB)}/proxy/\S*")
_WEB = re.compile(rf"(?<!\S)(?:http://)?(?:{'|'.join(map(re.escape, (RM_WEB, *NM_WEB)))})(/\S*)?")
_OUR_WEB = re.compile(r"(?<!\S)(?:http://)?127\.0\.0\.\d+:\d+(/\S*)?")

_MACHINES = r"(LogType:(?:launch_container.sh|directory.info)\n).*(End of LogType)"

_PASSING = (
    (r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d \+0000 \d{4}", "<TIME>"),
    (r"\w{3} \d\d/\w{3}/\d\d \d\d:\d\d:\d\d:\d+UTC", "<TIME>"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,]\d{3}(\+0000)?", "<TIME>"),
    (r"-Time : [1-9]\d+", "-Time : <MS>"),
    (r"Allocation : \d+ MB-seconds, \d+ vcore-seconds", "Allocation : <N> MB-seconds, <N> vcore-seconds"),
    (r"PMem:.*", "<USE>"),
    (r"RemainingTime : \d+", "RemainingTime : <S>"),
    (r" *((http://)?<NODE)", r"\1"),
    (r" +(N/A|<WEB>)", r"\1"),
)
