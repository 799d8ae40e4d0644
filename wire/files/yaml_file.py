"""YAML files written by people, checked against a grammar of pydantic models.

    class Stage(Section):
        lasts: Annotated[int, scalar(time_ms, "time", "write 250ms, 1.5s or 2m")]
        exit: Annotated[int, Field(ge=0, le=255)] = 0

    stage = parse_yaml("lasts: 2m", "stage.yaml", Stage)

A file that breaks its grammar is refused with all its faults, each with its line, path and value. Every scalar is text
until a model gives it a type, so `on`, `010` and `1:30` mean what is written. The input is not trusted: its size and
depth are bounded, and tags, anchors, aliases (a few of them can stand for gigabytes) and duplicate keys are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import yaml
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from yarn.faults import ConfigurationException, Fault, Origin, alike_in_lists, refuse_if_faulty
from yarn.suggestions import did_you_mean

FILE_CHARACTERS_MAX = 1024 * 1024
"""The maximum of characters in a file; people write these files by hand."""
NESTING_MAX = 32
"""The maximum nesting, because PyYAML composes nested values recursively. The grammars nest six deep."""
VALUE_SHOWN_MAX = 100
"""The maximum of characters of a value that a fault repeats."""

Location: TypeAlias = tuple[int | str, ...]
"""The keys and indexes (from 0) that lead to a value, as pydantic reports them."""
S = TypeVar("S", bound="Section")

# {pydantic's type of error, or its first word: (problem, remedy)}; the fields in braces come from the error.
_WORDS = {
    "refused": ("{problem}", "{remedy}"),
    "missing": ("has no {key}", "write {key}: ..."),
    "extra": ("is not a valid key", "{choices}"),
    "model": ("is not a mapping", "write `key: value`; {choices}"),
    "dict": ("is not a mapping", "write `key: value`"),
    "list": ("is not a list", "write `- ...`, one line for each item"),
    "tuple": ("is not a list", "write one value, or two: [first, last]"),
    "too_short": ("has {actual_length} items", "write at least {min_length}"),
    "too_long": ("has {actual_length} items", "write at most {max_length}"),
    "string_too_long": ("is longer than {max_length} characters", "write a shorter text"),
    "string": ("is not a text", "write one value"),
    "string_too_short": ("is empty", "write a text"),
    "int": ("is not a whole number", "write a whole number"),
    "float": ("is not a number", "write a number"),
    "finite": ("is not a finite number", "write a number"),
    "bool": ("is not true or false", "write true or false"),
    "literal": ("is not a valid choice", "write {expected}"),
    "enum": ("is not a valid choice", "write {expected}"),
    "greater": ("is less than {ge:.12g}", "write a number of at least {ge:.12g}"),
    "less": ("is more than {le:.12g}", "write a number of at most {le:.12g}"),
}


class Section(BaseModel):
    """A mapping in a file. Each subclass lists the keys of one kind of mapping and the types of their values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="wrap")
    @classmethod
    def _explain_faults(cls, value: Any, handler: ModelWrapValidatorHandler[S]) -> S:
        """Replace pydantic's descriptions of faults. This is done in the section because it knows the valid keys."""
        try:
            return handler(value)
        except ValidationError as error:
            keys = [_key_of(name, field) for name, field in cls.model_fields.items()]
            errors = [each for each in error.errors() if not _is_short_by_invalid_items(each)]
            faults = [(each, _explained(each, keys)) for each in errors]
        raise ValidationError.from_exception_data(
            cls.__name__, [{"type": type_, "loc": each["loc"], "input": each["input"]} for each, type_ in faults]
        )


def _is_short_by_invalid_items(error: ErrorDetails) -> bool:
    """True if a list is too short only because pydantic leaves out its invalid items, which have their own faults."""
    if error["type"] != "too_short" or not isinstance(error["input"], list):
        return False
    return len(error["input"]) >= int(error.get("ctx", {})["min_length"])


def _explained(error: ErrorDetails, keys: Iterable[str]) -> PydanticCustomError:
    key = str(error["loc"][-1]) if error["loc"] else ""
    fields = {"key": key, "choices": choose_from(keys, key), "message": error["msg"], **error.get("ctx", {})}
    words = _WORDS.get(error["type"]) or _WORDS.get(error["type"].split("_")[0]) or ("is not valid", "{message}")
    problem, remedy = (text.format(**fields) for text in words)
    return refusal(problem, remedy)


