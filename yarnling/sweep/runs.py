"""The runs of a sweep, what they need, and what comes of them. Pure data, sent to workers and back."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from yarnling.faults.plan import Plan
from yarnling.whatif.figures import GroupFigures, NodeFigures
from yarnling.workload.model import UNCHANGED, NodeSchedule, Workload, WorkloadNode

RANDOM_PLAN = "random"
"""The name that stands for a plan drawn from the seed."""


class SweepRun(Struct, frozen=True, order=True):
    """A simulation: of a plan, or of a workload under a configuration, with a seed. What does not apply is empty."""

    plan: str = ""
    configuration: str = ""
    workload: str = ""
    load_factor: float = 1.0
    seed: int = 0


class Inputs(Struct, frozen=True):
    """The contents of all inputs of runs, without seeds; workers may be on machines that do not have the files.

    `configurations`: {name: {key: value}}. `release`: of Hadoop, whose rules plans follow; "": as each of them says.
    """

    plans: Mapping[str, Plan] = field(default_factory=dict)
    configurations: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    nodes: tuple[WorkloadNode, ...] = ()
    until_ms: int = 0
    encode: bool = True
    hashed: bool = False
    schedule: NodeSchedule = UNCHANGED
    release: str = ""


class RunResult(Struct, frozen=True):
    """The result of a run. `verdict`: its exit status. `trace`: the hash of its trace, "" if it was not asked for.

    For a workload, `queues`: the figures of each leaf queue; `cluster`, `nodes`: of the whole cluster and its machines.
    `wall_s` and `worker` are what the run cost, and where; they differ from one sweep to the next.
    """

    run: SweepRun
    verdict: int
    reasons: str = ""
    events: int = 0
    virtual_s: float = 0.0
    trace: str = ""
    queues: tuple[GroupFigures, ...] = ()
    cluster: GroupFigures | None = None
    nodes: NodeFigures | None = None
    wall_s: float = 0.0
    worker: str = ""


class Sweep(Struct, frozen=True):
    """A sweep to run.

    `runs` are in order. `digests`: the SHA-256 of each input, by its name. `warnings`: by configuration.
    """

    runs: tuple[SweepRun, ...]
    inputs: Inputs
    digests: Mapping[str, str] = field(default_factory=dict)
    warnings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
