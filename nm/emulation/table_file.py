"""Reads the table of emulated containers from a YAML file, whose format docs/emulated-containers.md describes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo, field_validator

from nm.core.emulation import Amount, Bounds, EmulationStage, EmulationTable, Match, Rule
from wire.files import yaml_file
from wire.files.yaml_file import (
    MEGABYTES,
    MEMORY_KEYS,
    MEMORY_REMEDY,
    PAIR,
    WHOLE_MEGABYTES,
    Probability,
    Section,
    refusal,
    scalar,
    sections,
    short_for,
)
from yarn.configuration import Configuration
from yarn.settings.yarnling import EMULATION_SEED, EMULATION_TABLE

READY_MADE = ("default", "all")
"""The names of the tables that come with yarnling; the setting accepts them in place of a path."""

_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_FOREVER = math.inf


def read_emulation(conf: Configuration) -> EmulationTable | None:
    """The table that `conf` names; None if all containers are real. Raises ConfigurationException with every fault."""
    name = EMULATION_TABLE.maybe_of(conf)
    if name is None:
        return None
    path = table_path(name)
    try:
        changed_ns = path.stat().st_mtime_ns
    except OSError:
        changed_ns = 0
    table = _read(path, changed_ns)
    seed = EMULATION_SEED.maybe_of(conf)
    return table if seed is None else EmulationTable(table.rules, seed)


def table_path(name: str) -> Path:
    """The path of a table, which `name` gives as the name of a ready-made table or as a path."""
    return Path(__file__).with_name(f"{name}.yaml") if name in READY_MADE else Path(name)


def parse_table(text: str, source: str = "table") -> EmulationTable:
    """Parse the YAML text of a table. Raises ConfigurationException with every fault."""
    return yaml_file.parse_yaml(text, source, _Table).record()


@lru_cache(maxsize=8)
def _read(path: Path, _changed_ns: int) -> EmulationTable:
    """Read a file once for all nodes of a process, and again if the file has changed."""
    return yaml_file.read_yaml(path, _Table).record()


def _regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise refusal(
            f"is not a valid regular expression: {error}", "correct it, or escape characters with \\"
        ) from None
    return text


def _lasts_ms(text: str) -> float | None:
    return _FOREVER if text == "forever" else yaml_file.quantity(text, _MILLISECONDS)


def _amount(units: Mapping[str, float], kind: str, remedy: str) -> PlainValidator:
    """A validator for a number with a unit, or a percentage."""

    def parse(text: str) -> Amount | None:
        relative = text.endswith("%")
        value = yaml_file.quantity(text, {"%": 0.01} if relative else units)
        return None if value is None else Amount(value, relative)

    return scalar(parse, kind, remedy)


def _names(rules: list[object], _: object) -> Iterator[tuple[str, bool]]:
    """The name of each rule, and whether an earlier rule has the same name."""
    taken: set[str] = set()
    for number, rule in enumerate(rules, 1):
        name = str(rule.get("name", f"rule {number}")) if isinstance(rule, dict) else ""
        yield name, name in taken
        taken.add(name)


_Pattern = Annotated[str, Field(min_length=1), AfterValidator(_regular_expression)]
_Count = Annotated[int, Field(ge=0)]
_Lasts = Annotated[float, scalar(_lasts_ms, "time", "write 250ms, 1.5s, 2m, 1h or forever")]
_Jitter = Annotated[Amount, _amount(_MILLISECONDS, "time", "write 250ms, 1.5s, 2m, or 50% of the stage's time")]
_Memory = Annotated[Amount, _amount(MEGABYTES, "amount of memory", f"{MEMORY_REMEDY}, or 80% of the container's")]
_Vcores = Annotated[Amount, _amount({"": 1}, "number of vcores", "write 0.5, or 80% of the container's")]


class _Bounds(Section):
    """A range, which the file may give as one number if both ends are equal."""

    at_least: _Count | None = None
    at_most: _Count | None = None

    @field_validator("at_most")
    @classmethod
    def _check_order(cls, value: int | None, info: ValidationInfo) -> int | None:
        least = info.data.get("at_least")
        if value is not None and least is not None and value < least:
            raise refusal(f"is less than at_least, {least}", f"write at least {least}")
        return value


class _MemoryBounds(_Bounds):
    """A range of amounts of memory."""

    at_least: Annotated[_Count, WHOLE_MEGABYTES] | None = None
    at_most: Annotated[_Count, WHOLE_MEGABYTES] | None = None


_IntOrBounds = Annotated[_Bounds, short_for("at_least", "at_most")]


class _Match(Section):
    kind: Literal["master", "task"] | None = None
    user: _Pattern | None = None
    command: _Pattern | None = None
    environment: dict[str, Annotated[str, AfterValidator(_regular_expression)]] = Field(default_factory=dict)
    node: _Pattern | None = None
    priority: _IntOrBounds = _Bounds()
    memory_mb: Annotated[_MemoryBounds, short_for("at_least", "at_most"), MEMORY_KEYS] = _MemoryBounds()
    vcores: _IntOrBounds = _Bounds()

    def record(self) -> Match:
        bounds = [Bounds(each.at_least, each.at_most) for each in (self.priority, self.memory_mb, self.vcores)]
        is_master = None if self.kind is None else self.kind == "master"
        return Match(is_master, self.user, self.command, tuple(self.environment.items()), self.node, *bounds)


class _Exit(Section):
    """An exit, which the file may give as the exit code alone if the container always exits with it."""

    code: Annotated[int, Field(ge=0, le=255)]
    probability: Probability = 1.0


class _StageEntry(Section):
    """A stage. The validation context is the next stage, None for the last one."""

    lasts: _Lasts
    jitter: _Jitter = Amount()
    memory: Annotated[tuple[_Memory, _Memory], PAIR] = (Amount(), Amount())
    cpu: _Vcores = Amount()
    exit: Annotated[_Exit, short_for("code")] | None = None

    @field_validator("lasts")
    @classmethod
    def _check_lasts(cls, lasts: float, info: ValidationInfo) -> float:
        if info.context is not None and lasts == _FOREVER:
            raise refusal("never ends, but another stage follows", "make this stage the last one")
        return lasts

    @field_validator("jitter")
    @classmethod
    def _check_jitter(cls, jitter: Amount, info: ValidationInfo) -> Amount:
        lasts = info.data.get("lasts", _FOREVER)
        if jitter.of(lasts) > lasts:
            raise refusal(
                f"is more than the {lasts:g} ms that the stage lasts", "write a shorter time, or at most 100%"
            )
        return jitter

    @field_validator("exit")
    @classmethod
    def _check_exit(cls, value: _Exit, info: ValidationInfo) -> _Exit:
        if info.context is not None and value.probability == 1:
            raise refusal("ends the container, but another stage follows", "make this stage the last one")
        return value

    @field_validator("jitter", "exit")
    @classmethod
    def _check_it_ends(cls, value: Amount | _Exit, info: ValidationInfo) -> Amount | _Exit:
        if info.data.get("lasts") == _FOREVER:
            raise refusal("is not valid for a stage that never ends", "remove it, or write how long the stage lasts")
        return value

    def record(self) -> EmulationStage:
        lasts_ms = None if self.lasts == _FOREVER else round(self.lasts)
        jitter_ms = 0 if lasts_ms is None else round(self.jitter.of(lasts_ms))
        code, probability = (0, 0.0) if self.exit is None else (self.exit.code, self.exit.probability)
        memory_first, memory_last = self.memory
        return EmulationStage(lasts_ms, jitter_ms, memory_first, memory_last, self.cpu, code, probability)


_Stages = Annotated[list[_StageEntry], sections(_StageEntry, lambda stages, _: [*stages[1:], None])]


class _Rule(Section):
    """A rule.

    The validation context is (the rule's name or default name, whether an earlier rule has the same name).
    """

    name: Annotated[str, Field(min_length=1, validate_default=True)] = "rule"
    match: _Match = _Match()
    run: Literal["real"] | None = None
    registers: bool = False
    after_term: _Lasts = 0.0
    stages: Annotated[_Stages, Field(min_length=1)] | None = Field(None, validate_default=True)

    @field_validator("name")
    @classmethod
    def _check_name(cls, _: str, info: ValidationInfo[tuple[str, bool]]) -> str:
        name, is_taken = info.context
        if is_taken:
            raise refusal(f"has the same name as an earlier rule, {name}", "give each rule a name of its own")
        return name

    @field_validator("registers")
    @classmethod
    def _check_registers(cls, registers: bool, info: ValidationInfo) -> bool:
        if registers and "match" in info.data and info.data["match"].kind != "master":
            raise refusal("is only valid for ApplicationMasters", "add `kind: master` to match, or remove registers")
        return registers

    @field_validator("registers", "after_term", "stages")
    @classmethod
    def _check_run(cls, value: object, info: ValidationInfo) -> object:
        if value is not None and info.data.get("run") is not None:
            raise refusal("is not valid for a container that runs as a process", f"remove run or {info.field_name}")
        if value is None and info.data.get("run", "") is None:
            raise refusal("has neither run nor stages", "write `run: real`, or stages")
        return value

    def record(self) -> Rule:
        stages = None if self.stages is None else tuple(stage.record() for stage in self.stages)
        after_term_ms = None if self.after_term == _FOREVER else round(self.after_term)
        return Rule(self.name, self.match.record(), stages, self.registers, after_term_ms)


class _Table(Section):
    seed: _Count = 0
    rules: Annotated[list[_Rule], sections(_Rule, _names), Field(min_length=1)]

    def record(self) -> EmulationTable:
        return EmulationTable(tuple(rule.record() for rule in self.rules), self.seed)
