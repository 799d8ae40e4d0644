"""Reads the description of a sweep: YAML as docs/sweeps.md describes it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from pydantic import BeforeValidator, Field

from wire.files.yaml_file import Section, quantity, read_yaml, scalar
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.faults import ConfigurationException, Fault, Origin, refuse_if_faulty
from yarn.settings.release import RELEASE
from yarnling.faults.plan import SEED_MAX, Plan
from yarnling.faults.plan_file import find_plan, plan_names
from yarnling.report.wording import DURATION_UNITS
from yarnling.sweep.runs import RANDOM_PLAN, Inputs, Sweep, SweepRun
from yarnling.whatif.checks import refuse_if_unfit
from yarnling.whatif.run import what_if_configuration
from yarnling.workload.formats import read_node_list, read_workload
from yarnling.workload.model import WorkloadNodes

RUNS_MAX = 1_000_000
LOAD_FACTOR_MAX = 1000.0
UNTIL_MAX_MS = 31 * 24 * 3_600_000
"""The longest time that can be simulated: a month."""
T = TypeVar("T")


def _seeds(text: str) -> range | None:
    """A count, which starts at 1, or `first-last`."""
    found = re.fullmatch(r"(?:(\d{1,16})\s*-\s*)?(\d{1,16})", text)
    if found is None:
        return None
    seeds = range(int(found[1] or 1), int(found[2]) + 1)
    return seeds if seeds and seeds.stop <= SEED_MAX and len(seeds) <= RUNS_MAX else None


def _until_ms(text: str) -> int | None:
    value = quantity(text, DURATION_UNITS)
    return round(value) if value is not None and 0 < value <= UNTIL_MAX_MS else None


def _named(value: object) -> object:
    """Paths as a list; each is then its own name."""
    return (
        {path: path for path in value} if isinstance(value, list) and all(isinstance(p, str) for p in value) else value
    )


_Seeds = Annotated[range, scalar(_seeds, "range of seeds", f"write a count, or first-last, at most {RUNS_MAX} of them")]
_Text = Annotated[str, Field(min_length=1)]
_Paths = Annotated[dict[_Text, _Text], BeforeValidator(_named), Field(max_length=1000)]
_LoadFactor = Annotated[float, Field(ge=0.001, le=LOAD_FACTOR_MAX, allow_inf_nan=False)]


class _SweepSpec(Section):
    seeds: _Seeds
    plans: Annotated[tuple[_Text, ...], Field(max_length=1000)] = ()
    encode: bool = True
    hash: bool = False
    configurations: _Paths = Field(default_factory=dict)
    workloads: _Paths = Field(default_factory=dict)
    nodes: _Text | None = None
    load_factors: Annotated[tuple[_LoadFactor, ...], Field(min_length=1, max_length=1000)] = (1.0,)
    until: Annotated[int, scalar(_until_ms, "time of more than 0 and at most 31d", "write 24h, 90m or 7d")] = (
        24 * 3_600_000
    )


def read_sweep(path: Path, release: str | None = None) -> Sweep:
    """The sweep that a file describes; the paths in it start from its directory. `release`: of Hadoop, whose rules all
    runs follow; None: as plans and configurations say. Raises ConfigurationException.
    """
    return _SweepReader(read_yaml(path, _SweepSpec), path, release).sweep()


class _SweepReader:
    """Reads the inputs of a sweep, and collects their faults."""

    def __init__(self, spec: _SweepSpec, path: Path, release: str | None) -> None:
        self._spec = spec
        self._path = path
        self._release = release
        self._settings = {} if release is None else {RELEASE.key: release}
        self._faults: list[Fault] = []
        self._digests: dict[str, str] = {}
        self._warnings: dict[str, tuple[str, ...]] = {}

    def sweep(self) -> Sweep:
        """The runs with their inputs. Raises ConfigurationException with all faults."""
        self._check_shape()
        inputs = self._inputs()
        refuse_if_faulty(self._faults)
        self._check_fit(inputs)
        refuse_if_faulty(self._faults)
        warnings = {name: self._warnings[path] for name, path in self._spec.configurations.items()}
        return Sweep(tuple(self._runs()), inputs, self._digests, warnings)

    def _runs(self) -> Iterator[SweepRun]:
        spec = self._spec
        for plan in spec.plans:
            yield from (SweepRun(plan=plan, seed=seed) for seed in spec.seeds)
        for workload in spec.workloads:
            for factor in spec.load_factors:
                for seed in spec.seeds:
                    yield from (SweepRun("", name, workload, factor, seed) for name in spec.configurations)

    def _check_shape(self) -> None:
        spec = self._spec
        if not spec.plans and not spec.workloads:
            self._fault("plans", None, "neither plans nor workloads are named", "write plans, or workloads")
        if bool(spec.workloads) != bool(spec.configurations) or bool(spec.workloads) != bool(spec.nodes):
            remedy = "write all of workloads, configurations and nodes, or none"
            self._fault("workloads", None, "workloads need configurations and nodes", remedy)
        for name, items in (("plans", spec.plans), ("load_factors", spec.load_factors)):
            if len(set(items)) < len(items):
                self._fault(name, None, "names something twice", "write each once")
        kinds = len(spec.plans) + len(spec.workloads) * len(spec.configurations) * len(spec.load_factors)
        if len(spec.seeds) * kinds > RUNS_MAX:
            problem = f"make more than {RUNS_MAX} runs"
            self._fault("seeds", str(len(spec.seeds)), problem, "write fewer seeds, or split the sweep")

    def _inputs(self) -> Inputs:
        spec = self._spec
        plans = {name: self._read("plans", name, self._plan) for name in spec.plans if name != RANDOM_PLAN}
        workloads = {
            name: self._read("workloads", path, lambda path: self._file(path, read_workload))
            for name, path in spec.workloads.items()
        }
        configurations = {
            name: self._read("configurations", path, self._configuration) for name, path in spec.configurations.items()
        }
        nodes = self._read("nodes", spec.nodes, lambda path: self._file(path, read_node_list)) if spec.nodes else None
        for kind, digested in (("workload", workloads), ("configuration", configurations), ("plan", plans)):
            self._digests.update({f"{kind} {name}": one[1] for name, one in digested.items() if one})
        if nodes:
            self._digests["nodes"] = nodes[1]
        listed = nodes[0] if nodes else WorkloadNodes(())
        return Inputs(
            {name: one[0] for name, one in plans.items() if one},
            {name: one[0] for name, one in configurations.items() if one},
            {name: one[0].with_assumptions(listed.assumptions) for name, one in workloads.items() if one},
            listed.nodes,
            spec.until if spec.workloads else 0,
            spec.encode,
            spec.hash,
            listed.schedule,
            self._release or "",
        )

    def _check_fit(self, inputs: Inputs) -> None:
        for name, values in inputs.configurations.items():
            for workload in inputs.workloads.values():
                try:
                    refuse_if_unfit(Configuration.of(values), workload, inputs.nodes, schedule=inputs.schedule)
                except YarnException as error:
                    self._fault("configurations", name, error.message, "change the configuration or the workload")

    def _read(self, key: str, name: str, read: Callable[[str], tuple[T, str]]) -> tuple[T, str] | None:
        """The content of a file, and its digest; None after its faults were noted."""
        try:
            return read(name)
        except ConfigurationException as error:
            self._faults += error.faults
        except (YarnException, OSError) as error:
            self._fault(key, name, str(error), "name another one")
        return None

    def _plan(self, name: str) -> tuple[Plan, str]:
        plan = find_plan(name if name in plan_names() else str(self._path.parent / name))
        # The content counts, not its comments, nor the name of its file.
        return plan, _digest(msgspec.json.encode(plan, enc_hook=_plain, order="sorted"))

    def _configuration(self, path: str) -> tuple[dict[str, str], str]:
        configuration = what_if_configuration(self._path.parent / path, self._settings)
        self._warnings[path] = configuration.report.warnings
        values = configuration.conf.values()
        return values, _digest(msgspec.json.encode(values, order="sorted"))

    def _file(self, name: str, read: Callable[[Path], T]) -> tuple[T, str]:
        path = self._path.parent / name
        return read(path), _digest(path.read_bytes())

    def _fault(self, key: str, value: str | None, problem: str, remedy: str) -> None:
        self._faults.append(Fault(key, value, Origin(str(self._path)), problem, remedy))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _plain(value: object) -> object:
    return value.model_dump() if isinstance(value, Section) else repr(value)