def refusal(problem: str, remedy: str) -> PydanticCustomError:
    """The error for a validator to raise: `problem` is what is wrong with the value, `remedy` what to write instead."""
    return PydanticCustomError("refused", "{problem} ({remedy})", {"problem": problem, "remedy": remedy})


def choose_from(choices: Iterable[str], written: str) -> str:
    """The remedy for a word that is not a valid choice: it names the nearest choice first."""
    known = list(choices)
    return f"{did_you_mean(written, known)}valid are {', '.join(known)}"


def scalar(parse: Callable[[str], object], kind: str, remedy: str) -> PlainValidator:
    """The type of a scalar. `parse` reads its text and returns None if the text is not valid."""

    def read(value: object) -> object:
        parsed = parse(value) if isinstance(value, str) else None
        if parsed is None:
            raise refusal(f"is not a valid {kind}", remedy)
        return parsed

    return PlainValidator(read)


def short_for(*keys: str) -> BeforeValidator:
    """The type of a mapping that may also be written as one scalar, which is then the value of all `keys`."""
    return BeforeValidator(lambda value: dict.fromkeys(keys, value) if isinstance(value, str) else value)


def _pair(value: object) -> object:
    if isinstance(value, list) and len(value) != 2:
        raise refusal(f"has {len(value)} items", "write one value, or two: [first, last]")
    return [value, value] if isinstance(value, str) else value


PAIR = BeforeValidator(_pair)
"""The type of a range: [first, last], or one scalar, which is then both the first and the last value."""


def sections(model: type[S], contexts: Callable[[list[Any], dict[str, Any]], Iterable[object]]) -> PlainValidator:
    """The type of a list of sections, each validated with a context: what it needs to know of the rest of the file.

    `contexts` returns the contexts, one for each item. Its arguments are the items as written, and those fields of the
    surrounding section that precede the list and are valid.
    """

    def validate(pair: tuple[object, object]) -> S:
        return model.model_validate(pair[0], context=pair[1])

    adapter: TypeAdapter[list[S]] = TypeAdapter(list[Annotated[Any, PlainValidator(validate)]])

    def read(items: Any, info: ValidationInfo) -> list[S]:
        is_list = isinstance(items, list)
        return adapter.validate_python([*zip(items, contexts(items, info.data), strict=False)] if is_list else items)

    return PlainValidator(read)


def quantity(text: str, units: Mapping[str, float]) -> float | None:
    """The value of a number with its unit; 0 needs no unit. None if the text is not valid."""
    found = re.fullmatch(r"(\d{1,12}\.?\d{0,12}|\.\d{1,12})\s*([A-Za-z%]*)", text)
    if found is None or (found[2] not in units and text != "0"):
        return None
    return round(float(found[1]) * units.get(found[2], 0), 9)


MEGABYTES = {"": 1, "MB": 1, "GB": 1024, "TB": 1024 * 1024}
"""{unit of memory: MiB}, the same in all files."""
MEMORY_REMEDY = "write 2048, 2048MB or 2GB"
MEMORY_KEYS = Field(validation_alias=AliasChoices("memory", "memory_mb"))
"""The keys of an amount of memory, of which a mapping has one."""


def _whole_megabytes(value: object) -> object:
    if not isinstance(value, str):
        return value
    megabytes = quantity(value, MEGABYTES)
    if megabytes is None:
        raise refusal("is not a valid amount of memory", MEMORY_REMEDY)
    return round(megabytes)


WHOLE_MEGABYTES = BeforeValidator(_whole_megabytes)
"""The type of an amount of memory in MiB, written as a number or with a unit."""

Probability = Annotated[
    float,
    scalar(lambda text: quantity(text, {"": 1, "%": 0.01}), "probability", "write a number from 0 to 1, or 0% to 100%"),
    Field(le=1),
]


