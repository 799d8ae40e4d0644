"""YAML read strictly: every value knows its line and its path, and all faults are told at once.

    reader = YamlReader("table.yaml")
    fields = reader.fields(reader.read(text), {"seed", "rules"})
    seed = reader.integer(fields.get("seed"), 0)
    reader.refuse_if_faulty()

A fault leaves the default in its place, so that reading goes on to the next one; nothing that was read may be used
before `refuse_if_faulty`. What comes in is not trusted: bounded size, no tags, no aliases (a few of them can stand for
gigabytes), no key twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import yaml

from yarn.faults import Fault, Origin, refuse_if_faulty
from yarn.records import dataclass

FILE_BYTES_MAX = 1024 * 1024
"""Such files are written by hand."""

_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
TIME_REMEDY = "write a number and a unit: 250ms, 1.5s, 2m, 1h"


@dataclass(frozen=True, slots=True)
class Value:
    """A value in the file, and how one gets there: rules[2].stages[1].lasts."""

    node: yaml.Node
    path: str

    @property
    def text(self) -> str:
        """A scalar as it is written; what else it is by its kind."""
        if isinstance(self.node, yaml.ScalarNode):
            return str(self.node.value)
        return "a list" if isinstance(self.node, yaml.SequenceNode) else "a mapping"


class YamlReader:
    """One file. `faults` grows while it is read."""

    def __init__(self, source: str) -> None:
        self.faults: list[Fault] = []
        self._source = source

    def read_file(self, path: Path) -> Value | None:
        """The file's content; None, and a fault, if it cannot be read at all."""
        try:
            data = path.read_bytes()
            text = data.decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
            self.faults.append(Fault("", None, Origin(self._source), f"cannot be read: {reason}", "name another file"))
            return None
        return self.read(text)

    def read(self, text: str) -> Value | None:
        """What `text` says; None, and a fault, if it is no YAML."""
        if len(text) > FILE_BYTES_MAX:
            problem = f"has {len(text)} characters, at most {FILE_BYTES_MAX} are read"
            self.faults.append(Fault("", None, Origin(self._source), problem, "write less"))
            return None
        try:
            for event in yaml.parse(text, Loader=yaml.SafeLoader):
                if isinstance(event, yaml.AliasEvent):
                    mark = event.start_mark
                    origin = Origin(self._source, None if mark is None else mark.line + 1)
                    self.faults.append(Fault("", None, origin, "aliases (*name) are not read", "write it out"))
                    return None
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None) or str(error).splitlines()[0]
            origin = Origin(self._source, None if mark is None else mark.line + 1)
            self.faults.append(Fault("", None, origin, f"is no YAML: {problem}", "mend the line"))
            return None
        if node is None:
            self.faults.append(Fault("", None, Origin(self._source), "is empty", "write something into it"))
            return None
        return Value(node, "")

    def refuse_if_faulty(self) -> None:
        """Raise ConfigurationException with every fault, by line, if there is one."""
        refuse_if_faulty(sorted(self.faults, key=lambda fault: fault.origin.line or 0))

    def fault(self, value: Value, problem: str, remedy: str) -> None:
        """Note what is wrong with a value."""
        origin = Origin(self._source, value.node.start_mark.line + 1)
        said = value.text if isinstance(value.node, yaml.ScalarNode) else None
        self.faults.append(Fault(value.path, said, origin, problem, remedy))

    def fields(self, value: Value | None, known: Collection[str], needed: Collection[str] = ()) -> dict[str, Value]:
        """The values of a mapping by key; those of other keys are faults, and so is a key twice or one not there."""
        if value is None:
            return {}
        if not isinstance(value.node, yaml.MappingNode):
            self.fault(value, "is no mapping", f"write `key: value` with the keys {', '.join(known)}")
            return {}
        found: dict[str, Value] = {}
        for key_node, node in value.node.value:
            name = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "a key that is no text"
            entry = Value(node, f"{value.path}.{name}" if value.path else name)
            if name in found:
                self.fault(Value(key_node, entry.path), "stands there twice", "take one of them out")
            elif name not in known:
                self.fault(Value(key_node, entry.path), "is no key here", f"there are {', '.join(known)}")
            else:
                found[name] = entry
        for name in needed:
            if name not in found:
                self.fault(value, f"has no {name}", f"write {name}: ...")
        return found

    def pairs(self, value: Value | None) -> dict[str, Value]:
        """The values of a mapping whose keys are free."""
        if value is None:
            return {}
        names = [str(key.value) for key, _ in value.node.value] if isinstance(value.node, yaml.MappingNode) else ()
        return self.fields(value, dict.fromkeys(names, None) or ("NAME",))

    def items(self, value: Value | None) -> list[Value]:
        """The items of a list."""
        if value is None:
            return []
        if not isinstance(value.node, yaml.SequenceNode):
            self.fault(value, "is no list", "write `- ...`, one line for each item")
            return []
        return [Value(node, f"{value.path}[{number}]") for number, node in enumerate(value.node.value, 1)]

    def is_list(self, value: Value) -> bool:
        return isinstance(value.node, yaml.SequenceNode)

    def is_mapping(self, value: Value) -> bool:
        return isinstance(value.node, yaml.MappingNode)

    def text(self, value: Value | None, default: str) -> str:
        """Any scalar, as it is written."""
        if value is None:
            return default
        if not isinstance(value.node, yaml.ScalarNode) or not value.text:
            self.fault(value, "is no text", "write a text")
            return default
        return value.text

    def choice(self, value: Value | None, choices: Collection[str], default: str) -> str:
        text = self.text(value, default)
        if value is not None and text not in choices and isinstance(value.node, yaml.ScalarNode):
            self.fault(value, "is not among the choices", f"write {' or '.join(choices)}")
            return default
        return text

    def pattern(self, value: Value | None) -> str | None:
        """A regular expression."""
        if value is None:
            return None
        text = self.text(value, "")
        try:
            re.compile(text)
        except re.error as error:
            self.fault(
                value, f"is no regular expression: {error}", "mend it, or put a \\ before what is meant as it is"
            )
        return text

    def integer(self, value: Value | None, default: int, least: int | None = None, most: int | None = None) -> int:
        """A whole number within bounds, both included."""
        if value is None:
            return default
        text = self.text(value, "")
        if re.fullmatch(r"[+-]?\d{1,18}", text):
            number = int(text)
            if (least is None or number >= least) and (most is None or number <= most):
                return number
        bounds = [f"at least {least}"] if least is not None else []
        bounds += [f"at most {most}"] if most is not None else []
        within = f" of {' and '.join(bounds)}" if bounds else ""
        self.fault(value, f"is no whole number{within}", f"write a whole number{within}")
        return default

    def fraction(self, value: Value | None, default: float) -> float:
        """A probability: 0.25, or 25%."""
        if value is None:
            return default
        number = percent(value.text)
        if number is None and re.fullmatch(r"\d+(\.\d+)?|\.\d+", value.text):
            number = float(value.text)
        if number is None or number > 1:
            self.fault(value, "is no probability", "write a number from 0 to 1, or 0% to 100%")
            return default
        return number

    def time_ms(self, value: Value | None, default: int) -> int:
        """A length of time, with its unit."""
        if value is None:
            return default
        found = _TIME.fullmatch(value.text)
        if found is None and value.text != "0":
            self.fault(value, "is no length of time", TIME_REMEDY)
            return default
        return 0 if found is None else round(float(found[1]) * _UNIT_MS[found[2]])


def percent(text: str) -> float | None:
    """The fraction that `25%` says; None for what is no percentage."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text)
    return None if found is None else float(found[1]) / 100
