"""Reads the goals of a search: YAML as docs/search.md describes it.

    goals:
      - queue etl: p95 wait < 20 min
      - queue ml: no container is preempted
    minimise: "cluster: mean run time"
    change:
      - {queue: [etl, adhoc, ml], key: capacity, from: 10, to: 70, step: 5}
      - {queue: ml, key: disable_preemption, values: [true, false]}

A goal is an expectation (yarnling.whatif.expectations). What may change is checked against the configuration; all
faults are reported at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, TypeVar

from msgspec import Struct
from pydantic import BeforeValidator, Field

from wire.files.hadoop_xml import hadoop_keys
from wire.files.yaml_file import Section, read_yaml, scalar
from yarn.configuration import Configuration
from yarn.faults import Fault, Origin, refuse_if_faulty
from yarn.settings.kinds import Setting
from yarn.settings.registry import setting_of
from yarn.settings.scheduler import QUEUE_SETTINGS, queue_key, queue_of, setting_of_queue
from yarn.suggestions import did_you_mean
from yarnling.search.goals import Objective
from yarnling.search.siblings import siblings_of
from yarnling.search.space import Dimension, Space
from yarnling.whatif.expectation_file import EXPECTATIONS_MAX, Sentence
from yarnling.whatif.expectations import (
    Expectation,
    KnownNames,
    NotAnExpectation,
    parse_measure,
    path_of,
    scope_with_path,
    with_paths,
)
from yarnling.whatif.measures import Better

CHANGES_MAX = 200
QUEUES_MAX = 500
VALUES_MAX = 1001
"""The most values of one key."""
PERCENT_MAX = Decimal(100)
T = TypeVar("T")


class SearchGoals(Struct, frozen=True):
    """The content of a file of goals, checked against a configuration. `limits` may compare with before."""

    limits: tuple[Expectation, ...]
    objective: Objective | None
    space: Space


def _number(text: str) -> Decimal | None:
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() and abs(found) < 10**12 and found == round(found, 6) else None


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


_Text = Annotated[str, Field(min_length=1, max_length=1000)]
_Number = Annotated[Decimal, scalar(_number, "number", "write a number with at most 6 decimals")]
_Queues = Annotated[tuple[_Text, ...], BeforeValidator(_listed), Field(min_length=1, max_length=QUEUES_MAX)]
_Values = Annotated[tuple[_Text, ...], Field(min_length=2, max_length=VALUES_MAX)]


class _Change(Section):
    queue: _Queues | None = None
    key: _Text
    first: _Number | None = Field(None, alias="from")
    last: _Number | None = Field(None, alias="to")
    step: _Number = Decimal(1)
    values: _Values | None = None


class _GoalsFile(Section):
    about: str = ""
    goals: Annotated[list[Sentence], Field(max_length=EXPECTATIONS_MAX)] = Field(default_factory=list)
    minimise: _Text | None = None
    maximise: _Text | None = None
    change: Annotated[list[_Change], Field(min_length=1, max_length=CHANGES_MAX)]


def read_goals(path: Path, conf: Configuration, known: KnownNames) -> SearchGoals:
    """Read a file of goals. Raises ConfigurationException with all its faults."""
    return _Reader(read_yaml(path, _GoalsFile), path, conf, known).goals()


class _Reader:
    """Checks the content of a file against a configuration, and collects the faults."""

    def __init__(self, file: _GoalsFile, path: Path, conf: Configuration, known: KnownNames) -> None:
        self._file = file
        self._origin = Origin(str(path))
        self._values = conf.values()
        self._known = known
        self._faults: list[Fault] = []

    def goals(self) -> SearchGoals:
        limits = [self._limit(number, each) for number, each in enumerate(self._file.goals, 1)]
        objective = self._objective()
        dimensions = [
            dimension
            for number, change in enumerate(self._file.change, 1)
            for dimension in self._dimensions(f"change[{number}]", change)
        ]
        self._check_twice(dimensions)
        groups, faults = siblings_of(dimensions, self._values, self._origin)
        refuse_if_faulty([*self._faults, *faults])
        found = tuple(limit for limit in limits if limit is not None)
        return SearchGoals(found, objective, Space(tuple(dimensions), groups))

    def _limit(self, number: int, goal: Expectation) -> Expectation | None:
        return self._named(f"goals[{number}]", goal.text, lambda: with_paths(goal, self._known))

    def _objective(self) -> Objective | None:
        file = self._file
        if file.minimise is not None and file.maximise is not None:
            self._fault("maximise", file.maximise, "minimise is there too, and only one figure can be", "remove one")
        if not file.goals and file.minimise is None and file.maximise is None:
            self._fault("goals", None, "there is neither a goal nor a figure to minimise", "write goals, or minimise")
        key, text = ("minimise", file.minimise) if file.minimise is not None else ("maximise", file.maximise)
        if text is None:
            return None
        return self._named(key, text, lambda: self._objective_of(text, is_maximised=key == "maximise"))

    def _objective_of(self, text: str, *, is_maximised: bool) -> Objective:
        scope, measure = parse_measure(text)
        if measure.better is (Better.LOWER if is_maximised else Better.HIGHER):
            other = "minimise" if is_maximised else "maximise"
            raise NotAnExpectation(f"of {measure.name}, {measure.better.value} is better", f"write {other}: ...")
        return Objective(text, scope_with_path(scope, self._known), measure, is_maximised)

    def _dimensions(self, place: str, change: _Change) -> Iterable[Dimension]:
        for key, setting in self._keys(place, change):
            values = self._values_of(place, change, key)
            if values is not None and self._check_values(place, key, setting, values):
                yield values

    def _keys(self, place: str, change: _Change) -> Iterable[tuple[str, Setting[object]]]:
        """The full keys of a change, with their settings."""
        written = change.key
        if change.queue is None:
            setting = setting_of(written)
            owner = queue_of(written)
            if setting is None:
                remedy = f"{did_you_mean(written, hadoop_keys())}write a key that `yarnling config` lists"
                self._fault(f"{place}.key", written, "is not a key that yarnling reads", remedy)
            elif owner is None or self._path(f"{place}.key", owner) is not None:
                yield written, setting
            return
        of_queue = setting_of_queue(written)
        if of_queue is None:
            remedy = (
                f"{did_you_mean(written, [each.key for each in QUEUE_SETTINGS])}write what follows the path of a queue"
            )
            self._fault(f"{place}.key", written, "is not a key of a queue", f"{remedy}, for example capacity")
        for name in change.queue:
            path = self._path(f"{place}.queue", name)
            if path is not None and of_queue is not None:
                yield queue_key(path, written), of_queue

    def _values_of(self, place: str, change: _Change, key: str) -> Dimension | None:
        before = self._values.get(key)
        is_range = change.first is not None or change.last is not None
        if is_range == (change.values is not None):
            self._fault(
                place,
                None,
                "has both values and bounds" if is_range else "has neither values nor bounds",
                "write `from: 10, to: 50`, or `values: [a, b]`",
            )
            return None
        if change.values is not None:
            return Dimension(key, change.values, before)
        if change.first is None or change.last is None:
            self._fault(place, None, "has only one bound", "write both `from: 10` and `to: 50`")
            return None
        return self._range(place, change, key, (change.first, change.last))

    def _range(self, place: str, change: _Change, key: str, bounds: tuple[Decimal, Decimal]) -> Dimension | None:
        (first, last), step, before = bounds, change.step, self._values.get(key)
        if step <= 0 or first >= last or (last - first) / step >= VALUES_MAX:
            problem = f"from {first} to {last} in steps of {step} are not 2 to {VALUES_MAX} values"
            self._fault(place, None, problem, "write from < to and a step between")
            return None
        setting = setting_of(key)
        default = before if before is not None or setting is None else setting.default
        unit = "w" if default is not None and default.strip().endswith("w") else ""
        number = _number(default.strip().removesuffix(unit)) if default is not None else None
        if before is not None and number is None:
            problem = f"the value of {key} is {before}, which is not a number"
            self._fault(place, None, problem, "write `values: [...]`, or give the queue a percentage or a weight")
            return None
        numbers = [first + count * step for count in range(int((last - first) / step) + 1)]
        texts = tuple(f"{each.normalize():f}{unit}" for each in numbers)
        return Dimension(key, texts, before, step, unit, number)

    def _check_values(self, place: str, key: str, setting: Setting[object], dimension: Dimension) -> bool:
        """True if the setting accepts each value."""
        for value in dict.fromkeys(dimension.values):
            try:
                setting.check(setting.parse(value))
                is_percentage = setting.key.endswith("capacity") and dimension.step is not None and not dimension.unit
                if is_percentage and not 0 <= dimension.number(value) <= PERCENT_MAX:
                    raise ValueError("is not a percentage from 0 to 100")
            except ValueError as error:
                self._fault(place, value, f"{key}: {error}", setting.remedy)
                return False
        return True

    def _check_twice(self, dimensions: Iterable[Dimension]) -> None:
        seen: set[str] = set()
        for each in dimensions:
            if each.key in seen:
                self._fault("change", each.key, "is there twice", "remove one of them")
            if len(set(each.values)) < len(each.values):
                self._fault("change", each.key, "has a value twice", "write each once")
            seen.add(each.key)

    def _path(self, key: str, queue: str) -> str | None:
        return self._named(key, queue, lambda: path_of(queue, self._known.queues))

    def _named(self, key: str, text: str, find: Callable[[], T]) -> T | None:
        """The result of `find`; None after its fault, about a name, was noted."""
        try:
            return find()
        except NotAnExpectation as error:
            self._fault(key, text, error.problem, error.remedy)
            return None

    def _fault(self, key: str, value: str | None, problem: str, remedy: str) -> None:
        self._faults.append(Fault(key, value, self._origin, problem, remedy))
