"""The table of emulated containers, from a YAML file. docs/emulated-containers.md says what one may hold."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from nm.emulation.course import Amount, Stage
from nm.emulation.table import Bounds, EmulationTable, Match, Rule
from wire.strict_yaml import TIME_REMEDY, Value, YamlReader, percent
from yarn.configuration import Configuration
from yarn.settings.yarnling import EMULATION_SEED, EMULATION_TABLE

READY_MADE = ("default", "all")
"""Tables that come with yarnling, by the names that the setting takes for them."""

_RULE_KEYS = ("name", "match", "run", "registers", "stages")
_MATCH_KEYS = ("kind", "user", "command", "environment", "node", "priority", "memory_mb", "vcores")
_STAGE_KEYS = ("lasts", "jitter", "memory", "cpu", "exit")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*(MB|GB)")
_MB_OF = {"MB": 1, "GB": 1024}
_CPU = re.compile(r"\d+(\.\d+)?")
_FOR_EVER = "forever"
_EXIT_CODE_MAX = 255
_TIME_MS_MAX = 1 << 53
"""In the place of a time that cannot be read: no other fault follows from it."""


def read_emulation(conf: Configuration) -> EmulationTable | None:
    """The table that `conf` names, None if containers are real. Raises ConfigurationException with every fault."""
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
    """The file of a table: a ready-made one by its name, any other by its path."""
    return Path(__file__).with_name(f"{name}.yaml") if name in READY_MADE else Path(name)


def parse_table(text: str, source: str = "table") -> EmulationTable:
    """The table that a YAML text describes. Raises ConfigurationException with every fault of it."""
    reader = YamlReader(source)
    return _table(reader, reader.read(text))


@lru_cache(maxsize=8)
def _read(path: Path, _changed_ns: int) -> EmulationTable:
    """One reading serves all nodes of a process."""
    reader = YamlReader(str(path))
    return _table(reader, reader.read_file(path))


def _table(reader: YamlReader, root: Value | None) -> EmulationTable:
    fields = reader.fields(root, ("seed", "rules"), needed=("rules",))
    items = reader.items(fields.get("rules"))
    rules = tuple(_rule(reader, item, number) for number, item in enumerate(items, 1))
    if "rules" in fields and reader.is_list(fields["rules"]) and not items:
        reader.fault(fields["rules"], "is empty", "write at least one rule")
    names: set[str] = set()
    for rule, item in zip(rules, items, strict=True):
        if rule.name in names:
            reader.fault(item, f"is the second rule named {rule.name}", "give it a name of its own")
        names.add(rule.name)
    table = EmulationTable(rules, reader.integer(fields.get("seed"), 0, least=0))
    reader.refuse_if_faulty()
    return table


def _rule(reader: YamlReader, value: Value, number: int) -> Rule:
    fields = reader.fields(value, _RULE_KEYS)
    name = reader.text(fields.get("name"), f"rule {number}")
    match = _match(reader, fields.get("match"))
    if "run" in fields:
        reader.choice(fields["run"], ("real",), "real")
        for useless in ("registers", "stages"):
            if useless in fields:
                reader.fault(fields[useless], "are of no use to a container that is run", f"take run or {useless} out")
        return Rule(name, match)
    if "stages" not in fields and reader.is_mapping(value):
        reader.fault(value, "says neither run nor stages", "write `run: real`, or stages")
    items = reader.items(fields.get("stages"))
    if "stages" in fields and reader.is_list(fields["stages"]) and not items:
        reader.fault(fields["stages"], "is empty", "write at least one stage")
    stages = tuple(_stage(reader, item) for item in items)
    for item, stage in list(zip(items, stages, strict=True))[:-1]:
        if stage.lasts_ms is None or stage.exit_probability >= 1:
            reader.fault(item, "ends the container, and stages follow", "make it the last one")
    return Rule(name, match, stages, _registers(reader, fields.get("registers"), match))


def _registers(reader: YamlReader, value: Value | None, match: Match) -> bool:
    if value is None:
        return False
    registers = reader.choice(value, ("true", "false"), "false") == "true"
    if registers and not match.is_master:
        reader.fault(value, "is only for masters", "add `kind: master` to match, or take registers out")
        return False
    return registers


def _match(reader: YamlReader, value: Value | None) -> Match:
    fields = reader.fields(value, _MATCH_KEYS)
    kind = fields.get("kind")
    return Match(
        is_master=None if kind is None else reader.choice(kind, ("master", "task"), "task") == "master",
        user=reader.pattern(fields.get("user")),
        command=reader.pattern(fields.get("command")),
        environment=tuple(
            (name, reader.pattern(entry) or "") for name, entry in reader.pairs(fields.get("environment")).items()
        ),
        node=reader.pattern(fields.get("node")),
        priority=_bounds(reader, fields.get("priority")),
        memory_mb=_bounds(reader, fields.get("memory_mb")),
        vcores=_bounds(reader, fields.get("vcores")),
    )


def _bounds(reader: YamlReader, value: Value | None) -> Bounds:
    """A number, or {at_least, at_most}."""
    if value is None:
        return Bounds()
    if not reader.is_mapping(value):
        number = reader.integer(value, 0, least=0)
        return Bounds(number, number)
    fields = reader.fields(value, ("at_least", "at_most"))
    least = reader.integer(fields["at_least"], 0, least=0) if "at_least" in fields else None
    most = reader.integer(fields["at_most"], 0, least=least or 0) if "at_most" in fields else None
    return Bounds(least, most)


def _stage(reader: YamlReader, value: Value) -> Stage:
    fields = reader.fields(value, _STAGE_KEYS, needed=("lasts",))
    lasts = fields.get("lasts")
    for_ever = lasts is not None and lasts.text == _FOR_EVER
    lasts_ms = 0 if for_ever else reader.time_ms(lasts, _TIME_MS_MAX)
    if for_ever and (useless := fields.get("jitter") or fields.get("exit")):
        reader.fault(useless, "is of no use to a stage that never ends", "take it out, or write how long it lasts")
    memory_first, memory_last = _memory(reader, fields.get("memory"))
    code, probability = _exit(reader, fields.get("exit"))
    return Stage(
        None if for_ever else lasts_ms,
        0 if for_ever else _jitter_ms(reader, fields.get("jitter"), lasts_ms),
        memory_first,
        memory_last,
        _cpu(reader, fields.get("cpu")),
        code,
        probability,
    )


def _jitter_ms(reader: YamlReader, value: Value | None, lasts_ms: int) -> int:
    """To each side of `lasts`: a time, or a percentage of it."""
    if value is None:
        return 0
    fraction = percent(value.text)
    jitter_ms = reader.time_ms(value, 0) if fraction is None else round(fraction * lasts_ms)
    if jitter_ms > lasts_ms:
        reader.fault(value, f"is more than the {lasts_ms} ms that the stage lasts", f"{TIME_REMEDY}, or at most 100%")
        return 0
    return jitter_ms


def _memory(reader: YamlReader, value: Value | None) -> tuple[Amount, Amount]:
    """One amount, or the first and the last."""
    if value is None:
        return Amount(), Amount()
    items = reader.items(value) if reader.is_list(value) else [value, value]
    if len(items) != 2:
        reader.fault(value, f"has {len(items)} amounts", "write one, or [first, last]")
        return Amount(), Amount()
    first = _memory_amount(reader, items[0])
    return first, first if items[1] is items[0] else _memory_amount(reader, items[1])


def _memory_amount(reader: YamlReader, value: Value) -> Amount:
    fraction, found = percent(value.text), _MEMORY.fullmatch(value.text)
    if fraction is not None:
        return Amount(fraction, True)
    if found is not None:
        return Amount(float(found[1]) * _MB_OF[found[2]])
    if value.text != "0":
        reader.fault(value, "is no amount of memory", "write 512 MB, 1.5 GB, or 80% of the container's own")
    return Amount()


def _cpu(reader: YamlReader, value: Value | None) -> Amount:
    """Vcores, or a percentage of the container's own."""
    if value is None:
        return Amount()
    fraction = percent(value.text)
    if fraction is not None:
        return Amount(fraction, True)
    if not _CPU.fullmatch(value.text):
        reader.fault(value, "is no number of vcores", "write 0.5, or 80% of the container's own")
        return Amount()
    return Amount(float(value.text))


def _exit(reader: YamlReader, value: Value | None) -> tuple[int, float]:
    """A code, or {code, probability}."""
    if value is None:
        return 0, 0.0
    if not reader.is_mapping(value):
        return reader.integer(value, 0, 0, _EXIT_CODE_MAX), 1.0
    fields = reader.fields(value, ("code", "probability"), needed=("code",))
    return (
        reader.integer(fields.get("code"), 0, 0, _EXIT_CODE_MAX),
        reader.fraction(fields.get("probability"), 1.0),
    )