def read_yaml(path: Path, model: type[S]) -> S:
    """Read a file. Raises ConfigurationException with every fault."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(FILE_CHARACTERS_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        fault = Fault("", None, Origin(str(path)), f"cannot be read: {reason}", "name another file")
        raise ConfigurationException([fault]) from None
    return parse_yaml(text, str(path), model)


def parse_yaml(text: str, source: str, model: type[S]) -> S:
    """Parse `text`, the content of the file `source`. Raises ConfigurationException with every fault."""
    document = _Document(source)
    tree = document.compose(text, model)
    try:
        section = model.model_validate(tree)
        refuse_if_faulty(document.faults)
        return section
    except ValidationError as error:
        for each in error.errors():
            words = each.get("ctx", {})
            document.fault(each["loc"], words["problem"], words["remedy"])
    # A short form stands for several values, which have the same fault.
    ordered = sorted(dict.fromkeys(document.faults), key=lambda fault: fault.origin.line or 0)
    raise ConfigurationException(alike_in_lists(ordered))


class _Composer(yaml.SafeLoader):
    """Composes nodes of plain YAML; refuses aliases, anchors and tags."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None) or getattr(event, "tag", None):
            problem = "anchors (&name), aliases (*name) and tags (!name) are not supported"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        if self._depth == NESTING_MAX:
            raise yaml.MarkedYAMLError(problem=f"more than {NESTING_MAX} levels", problem_mark=event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _Document:
    """A YAML document being read: the line of each value, and the faults found so far."""

    def __init__(self, source: str) -> None:
        self.faults: list[Fault] = []
        self._source = source
        self._places: dict[Location, tuple[int, str | None]] = {}  # line (from 1), and the text of a scalar

    def compose(self, text: str, model: type[Section]) -> object:
        """The values as lists, dictionaries and texts. Raises ConfigurationException if the text is not valid YAML."""
        problem, remedy, line = "is empty", _first_keys(model), None
        try:
            if len(text) > FILE_CHARACTERS_MAX:
                problem, remedy = f"has more than {FILE_CHARACTERS_MAX} characters", "write a smaller file"
            elif node := _Composer(text).get_single_node():
                return self._tree(node, (), node.start_mark.line)
        except (
            yaml.YAMLError,
            ValueError,
        ) as error:  # PyYAML raises ValueError for an escape of a character that does not exist.
            mark = getattr(error, "problem_mark", None)
            line = None if mark is None else mark.line + 1
            reasons = [reason for name in ("context", "problem") if (reason := getattr(error, name, None))]
            reason = ", ".join(reasons) or str(error).splitlines()[0]
            problem, remedy = f"is not valid YAML: {reason}", "correct the line"
        raise ConfigurationException([Fault("", None, Origin(self._source, line), problem, remedy)])

    def _tree(self, node: yaml.Node, location: Location, line: int) -> object:
        self._places[location] = line + 1, node.value if isinstance(node, yaml.ScalarNode) else None
        if isinstance(node, yaml.SequenceNode):
            return [self._tree(item, (*location, i), item.start_mark.line) for i, item in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return node.value
        tree: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.fault(location, "has a key that is not a text", "write `key: value`", key.start_mark.line + 1)
            elif key.value in tree:
                self.fault((*location, key.value), "is written twice", "remove one", key.start_mark.line + 1)
            else:
                tree[key.value] = self._tree(value, (*location, key.value), key.start_mark.line)
        return tree

    def fault(self, location: Location, problem: str, remedy: str, line: int | None = None) -> None:
        """Add a fault of a value.

        A short form has values that the file does not contain. A fault of such a value is reported for the innermost
        surrounding value that the file contains.
        """
        while location not in self._places:
            location = location[:-1]
        place, text = self._places[location]
        shown = text if text is None or len(text) <= VALUE_SHOWN_MAX else f"{text[:VALUE_SHOWN_MAX]}..."
        path = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{_key(part)}" for part in location)
        self.faults.append(Fault(path.removeprefix("."), shown, Origin(self._source, line or place), problem, remedy))


def _first_keys(model: type[Section]) -> str:
    """The remedy for an empty file: the keys that it must have, or those that it may have."""
    fields = {_key_of(name, field): field.is_required() for name, field in model.model_fields.items()}
    required = [key for key, is_required in fields.items() if is_required]
    written = ", ".join(f"`{key}: ...`" for key in required or fields)
    return f"write {'' if required else 'one of '}{written} into the file"


def _key_of(name: str, field: FieldInfo) -> str:
    """The key of a field in files, the first one if it has several."""
    choices = field.validation_alias.choices if isinstance(field.validation_alias, AliasChoices) else []
    return str(choices[0]) if choices else field.alias or name


def _key(text: str) -> str:
    return text if text.isprintable() and len(text) <= VALUE_SHOWN_MAX else repr(text[:VALUE_SHOWN_MAX])
