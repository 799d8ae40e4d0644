"""Searches for scenarios in which the core differs from Hadoop, and keeps minimised recordings of them."""

from __future__ import annotations

import json
import re
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tests.conformance.comparison import Difference, Outcome, compare_file, stumbles
from tests.conformance.generator import generate
from tests.conformance.minimiser import Minimiser
from tests.conformance.oracle.hadoop import Hadoop
from tests.conformance.scenario import RECORDING_SUFFIX, Json, Scenario, write_lines
from yarn.java.versions import HADOOP_VERSION

COMPARE_SECONDS_MAX = 120
"""A step of our core that takes longer counts as not coming to rest."""

RECORDED_AGAIN = 4
"""A differing scenario is recorded again this often, to find out whether Hadoop itself is deterministic there."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """The search's inputs. `folder`: where differing recordings are kept."""

    folder: Path
    allowed: frozenset[str]
    steps: int
    every: bool = False
    minimise: bool = True
    release: str = HADOOP_VERSION


@dataclass(frozen=True, slots=True)
class Finding:
    """The result for one seed. `verdict`: same, differs, unstable (Hadoop itself differs from run to run).

    `steps`: how many were compared, fewer than asked for where Hadoop does not start, stumbles or hangs.
    """

    seed: int
    verdict: str
    steps: int = 0
    kind: str = ""
    difference: str = ""
    saved: Path | None = None

    def line(self) -> str:
        return f"seed {self.seed}: {self.verdict}, {self.steps} steps: {self.difference} ({self.saved})"


def look_through(hunt: Hunt, seeds: range, jobs: int) -> Iterator[Finding]:
    """Yields the findings in order of the seeds, as they become available; `jobs` processes, each with a JVM."""
    if jobs == 1:
        yield from (_look_at(hunt, seed) for seed in seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_look_at, [hunt] * len(seeds), seeds)


def summary(findings: list[Finding]) -> list[str]:
    """The number of each verdict, and of each kind of difference, most frequent first."""
    verdicts = Counter(finding.verdict for finding in findings)
    steps = sum(finding.steps for finding in findings)
    kinds = Counter(finding.kind for finding in findings if finding.verdict == "differs")
    first = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    whole = max((finding.steps for finding in findings), default=0)
    cut = sum(finding.steps < whole for finding in findings)
    short = f" ({cut} shorter than {whole} steps)" if cut else ""
    return [
        f"{len(findings)} scenarios, {steps} steps: {first}{short}",
        *(f"{n:5} {kind}" for kind, n in kinds.most_common()),
    ]


_hadoop: Hadoop | None = None


def _own_hadoop() -> Hadoop:
    """A Hadoop for each process; its JVM ends with it."""
    global _hadoop
    if _hadoop is None:
        _hadoop = Hadoop()
    return _hadoop


def _look_at(hunt: Hunt, seed: int) -> Finding:
    hadoop = _own_hadoop()
    scenario = generate(seed, hunt.steps, hunt.allowed, every=hunt.every).on_release(hunt.release)
    lines = list(hadoop.record(scenario))
    outcome = compare_lines(scenario.name, lines)
    steps = steps_compared(lines)
    if outcome.same:
        return Finding(seed, "same", steps)
    saved = hunt.folder / f"{scenario.name}{RECORDING_SUFFIX}"
    write_lines(saved, lines)
    first = outcome.differences[0]
    others = answers_apart(hadoop, scenario, lines)
    if others:
        ours = any(compare_lines(scenario.name, other).same for other in others)
        differs = f"{'ours is one of' if ours else 'ours is none of'} Hadoop's answers, {_described(first)}"
        return Finding(seed, "unstable", steps, difference=differs, saved=saved)
    if hunt.minimise:
        small = minimised(hadoop, scenario, outcome)
        lines = list(hadoop.record(small))
        saved = hunt.folder / f"{scenario.name}-small{RECORDING_SUFFIX}"
        write_lines(saved, lines)
        again = compare_lines(scenario.name, lines)
        first = again.differences[0] if again.differences else first
    return Finding(seed, "differs", steps, kind(first), f"{len(lines) - 1} left, {_described(first)}", saved)


def answers_apart(hadoop: Hadoop, scenario: Scenario, lines: list[Json]) -> list[list[Json]]:
    """New recordings that differ from `lines`. Several are made, because some races of Hadoop's threads rarely show."""
    again = [list(hadoop.record(scenario)) for _ in range(RECORDED_AGAIN)]
    return [other for other in again if without_messages(other) != without_messages(lines)]


def steps_compared(lines: list[Json]) -> int:
    """The steps before the first one at which Hadoop fails half-way or does not come to rest, or all."""
    failed = (number for number, line in enumerate(lines) if "hang" in line or stumbles(line.get("reply", {})))
    return next(failed, len(lines)) - 1


def minimised(hadoop: Hadoop, scenario: Scenario, outcome: Outcome) -> Scenario:
    """The smallest scenario that still differs in the same way: see `manner`."""
    wanted = manner(outcome)

    def differs(smaller: Scenario) -> bool:
        if not smaller.hangs_together:
            return False
        found = compare_lines(scenario.name, list(hadoop.record(smaller)))
        return not found.same and manner(found) == wanted

    return Minimiser(differs).minimise(scenario, outcome.differences[0].step)


def manner(outcome: Outcome) -> str:
    """Kind of difference: at the start, by an error of ours, by an unknown step, or by the kind of decision.

    Without the kind a scenario that only looks alike would do, such as one that makes no sense any more and is refused.
    """
    first = outcome.differences[0]
    if outcome.trace:
        return f"error {str(first.ours).partition(':')[0]}"
    if isinstance(first.ours, str) and first.ours.startswith("unsupported"):
        return first.ours
    return kind(first) if first.step else "start"


def compare_lines(name: str, lines: list[Json]) -> Outcome:
    """Compare a recording that is not on disk. If our core does not return, that is a difference."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}{RECORDING_SUFFIX}"
        write_lines(path, lines)
        try:
            with _deadline(COMPARE_SECONDS_MAX):
                return compare_file(path)
        except TimeoutError as error:
            return Outcome(name, len(lines) - 1, (Difference(0, {}, "rest", "(comes to rest)", str(error)),))


@contextmanager
def _deadline(seconds: int) -> Iterator[None]:
    """Raises TimeoutError in the block, by a signal: the core never waits and cannot be asked to stop."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def without_messages(lines: list[Json]) -> list[Json]:
    """The lines without error messages, which may contain times and addresses; everything else must repeat."""
    return [{**line, "reply": _without_message(line["reply"])} if "reply" in line else line for line in lines]


def _without_message(reply: Json) -> Json:
    return {**reply, "error": reply["error"]["class"]} if "error" in reply else reply


def kind(difference: Difference) -> str:
    """The step's op and the key without the names in it, to count by."""
    op = difference.action.get("op", "start")
    key = re.sub(r"(?<=/)[^/]*(?=/)", "*", difference.key) if "/" in difference.key else difference.key
    if difference.key.startswith(("container/", "reserved/")):
        key = difference.key.partition("/")[0]
    return f"{op}: {key}"


def _described(difference: Difference) -> str:
    action = json.dumps(difference.action)[:120]
    ours, hadoop = str(difference.ours)[:200], str(difference.hadoop)[:200]
    return f"step {difference.step} {action} {difference.key}: Hadoop {hadoop}, ours {ours}"
