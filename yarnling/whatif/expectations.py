"""Expectations of a what-if run: sentences such as "queue etl: p95 wait < 20 min", which hold or do not. Pure.

    expectation = scope ":" (measure comparison number [unit] | measure "not worse than before" [margin] | phrase)
    scope       = "cluster" | "queue" NAME | "user" NAME
    comparison  = "<" | "<=" | ">" | ">=" | "="
    margin      = "by more than" number unit
    unit        = "ms" | "s" | "min" | "h" for durations, "%" for shares and margins, none for counts

An expectation without a scope is about the cluster. A wait that is a lower bound meets no upper limit: nobody knows how
long it would have become. The measures are those of yarnling.whatif.measures.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from yarn.settings.scheduler import ROOT
from yarn.suggestions import did_you_mean
from yarn.times import duration
from yarnling.report.wording import DURATION_UNITS, count, counted, short_names
from yarnling.whatif.figures import Figures
from yarnling.whatif.measures import (
    CLUSTER,
    MEASURES,
    MISSED_DEADLINES,
    Better,
    Kind,
    Measure,
    Scope,
    Value,
    group_of,
    value_of,
)

PHRASES = {
    "no application misses its deadline": "missed deadlines = 0",
    "no application is refused": "refused applications = 0",
    "no container is preempted": "preempted containers = 0",
    "every container is allocated": "unallocated containers = 0",
}
"""{what may be written: what it means}."""
NAMES_SHOWN_MAX = 20
_COMPARISONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "=": operator.eq}
_UNITS: dict[Kind, Mapping[str, float]] = {Kind.DURATION: DURATION_UNITS, Kind.SHARE: {"%": 0.01}, Kind.COUNT: {"": 1}}
_NUMBER = r"(-?\d[\d,]{0,15}(?:\.\d{1,6})?)\s*((?:[A-Za-z%][\w%/-]*)?)"
_LIMIT = re.compile(rf"(.*?)\s*(<=|>=|<|>|=)\s*{_NUMBER}")
_NOT_WORSE = re.compile(rf"(.*?)\s+not worse than before(?:\s+by more than\s+{_NUMBER})?")
_SCOPE = re.compile(r"(cluster|queue\s+(?P<queue>\S+)|user\s+(?P<user>[^:]+?))\s*:\s*(?P<rest>.*)")


class Expectation(Struct, frozen=True):
    """An expectation about a measure.

    `comparison` with `bound`; or, if `comparison` is "", not worse than before by more than `bound`, which is a
    fraction of the value before if `is_relative`. Bounds are in the measure's unit: milliseconds, count, fraction.
    """

    text: str
    scope: Scope
    measure: Measure
    comparison: str
    bound: float
    is_relative: bool = False

    @property
    def needs_before(self) -> bool:
        """True if it compares with the run before the change."""
        return not self.comparison


class KnownNames(Struct, frozen=True):
    """Names that expectations may use: paths of queues, the root's among them, and users."""

    queues: tuple[str, ...]
    users: tuple[str, ...]


class Checked(Struct, frozen=True):
    """The outcome of an expectation. `value`: what was measured, in words. `warning`: what it could not be checked
    against, because the simulation ended too early.
    """

    text: str
    holds: bool
    value: str
    warning: str = ""


