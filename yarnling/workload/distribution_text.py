"""The text of a distribution in a summary file: one value, or a mapping with the name of the distribution.

duration: 60s
duration: {uniform: [30s, 90s]}
duration: {normal: {mean: 60s, stddev: 10s}}
duration: {lognormal: {median: 60s, p95: 10m}}      # or mean and stddev
duration: {exponential: {mean: 60s}}
duration: {percentiles: {0: 5s, 50: 1m, 90: 5m, 100: 1h}}

In yarnling's own workload file, numbers without a unit are milliseconds, and JSON's numbers are understood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from wire.files.yaml_file import MEGABYTES, MEMORY_REMEDY, choose_from, quantity, refusal, scalar
from yarn.errors import InternalError
from yarnling.workload.distribution import (
    Choice,
    Distribution,
    Exponential,
    Fixed,
    KnownPercentiles,
    Lognormal,
    Normal,
    Uniform,
)
from yarnling.workload.limits import CONTAINERS_MAX, MEMORY_MB_MAX, TIME_MS_MAX
from yarnling.workload.start_times import StartTime

MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

KINDS = ("uniform", "normal", "lognormal", "exponential", "percentiles")

_Number = Callable[[object], float]


def _number(units: Mapping[str, float], most: float, remedy: str) -> _Number:
    """A reader of one number with a unit."""

    def read(value: object) -> float:
        text = repr(value) if type(value) in (int, float) else value
        value = quantity(text, units) if isinstance(text, str) else None
        if value is None or value > most:
            raise refusal("is not a valid value", remedy)
        return value

    return read


def _distribution(number: _Number) -> BeforeValidator:
    """The type of a distribution whose numbers `number` reads."""

    def read(value: object) -> Distribution:
        if isinstance(value, str | int | float):
            return Fixed(number(value))
        if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in KINDS:
            written = str(next(iter(value), "")) if isinstance(value, dict) else ""
            raise refusal("is not a distribution", f"write one value, or one of these: {choose_from(KINDS, written)}")
        ((kind, parameters),) = value.items()
        return _READERS[kind](parameters, number)

    return BeforeValidator(read)


def _uniform(parameters: Any, number: _Number) -> Distribution:
    if not isinstance(parameters, list) or len(parameters) != 2:
        raise refusal("does not have two bounds", "write uniform: [least, most]")
    least, most = map(number, parameters)
    if least > most:
        raise refusal("has its bounds in the wrong order", "write uniform: [least, most]")
    return Uniform(least, most)


def _normal(parameters: Any, number: _Number) -> Distribution:
    return Normal(*_named(parameters, number, "normal", "mean", "stddev"))


def _lognormal(parameters: Any, number: _Number) -> Distribution:
    if isinstance(parameters, dict) and "mean" in parameters:
        mean, stddev = _named(parameters, number, "lognormal", "mean", "stddev")
        if mean <= 0:
            raise refusal("has a mean of 0", "write a mean above 0")
        return Lognormal.of_mean(mean, stddev)
    median, p95 = _named(parameters, number, "lognormal", "median", "p95")
    if not 0 < median <= p95:
        raise refusal("has its percentiles in the wrong order", "write a median above 0 and a p95 not below it")
    return Lognormal.of_percentiles(median, p95)


def _exponential(parameters: Any, number: _Number) -> Distribution:
    return Exponential(*_named(parameters, number, "exponential", "mean"))


def _percentiles(parameters: Any, number: _Number) -> Distribution:
    if not isinstance(parameters, dict) or not parameters:
        raise refusal("is not a mapping", "write percentiles: {50: ..., 90: ..., 99: ...}")
    points = sorted((_share(share), number(value)) for share, value in parameters.items())
    if any(low[1] > high[1] or low[0] == high[0] for low, high in pairwise(points)):
        raise refusal("has percentiles that do not rise", "write a larger value for a larger percentile")
    return KnownPercentiles(tuple(points))


def _share(text: object) -> float:
    value = quantity(str(text).removeprefix("p"), {"": 0.01})
    if value is None or value > 1:
        raise refusal("has a percentile that is not from 0 to 100", "write for example 50 or 99.9")
    return value


def _named(parameters: Any, number: _Number, kind: str, *names: str) -> list[float]:
    if not isinstance(parameters, dict) or sorted(parameters) != sorted(names):
        form = ", ".join(f"{name}: ..." for name in names)
        raise refusal(f"does not have the parameters of {kind}", f"write {kind}: {{{form}}}")
    return [number(parameters[name]) for name in names]


_READERS: Mapping[str, Callable[[Any, _Number], Distribution]] = {
    "uniform": _uniform,
    "normal": _normal,
    "lognormal": _lognormal,
    "exponential": _exponential,
    "percentiles": _percentiles,
}

_TIME_REMEDY = "write 250ms, 1.5s, 10m or 2h"
_TIME = _number(MILLISECONDS, TIME_MS_MAX, _TIME_REMEDY)
_TIME_MS = _number({**MILLISECONDS, "": 1}, TIME_MS_MAX, f"write a number of milliseconds, or {_TIME_REMEDY[6:]}")
_MEMORY = _number(MEGABYTES, MEMORY_MB_MAX, MEMORY_REMEDY)
_COUNT = _number({"": 1}, CONTAINERS_MAX, f"write a number up to {CONTAINERS_MAX}")

TimeDistribution = Annotated[Any, _distribution(_TIME)]
MemoryDistribution = Annotated[Any, _distribution(_MEMORY)]
CountDistribution = Annotated[Any, _distribution(_COUNT)]
"""A distribution of milliseconds, of MiB, and of a count."""


def whole_ms(text: str) -> int | None:
    """The milliseconds of a time with its unit; None if it is not one of up to a year."""
    value = quantity(text, MILLISECONDS)
    return None if value is None or value > TIME_MS_MAX else round(value)


Time = Annotated[int, scalar(whole_ms, "time up to a year", "write 250ms, 1.5s, 10m, 2h or 7d")]
"""A time with its unit, in whole milliseconds."""


def _constant(start: Distribution) -> StartTime:
    return round(start.value) if isinstance(start, Fixed) else start


StartTimeMs = Annotated[Any, AfterValidator(_constant), _distribution(_TIME_MS)]
StartTimeText = Annotated[Any, AfterValidator(_constant), _distribution(_TIME)]
"""A start time whose numbers need no unit, and one whose numbers have one."""


def written(start: StartTime) -> object:
    """The value of a start time in a workload file: a number of ms, or a mapping that `StartTimeMs` reads."""
    match start:
        case int():
            return start
        case Uniform(least, most):
            return {"uniform": [_shown(least), _shown(most)]}
        case Normal(mean, stddev):
            return {"normal": {"mean": _shown(mean), "stddev": _shown(stddev)}}
        case Lognormal():
            return {"lognormal": {"median": _shown(start.quantile(0.5)), "p95": _shown(start.quantile(0.95))}}
        case Exponential(mean):
            return {"exponential": {"mean": _shown(mean)}}
        case KnownPercentiles(points):
            return {"percentiles": {f"{_shown(100 * share)}": _shown(value) for share, value in points}}
        case Fixed(value):
            return _shown(value)
        case Choice():
            raise InternalError("a start time is never a choice between values")


def _shown(value: float) -> float:
    """A number as it is written: with six decimals, and none if it is whole."""
    rounded = round(value, 6)
    return int(rounded) if rounded == int(rounded) else rounded
