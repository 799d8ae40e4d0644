"""The answer to lab 3, and its grade.

An answer names a key, its queue and a value that mends the cluster, and the evidence. It is graded by a run: the
workload meets the mended configuration. So another key than the planted one is right, too, if nobody complains then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Struct
from pydantic import Field

from wire.files.yaml_file import Section, read_yaml
from yarn.errors import InvalidArgumentException, YarnException
from yarn.settings.registry import setting_of
from yarn.settings.scheduler import PREFIX, ROOT, queue_key
from yarn.suggestions import did_you_mean
from yarnling.cluster.configuration import unknown_keys
from yarnling.labs.limits import TooSlow, processor_time
from yarnling.labs.mistake.cluster import SEED_MAX, UNTIL_MS, LabCluster
from yarnling.labs.mistake.complaints import Complaint, complaints_about
from yarnling.labs.mistake.planted import LabCase, lab_case
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.run import RunOptions, run_what_if, what_if_configuration

PROCESSOR_S = 60.0
"""The processor time that a run may take. With a value as in real clusters it takes less than a second."""
PLACE, REPAIR, EVIDENCE = "place", "repair", "evidence"
POINTS = {PLACE: 30, REPAIR: 50, EVIDENCE: 20}
"""{part of an answer: its points}."""
POINTS_MAX = sum(POINTS.values())
_SUBJECT = r"\b({jobs}|reports?|(worker|gpu|nm|node)-?\d+|(application|container)_\d+_\d+\S*)\b"


class LabAnswer(Section):
    """An answer. `queue`: a path or its last name; empty for a key of the whole cluster, which is written whole."""

    name: Annotated[str, Field(max_length=200)] = ""
    seed: Annotated[int, Field(ge=1, le=SEED_MAX)]
    key: Annotated[str, Field(min_length=1, max_length=500)]
    queue: Annotated[str, Field(max_length=500)] = ""
    value: Annotated[str, Field(max_length=10_000)]
    evidence: Annotated[str, Field(max_length=10_000)] = ""


class GradePart(Struct, frozen=True):
    """The points of one part of an answer, of `POINTS[name]`, and what is said about it."""

    name: str
    points: int
    remark: str


class LabGrade(Struct, frozen=True):
    """The grade of an answer. `key`: the whole key that was read. `hint`: where to look again; "" if all is right."""

    name: str
    seed: int
    key: str
    parts: tuple[GradePart, ...]
    hint: str

    @property
    def points(self) -> int:
        return sum(part.points for part in self.parts)


def run_lab(cluster: LabCluster, settings: Mapping[str, str]) -> tuple[WhatIfResult, tuple[Complaint, ...]]:
    """Run the jobs of the lab under a configuration; the result, and who complains.

    Raises YarnException if the configuration is refused, or if the run takes too long.
    """
    conf = what_if_configuration(None, settings).conf
    nodes = cluster.nodes(conf)
    options = RunOptions(seed=cluster.seed, until_ms=UNTIL_MS)
    try:
        with processor_time(PROCESSOR_S, __file__):
            result = run_what_if(conf, cluster.workload, nodes, options)
    except TooSlow as slow:
        raise YarnException(f"the run was stopped after {slow.seconds:g} s of processor time") from None
    return result, complaints_about(cluster, nodes, result)


def read_answer(path: Path) -> LabAnswer:
    """The answer in a file. Raises YarnException with all its faults."""
    answer = read_yaml(path, LabAnswer)
    names = lab_case(answer.seed).cluster.names
    faults = []
    paths = _paths(names.queues)
    if answer.queue and _path(answer.queue) not in paths:
        similar = did_you_mean(_path(answer.queue), paths)
        faults.append(f"{path}: queue {answer.queue}: there is no such queue ({similar}queues are {', '.join(paths)})")
    for key in unknown_keys({whole_key(answer): answer.value}):
        nearest = f"perhaps {key.nearest}" if key.nearest else "write it as in a file of Hadoop"
        faults.append(f"{path}: key {key.key}: neither Hadoop nor yarnling knows it ({nearest})")
    if faults:
        raise InvalidArgumentException("\n".join(faults))
    return answer


def whole_key(answer: LabAnswer) -> str:
    """The key of an answer as files have it."""
    key = answer.key.strip()
    if answer.queue and not key.startswith("yarn."):
        return queue_key(_path(answer.queue), key)
    return key if key.startswith("yarn.") or setting_of(key) is not None else PREFIX + key


def _paths(queues: tuple[str, ...]) -> list[str]:
    return [ROOT, *(f"{ROOT}.{name}" for name in queues)]


def _path(queue: str) -> str:
    name = queue.strip()
    return name if name == ROOT or name.startswith(f"{ROOT}.") else f"{ROOT}.{name}"


def grade(answer: LabAnswer) -> LabGrade:
    """Grade an answer."""
    case, key = lab_case(answer.seed), whole_key(answer)
    repair = _repair(case, {**case.settings, key: answer.value})
    parts = (_place(case, key, is_mended=repair.points == POINTS[REPAIR]), repair, _evidence(case, answer.evidence))
    is_right = sum(part.points for part in parts) == POINTS_MAX
    return LabGrade(answer.name, answer.seed, key, parts, "" if is_right else case.mistake.hint)


def _place(case: LabCase, key: str, *, is_mended: bool) -> GradePart:
    """The points for the key and its queue."""
    most = POINTS[PLACE]
    if key == case.key:
        return GradePart(PLACE, most, "this is the key that is wrong")
    if is_mended:
        return GradePart(PLACE, most, "this is not the key that was changed, but it mends the cluster, too")
    (queue, name), (right_queue, right_name) = _parted(key), _parted(case.key)
    if name == right_name:
        return GradePart(PLACE, most // 2, "the key is right, but of another queue")
    if queue == right_queue != "":
        return GradePart(PLACE, most // 3, "the queue is right, but another key of it is wrong")
    return GradePart(PLACE, 0, "this is not the key that is wrong")


def _parted(key: str) -> tuple[str, str]:
    """The queue and the property of a key; ("", key) for one of the whole cluster."""
    found = re.fullmatch(rf"{re.escape(PREFIX)}({ROOT}(?:\.[^.]+)?)\.(.+)", key)
    return (found[1], found[2]) if found else ("", key)


def _repair(case: LabCase, settings: Mapping[str, str]) -> GradePart:
    """The points for a value with which nobody complains."""
    try:
        _, left = run_lab(case.cluster, settings)
    except YarnException as error:
        return GradePart(REPAIR, 0, f"the cluster does not run with it: {error.message.splitlines()[0]}")
    said = "; ".join(map(str, left))
    if not left:
        return GradePart(REPAIR, POINTS[REPAIR], "nobody complains any more")
    if case.mistake.shows not in {each.kind for each in left}:
        return GradePart(REPAIR, 2 * POINTS[REPAIR] // 5, f"the first complaint is gone, but not all: {said}")
    return GradePart(REPAIR, 0, f"still: {said}")


def _evidence(case: LabCase, evidence: str) -> GradePart:
    """The points for evidence: it names what it is about, and says what YARN showed."""
    most = POINTS[EVIDENCE]
    jobs = "|".join(re.escape(job.name) for job in case.cluster.jobs)
    has_subject = re.search(_SUBJECT.format(jobs=jobs), evidence, re.IGNORECASE) is not None
    has_sign = re.search(case.mistake.signs, evidence, re.IGNORECASE) is not None
    remark = {
        (True, True): "it names what it is about, and what was seen",
        (True, False): "it does not say what YARN showed of the mistake (a verdict of explain, a state, an amount)",
        (False, True): "it does not name an application, a container or a node",
    }.get((has_subject, has_sign), "name an application, a container or a node, and what YARN showed of it")
    return GradePart(EVIDENCE, most * (has_subject + has_sign) // 2, remark)
