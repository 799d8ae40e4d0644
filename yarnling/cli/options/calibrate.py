"""The options of `yarnling workload calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from yarnling.cli.shared.arguments import Conf, Define, Json

if TYPE_CHECKING:
    from yarnling.workload.defaults import Defaults


class CalibrateOptions(Struct, frozen=True, kw_only=True):
    """The options of a calibration. `conf`, `nodes`: None if the recording has them."""

    record: Annotated[
        Path, typer.Argument(metavar="RECORD", help="What yarnling record wrote, or the log of a ResourceManager.")
    ]
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The workload to write.")]
    conf: Conf = None
    nodes: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The machines of the cluster (default: as recorded).")
    ] = None
    nodes_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the recorded nodes to this file.")
    ] = None
    conf_out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write the recorded configuration into this directory.")
    ] = None
    define: Define = []
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the first run of each replay.", min=0)] = 1
    seeds: Annotated[int, typer.Option(metavar="N", help="Runs of each replay, whose mean is compared.", min=1)] = 3
    task_seconds: Annotated[
        float, typer.Option(metavar="S", help="How long a MapReduce or Tez task lasts.", min=0.001)
    ] = 60.0
    as_json: Json = False

    @property
    def defaults(self) -> Defaults:
        """The default values for fields that the recording does not contain."""
        from yarnling.workload.defaults import Defaults

        return Defaults(task_ms=round(self.task_seconds * 1000))
