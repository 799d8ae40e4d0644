"""The defaults of a reader where a trace is silent. Each use of a default is listed in `Workload.assumptions`."""

from __future__ import annotations

from msgspec import Struct

from yarn.resource import Resource

CONTAINER_RESOURCE = Resource(1024, 1)
TASK_MS = 60_000


class Defaults(Struct, frozen=True):
    """Default values for fields that a trace lacks.

    `seed`: of everything that is drawn. `container`: the size of a container. `task_ms`: how long a task of
    MapReduce or Tez lasts. `synth_times_in_seconds`: the times of tasks in a SYNTH file are seconds; SLS takes them as
    milliseconds. `step_mb`: the minimum allocation of the ResourceManager that a report comes from.
    """

    seed: int = 0
    container: Resource = CONTAINER_RESOURCE
    queue: str = "default"
    user: str = "default"
    task_ms: int = TASK_MS
    synth_times_in_seconds: bool = False
    step_mb: int = 1024
