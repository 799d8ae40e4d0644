"""Reads JSON documents of any size, one entry at a time, and checks each entry against a pydantic model.

All faults of a file are collected, each with the line that its entry starts on and the path inside the entry. Files
come from other programs, so unknown keys of a `LenientSection` are ignored, unlike those of files that people write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ConfigDict, ValidationError

from wire.files.yaml_file import Location, Section
from yarn.faults import ConfigurationException, Fault, Origin, alike_in_lists, refuse_if_faulty
from yarnling.workload.limits import FAULTS_MAX, FILE_BYTES_MAX

S = TypeVar("S", bound=Section)
VALUE_SHOWN_MAX = 100

_GAP = re.compile(r"[\s,]*")
"""Text that may stand between two documents. Some writers separate them by commas."""


class LenientSection(Section):
    """A mapping that another program wrote: keys that no model names are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Faults:
    """The faults found in one file. `add` raises ConfigurationException when there are too many to list.

    `first`: the position that a path gives to the first item of a list. It is 1 in files that people write and in
    traces, as in all YAML files, and 0 in answers of a ResourceManager, whose paths are then those of `jq`.
    """

    def __init__(self, source: str, *, first: int = 1) -> None:
        self.source = source
        self.first = first
        self._faults: list[Fault] = []

    def add(self, key: str, problem: str, remedy: str, *, value: object = None, line: int | None = None) -> None:
        """Add one fault. `key`: the path of the value in the file."""
        shown = None if value is None else _shown(value)
        self._faults.append(Fault(key, shown, Origin(self.source, line), problem, remedy))
        if len(self._faults) == FAULTS_MAX:
            problem = f"has more faults than the {FAULTS_MAX} listed here"
            self._faults.append(Fault("", None, Origin(self.source), problem, "correct these first"))
            self.refuse()

    def refuse(self) -> None:
        """Raise ConfigurationException with all faults, if there are any."""
        refuse_if_faulty(alike_in_lists(self._faults))

    def checked(self, model: type[S], value: object, prefix: str, line: int | None = None) -> S | None:
        """`value` as a `model`, or None after its faults were added under `prefix`."""
        try:
            return model.model_validate(value)
        except ValidationError as error:
            for each in error.errors():
                words = each.get("ctx", {})
                found = _at(value, each["loc"])
                path = f"{prefix}{_path(each['loc'], self.first)}".removeprefix(".")
                self.add(path, words["problem"], words["remedy"], value=found, line=line)
        return None


def read_text(path: Path) -> str:
    """The text of a file. Raises ConfigurationException if it cannot be read, or is too large."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise refusal(path, f"is larger than {FILE_BYTES_MAX} bytes", "split the workload into several files")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise refusal(path, f"cannot be read: {error.strerror}", "name another file") from None
    except UnicodeDecodeError:
        raise refusal(path, "cannot be read: it is not UTF-8", "name another file") from None


def refusal(source: Path | str, problem: str, remedy: str, line: int | None = None) -> ConfigurationException:
    """The error for a file that cannot be used at all."""
    return ConfigurationException([Fault("", None, Origin(str(source), line), problem, remedy)])


def json_documents(text: str, source: str) -> Iterator[tuple[int, object]]:
    """Yield (line, document) for each JSON document of a text: documents in a row, or the items of a list.

    Raises ConfigurationException if there is none, or at the first one that is not valid JSON.
    """
    is_empty = True
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    line, counted, at = 1, 0, _start(text, 0)
    while at < len(text):
        line, counted = line + text.count("\n", counted, at), at
        try:
            document, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise refusal(source, f"is not valid JSON: {error.msg}", "correct the line", error.lineno) from None
        except (ValueError, RecursionError) as error:
            problem = "too many levels" if isinstance(error, RecursionError) else str(error).splitlines()[0]
            raise refusal(source, f"is not valid JSON: {problem}", "correct the document", line) from None
        for each in document if isinstance(document, list) else [document]:
            is_empty = False
            yield line, each
        at = _start(text, end)
    if is_empty:
        raise refusal(source, "is empty: it has no JSON document", "name another file")


def whole_number(value: object) -> int:
    """The whole number in a document of another program, also as text; 0 for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 16:
        return int(value)
    return value if isinstance(value, int) and 0 <= value < 1 << 53 else 0


def mapping_of(value: object) -> Mapping[str, Any]:
    """The mapping in a document of another program; empty for anything else."""
    return value if isinstance(value, dict) else {}


def _start(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    return found.end() if found else at


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _at(value: object, location: Location) -> object:
    """The scalar at a location of a document; None for anything else."""
    for part in location:
        try:
            value = value[part]  # type: ignore[index]
        except (TypeError, KeyError, IndexError):
            return None
    return value if isinstance(value, str | int | float) else None


def _path(location: Location, first: int) -> str:
    return "".join(f"[{part + first}]" if isinstance(part, int) else f".{_shown(part)}" for part in location)


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= VALUE_SHOWN_MAX else f"{text[:VALUE_SHOWN_MAX]}..."
