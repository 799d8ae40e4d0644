"""The bounds of workloads and node lists, and the types of the values in their files.

The bounds allow a day of a large cluster, 100,000 applications with 5 million containers, several times over. They keep
a wrong or hostile file from filling the memory.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from wire.files.yaml_file import WHOLE_MEGABYTES

FILE_BYTES_MAX = 1 << 30
APPLICATIONS_MAX = 1_000_000
CONTAINERS_MAX = 20_000_000
"""The maximum of all containers of a workload."""
GROUPS_MAX = 100_000
"""The maximum of groups of one application. A trace that names hosts has a group for each host."""
NODES_MAX = 100_000
NODE_EVENTS_MAX = 200_000
"""The maximum of all changes of nodes in a file."""
TIME_MS_MAX = 366 * 24 * 3_600_000
"""The longest duration, and the latest submission: a year."""
MEMORY_MB_MAX = 1 << 40
AMOUNT_MAX = (1 << 31) - 1
FAULTS_MAX = 100
"""The number of faults of one file that are listed."""

Name = Annotated[str, Field(min_length=1, max_length=255)]
Text = Annotated[str, Field(max_length=2000)]
Milliseconds = Annotated[int, Field(ge=0, le=TIME_MS_MAX)]
MemoryMb = Annotated[int, WHOLE_MEGABYTES, Field(ge=1, le=MEMORY_MB_MAX)]
Vcores = Annotated[int, Field(ge=1, le=AMOUNT_MAX)]
Amount = Annotated[int, Field(ge=0, le=AMOUNT_MAX)]
Priority = Annotated[int, Field(ge=0, le=AMOUNT_MAX)]
Containers = Annotated[int, Field(ge=1, le=CONTAINERS_MAX)]
