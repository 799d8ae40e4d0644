"""Reads files of expectations: YAML with a list `expect`, as docs/what-if-examples.md describes it.

    about: What the night needs.
    expect:
      - "queue etl: p95 wait < 20 min"
      - no application misses its deadline

A sentence may be written without quotes: YAML then reads "queue etl: ..." as a key and its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, PlainValidator

from wire.files.yaml_file import Section, read_yaml, refusal
from yarn.faults import ConfigurationException, Fault, Origin
from yarnling.whatif.expectations import Expectation, KnownNames, NotAnExpectation, parse_expectation, with_paths

EXPECTATIONS_MAX = 1000
TEXT_MAX = 1000
"""The maximum of characters of one expectation."""


def read_expectations(path: Path) -> tuple[Expectation, ...]:
    """Read a file. Raises ConfigurationException with all faults in it."""
    return tuple(read_yaml(path, _File).expect)


def refuse_if_needing_before(expectations: Sequence[Expectation], source: str) -> None:
    """Raise ConfigurationException with those that compare with a run that there is not."""
    problem, remedy = "compares with a run before", "remove it, or use yarnling simulate compare"
    faults = [
        Fault(f"expect[{number}]", expectation.text, Origin(source), problem, remedy)
        for number, expectation in enumerate(expectations, 1)
        if expectation.needs_before
    ]
    if faults:
        raise ConfigurationException(faults)


def resolved(expectations: Sequence[Expectation], source: str, known: KnownNames) -> tuple[Expectation, ...]:
    """The expectations with paths of queues. Raises ConfigurationException with all that name a queue or a user that
    the run does not have.
    """
    faults, found = [], []
    for number, expectation in enumerate(expectations, 1):
        try:
            found.append(with_paths(expectation, known))
        except NotAnExpectation as error:
            faults.append(Fault(f"expect[{number}]", expectation.text, Origin(source), error.problem, error.remedy))
    if faults:
        raise ConfigurationException(faults)
    return tuple(found)


def _expectation(written: object) -> Expectation:
    if isinstance(written, dict) and len(written) == 1:
        [(key, value)] = written.items()
        written = f"{key}: {value}"
    if not isinstance(written, str):
        raise refusal("is not a sentence", 'write "queue etl: p95 wait < 20 min"')
    if len(written) > TEXT_MAX:
        raise refusal(f"has more than {TEXT_MAX} characters", "write a shorter one")
    try:
        return parse_expectation(written)
    except NotAnExpectation as error:
        raise refusal(error.problem, error.remedy) from None


Sentence = Annotated[Expectation, PlainValidator(_expectation)]
"""The type of an expectation in a file."""


class _File(Section):
    about: str = ""
    expect: Annotated[list[Sentence], Field(min_length=1, max_length=EXPECTATIONS_MAX)]