class NotAnExpectation(Exception):
    """The text does not follow the grammar. `problem`, and the `remedy`, which starts with a verb."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem} ({remedy})")
        self.problem = problem
        self.remedy = remedy


def parse_expectation(text: str) -> Expectation:
    """Read one expectation. Raises NotAnExpectation."""
    words = " ".join(text.split())
    scope, body = _scope(words)
    body = PHRASES.get(body, body)
    if found := _NOT_WORSE.fullmatch(body):
        measure = _measure(found[1], scope)
        if measure.better is Better.NEITHER:
            raise NotAnExpectation(f"no value of {measure.name} is worse than another", "write a limit: < or >")
        is_relative = not found[2] or (found[3] == "%" and measure.kind is not Kind.SHARE)
        units = _UNITS[Kind.SHARE if is_relative else measure.kind]
        bound = _bound(found[2], found[3], units) if found[2] else 0.0
        return Expectation(words, scope, measure, "", bound, is_relative)
    if found := _LIMIT.fullmatch(body):
        measure = _measure(found[1], scope)
        return Expectation(words, scope, measure, found[2], _bound(found[3], found[4], _UNITS[measure.kind]))
    remedy = f'write "MEASURE < NUMBER UNIT", "MEASURE not worse than before" or one of: {"; ".join(PHRASES)}'
    raise NotAnExpectation("has no limit", remedy)


def parse_measure(text: str) -> tuple[Scope, Measure]:
    """Read a measure with its scope, "queue etl: p95 wait", without a limit. Raises NotAnExpectation."""
    scope, body = _scope(" ".join(text.split()))
    return scope, _measure(body, scope)


def _scope(words: str) -> tuple[Scope, str]:
    found = _SCOPE.fullmatch(words)
    if found:
        name = found["queue"] or found["user"]
        return (Scope("queue" if found["queue"] else "user", name) if name else CLUSTER), found["rest"]
    if ":" in words:
        raise NotAnExpectation("has no valid scope", "begin with `cluster:`, `queue NAME:` or `user NAME:`")
    return CLUSTER, words


def _measure(written: str, scope: Scope) -> Measure:
    known = [measure.name for measure in MEASURES.values() if measure.of_users or scope.kind != "user"]
    if written in known:
        return MEASURES[written]
    problem = f"users have no {written}" if written in MEASURES else f"{written!r} is not a measure"
    raise NotAnExpectation(problem, f"{did_you_mean(written, known)}write one of: {', '.join(known)}")


def _bound(number: str, unit: str, units: Mapping[str, float]) -> float:
    if number.startswith("-"):
        raise NotAnExpectation(f"the limit {f'{number} {unit}'.strip()} is negative", "write 0 or a positive number")
    if unit not in units and float(number.replace(",", "")):
        unit_names = ", ".join(units) if "" not in units else "no unit"
        raise NotAnExpectation(f"{unit or 'a number without a unit'} does not fit here", f"write {unit_names}")
    return float(number.replace(",", "")) * units.get(unit, 0)


def names_in(figures: Figures) -> KnownNames:
    """The queues and users of a run that has ended."""
    queues = (queue.name for queue in (*figures.queues, *figures.parents))
    return KnownNames((ROOT, *queues), tuple(user.name for user in figures.users))


def with_paths(expectation: Expectation, known: KnownNames) -> Expectation:
    """An expectation with the full path of its queue. Raises NotAnExpectation if there is no such queue or user,
    or several queues of this name.
    """
    return replace(expectation, scope=scope_with_path(expectation.scope, known))


def scope_with_path(scope: Scope, known: KnownNames) -> Scope:
    """A scope with the full path of its queue. Raises NotAnExpectation as `with_paths` does."""
    if scope.kind == "queue":
        return Scope("queue", path_of(scope.name, known.queues))
    if scope.kind == "user" and scope.name not in known.users:
        raise _no_such("user", scope.name, known.users)
    return scope


def path_of(name: str, paths: Sequence[str]) -> str:
    """The path of a queue by its last name, or by its path. Raises NotAnExpectation if there is no, or no single, queue
    of this name.
    """
    if name in paths:
        return name
    found = [path for path in paths if path.rpartition(".")[2] == name]
    if len(found) > 1:
        raise NotAnExpectation(f"several queues are called {name}", f"write the path: {', '.join(found)}")
    if not found:
        raise _no_such("queue", name, list(short_names(paths).values()))
    return found[0]


def _no_such(kind: str, name: str, known: Sequence[str]) -> NotAnExpectation:
    more = f" and {len(known) - NAMES_SHOWN_MAX} more" if len(known) > NAMES_SHOWN_MAX else ""
    listed = f"{', '.join(known[:NAMES_SHOWN_MAX])}{more}" if known else "none"
    remedy = did_you_mean(name, known)
    return NotAnExpectation(f"there is no {kind} {name}", f"{remedy}write one of the {kind}s of the run: {listed}")


def check(expectation: Expectation, after: Sequence[Figures], before: Sequence[Figures] = ()) -> Checked:
    """Check an expectation against the runs after a change, one for each seed; it must hold in each of them.

    What is compared with before is compared by the medians over the seeds. The queue's name must be its path.
    """
    if expectation.needs_before:
        found = _check_not_worse(expectation, after, before)
        sides = (("after", _undecided(expectation, after)), ("before", _undecided(expectation, before)))
        return replace(found, warning="; ".join(f"{when}: {warning}" for when, warning in sides if warning))
    return replace(_check_limit(expectation, after), warning=_undecided(expectation, after))


def meets(value: Value | None, expectation: Expectation) -> bool:
    """True if the value is within the limit of an expectation that has one; a lower bound is within no upper limit."""
    if value is None or (value.at_least and expectation.comparison not in (">", ">=")):
        return False
    return bool(_COMPARISONS[expectation.comparison](value.number, expectation.bound))


def _undecided(expectation: Expectation, runs: Sequence[Figures]) -> str:
    """A warning about deadlines that cannot be judged yet, for the seed with the most of them; "" if there are none."""
    groups = [(group, run) for run in runs if (group := group_of(expectation.scope, run)) is not None]
    if expectation.measure.name != MISSED_DEADLINES or not groups:
        return ""
    group, run = max(groups, key=lambda pair: pair[0].undecided)
    if not group.undecided:
        return ""
    everything = counted(group.all_with_deadline, "application")
    who, theirs = ("it", "its deadline") if group.undecided == 1 else ("they", "their deadlines")
    return (
        f"{count(group.undecided)} of {everything} with a deadline cannot be judged: the simulation ended after "
        f"{duration(run.until_ms)}, before {who} had ended and before {theirs}"
    )


def _check_limit(expectation: Expectation, after: Sequence[Figures]) -> Checked:
    values = [value_of(expectation.measure, expectation.scope, run) for run in after]
    broken = [value for value in values if not meets(value, expectation)]
    text = expectation.measure.written((broken or values)[0])
    if broken and len(values) > 1:
        text = f"{text}, with {len(broken)} of {len(values)} seeds"
    return Checked(expectation.text, not broken, f"nothing to measure: {text}" if None in values else text)


def _check_not_worse(expectation: Expectation, after: Sequence[Figures], before: Sequence[Figures]) -> Checked:
    measure, scope = expectation.measure, expectation.scope
    then, now = (median_of([value_of(measure, scope, run) for run in runs]) for runs in (before, after))
    text = f"{measure.written(now)}, was {measure.written(then)}"
    if then is None or now is None:
        return Checked(expectation.text, holds=False, value=f"nothing to compare: {text}")
    allowed = expectation.bound * then.number if expectation.is_relative else expectation.bound
    worse_by = now.number - then.number if measure.better is Better.LOWER else then.number - now.number
    is_unknown = now.at_least and not then.at_least
    return Checked(expectation.text, worse_by <= allowed and not is_unknown, text)


def median_of(values: Sequence[Value | None]) -> Value | None:
    """The median of the values; None if one of them is missing. It is a lower bound if any of them is."""
    present = [value for value in values if value is not None]
    if not present or len(present) < len(values):
        return None
    return Value(median(value.number for value in present), any(value.at_least for value in present))
