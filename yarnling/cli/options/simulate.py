"""The options of `yarnling simulate` and `yarnling workload import`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from yarnling.cli.shared.arguments import (
    RELEASE_METAVAR,
    Conf,
    Define,
    Json,
    Release,
    Strict,
    memory_mb,
    release,
    release_settings,
    strict_settings,
)

if TYPE_CHECKING:
    from yarnling.workload.defaults import Defaults

_QueueMap = Annotated[
    list[str], typer.Option("--queue-map", metavar="OLD=NEW", help="Submit to queue NEW what the workload has in OLD.")
]
_Expect = Annotated[Path | None, typer.Option(metavar="FILE", help="Expectations that must hold.")]
_TraceFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write what happens, for yarnling timeline, plot and traffic.")
]
_Hashed = Annotated[bool, typer.Option("--hash", help="Print the SHA-256 of every event and effect as the last line.")]
_Until = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="Simulate at most this long: 24h, 30m; stops earlier when all applications have ended."
    ),
]
WorkloadText = Annotated[
    Path, typer.Argument(metavar="FILE", help="A trace, an answer of a ResourceManager, or a summary.")
]
Format = Annotated[
    str, typer.Option("--format", metavar="NAME", help="Format of FILE (default: recognised; `formats` lists them).")
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of everything that is drawn.", min=0)]


class PlanOptions(Struct, frozen=True, kw_only=True):
    """The options of a simulated plan. `plan`: "" with `is_random`."""

    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan file, or the name of a ready-made plan.")] = ""
    is_random: Annotated[bool, typer.Option("--random", help="Draw a plan from the seed.")] = False
    all_faults: Annotated[
        bool, typer.Option("--all-faults", help="With --random: also faults that only the simulation has.")
    ] = False
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of the run (default: random).", min=0)] = None
    runs: Annotated[int, typer.Option(metavar="N", help="Number of runs, each with the next seed.", min=1)] = 1
    release: Release = None
    hashed: _Hashed = False
    no_encode: Annotated[bool, typer.Option("--no-encode", help="Faster: do not turn messages into bytes.")] = False
    shrinks: Annotated[
        bool, typer.Option("--shrink", help="Make the first run that fails smaller; write it as a plan and as a test.")
    ] = False
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where --shrink writes (default: here).")
    ] = Path()
    trace: _TraceFile = None
    as_json: Json = False


class CompareOptions(Struct, frozen=True, kw_only=True):
    """The options of a comparison. `before`, `after`: directories of configurations, or results of runs."""

    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="Directory with *-site.xml files, or the result.json of a run.")
    ]
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The same, after the change.")]
    workload: Annotated[Path | None, typer.Option(metavar="FILE", help="The workload to run on both sides.")] = None
    nodes: Annotated[Path | None, typer.Option(metavar="FILE", help="The machines of the cluster.")] = None
    nodes_after: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The machines after the change (default: as before).")
    ] = None
    until: _Until = "24h"
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the first run.", min=0)] = 1
    seeds: Annotated[
        int, typer.Option(metavar="N", help="Runs of each side; a difference within their spread is noise.", min=1)
    ] = 1
    expect: _Expect = None
    threshold: Annotated[
        float, typer.Option(metavar="PERCENT", help="Do not mention smaller differences.", min=0, max=100)
    ] = 10
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write the reports here.")] = None
    define: Define = []
    release_before: Annotated[
        str | None,
        typer.Option(metavar=RELEASE_METAVAR, help="The release of Hadoop whose rules BEFORE follows.", parser=release),
    ] = None
    release_after: Annotated[
        str | None,
        typer.Option(metavar=RELEASE_METAVAR, help="The same for AFTER, which may be BEFORE again.", parser=release),
    ] = None
    queue_map: _QueueMap = []
    queue_map_after: Annotated[
        list[str],
        typer.Option("--queue-map-after", metavar="OLD=NEW", help="The same for AFTER alone (default: as before)."),
    ] = []
    strict: Strict = False
    as_json: Json = False

    @property
    def seeds_of_runs(self) -> range:
        return range(self.seed, self.seed + self.seeds)

    @property
    def definitions(self) -> list[str]:
        return [*self.define, *strict_settings(self.strict)]


class WorkloadOptions(Struct, frozen=True, kw_only=True):
    """The options of a simulated workload."""

    workload: Annotated[Path, typer.Option(metavar="FILE", help="The applications: see yarnling workload formats.")]
    nodes: Annotated[Path, typer.Option(metavar="FILE", help="The machines of the cluster.")]
    conf: Conf = None
    until: _Until = "24h"
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write report.html, result.json and CSV files.")
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the run.", min=0)] = 1
    expect: _Expect = None
    hashed: _Hashed = False
    define: Define = []
    release: Release = None
    queue_map: _QueueMap = []
    trace: _TraceFile = None
    strict: Strict = False
    as_json: Json = False

    @property
    def definitions(self) -> list[str]:
        return [*self.define, *release_settings(self.release), *strict_settings(self.strict)]


class SweepOptions(Struct, frozen=True, kw_only=True):
    """The options of a sweep. `scheduler`: "" for processes of this machine, `workers` of them; 0 for all cores."""

    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="The description of the sweep (YAML).")]
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="SQLite file of results; continued.")]
    scheduler: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Dask scheduler to use, for example tcp://10.0.0.5:8786.")
    ] = ""
    workers: Annotated[
        int, typer.Option(metavar="N", help="Processes on this machine (default: one for each core).", min=0)
    ] = 0
    release: Release = None
    as_json: Json = False


class SearchOptions(Struct, frozen=True, kw_only=True):
    """The options of a search. `workers`: 0 for all cores; `time`: "" for no bound."""

    conf: Annotated[Path, typer.Option(metavar="DIR", help="The configuration to change: *-site.xml files.")]
    workload: Annotated[Path, typer.Option(metavar="FILE", help="The applications: see yarnling workload formats.")]
    nodes: Annotated[Path, typer.Option(metavar="FILE", help="The machines of the cluster.")]
    goals: Annotated[Path, typer.Option(metavar="FILE", help="Goals, and what may change to meet them (YAML).")]
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", help="Write the change, a report and all runs here; continued."),
    ]
    until: _Until = "24h"
    trials: Annotated[int, typer.Option(metavar="N", help="Try at most so many configurations.", min=1)] = 100
    time: Annotated[str, typer.Option(metavar="TIME", help="Begin no other after this real time: 90s, 30m, 2h.")] = ""
    seeds: Annotated[
        int, typer.Option(metavar="N", help="Runs of a configuration; goals must hold in each.", min=1)
    ] = 3
    first_seed: Annotated[int, typer.Option(metavar="N", help="Seed of the first run.", min=0)] = 1
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the search itself.", min=0)] = 1
    workers: Annotated[
        int, typer.Option(metavar="N", help="Processes on this machine (default: one for each core).", min=0)
    ] = 0
    scheduler: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Dask scheduler to use, for example tcp://10.0.0.5:8786.")
    ] = ""
    define: Define = []
    release: Release = None
    queue_map: _QueueMap = []
    strict: Strict = False
    as_json: Json = False

    @property
    def definitions(self) -> list[str]:
        return [*self.define, *release_settings(self.release), *strict_settings(self.strict)]


class StepOptions(Struct, frozen=True, kw_only=True):
    """The options of stepping through a run."""

    which: Annotated[
        str, typer.Argument(metavar="[SCENE|PLAN]", help="A lesson or a chaos plan (default: allocate).")
    ] = ""
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of a plan or workload (default: 1).")] = None
    workload: Annotated[Path | None, typer.Option(metavar="FILE", help="Step through this workload instead.")] = None
    nodes: Annotated[Path | None, typer.Option(metavar="FILE", help="The machines for --workload.")] = None
    conf: Conf = None
    define: Define = []
    release: Release = None
    change: Annotated[
        list[str], typer.Option(metavar="STEP:CHANGE", help="Make a change after this step, as '135: kill n2'.")
    ] = []
    at: Annotated[
        str,
        typer.Option(
            metavar="STEP|TIME", help="Begin at this step or time, such as 12.5s (default: the first decision)."
        ),
    ] = ""
    web: Annotated[bool, typer.Option("--web", help="Serve a page for a browser instead.")] = False
    port: Annotated[int, typer.Option(metavar="PORT", help="Port of --web.", min=0, max=65535)] = 0
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a page that needs no server instead.")
    ] = None
    prints: Annotated[
        bool, typer.Option("--print", help="Print the steps up to --at instead of showing them one by one.")
    ] = False
    as_json: Json = False


class ImportOptions(Struct, frozen=True, kw_only=True):
    """The options of an import. `nodes`: None if the input itself has the nodes."""

    file: WorkloadText
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The workload to write.")]
    nodes_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the list of nodes to this file.")
    ] = None
    nodes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the nodes are read from (default: the hosts that FILE names)."),
    ] = None
    conf_out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write the configuration of a recording into this directory."),
    ] = None
    format_name: Format = ""
    scale: Annotated[
        float, typer.Option(metavar="FACTOR", help="Load factor: so many times the applications.", min=0)
    ] = 1.0
    seed: Seed = 0
    queue: Annotated[str, typer.Option(metavar="QUEUE", help="Queue of applications without one.")] = "default"
    user: Annotated[str, typer.Option(metavar="USER", help="User of applications without one.")] = "default"
    container_memory: Annotated[
        int, typer.Option(metavar="SIZE", help="Memory of a container: 512, 2GB.", parser=memory_mb)
    ] = 1024
    container_vcores: Annotated[int, typer.Option(metavar="N", help="Vcores of a container.", min=1)] = 1
    task_seconds: Annotated[
        float, typer.Option(metavar="S", help="How long a MapReduce or Tez task lasts.", min=0.001)
    ] = 60.0
    minimum_allocation: Annotated[
        int,
        typer.Option(
            metavar="SIZE",
            help="yarn.scheduler.minimum-allocation-mb of the ResourceManager that reported.",
            parser=memory_mb,
        ),
    ] = 1024
    synth_seconds: Annotated[
        bool,
        typer.Option(
            "--synth-seconds", help="Times of tasks in a SYNTH file are seconds (default: milliseconds, as SLS)."
        ),
    ] = False
    as_json: Json = False

    @property
    def defaults(self) -> Defaults:
        """The default values for fields that the file does not contain."""
        from yarn.resource import Resource
        from yarnling.workload.defaults import Defaults

        return Defaults(
            self.seed,
            Resource(self.container_memory, self.container_vcores),
            self.queue,
            self.user,
            round(self.task_seconds * 1000),
            self.synth_seconds,
            self.minimum_allocation,
        )
