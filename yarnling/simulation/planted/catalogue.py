"""All planted bugs, by name."""

from __future__ import annotations

from collections.abc import Mapping

from yarn.errors import YarnException
from yarn.suggestions import did_you_mean
from yarnling.simulation.planted.application_master import APPLICATION_MASTER_BUGS
from yarnling.simulation.planted.bug import PlantedBug
from yarnling.simulation.planted.node_manager import NODE_MANAGER_BUGS
from yarnling.simulation.planted.resource_manager import RESOURCE_MANAGER_BUGS
from yarnling.simulation.planted.scheduler import SCHEDULER_BUGS

SIMILAR_MAX = 3
GROUPS: Mapping[str, tuple[PlantedBug, ...]] = {
    "Scheduler": SCHEDULER_BUGS,
    "ResourceManager": RESOURCE_MANAGER_BUGS,
    "NodeManager": NODE_MANAGER_BUGS,
    "ApplicationMaster": APPLICATION_MASTER_BUGS,
}
"""{the part of the product: its bugs}"""

BUGS: Mapping[str, PlantedBug] = {bug.name: bug for bugs in GROUPS.values() for bug in bugs}


def find_bug(name: str) -> PlantedBug:
    """The bug of that name. Raises YarnException with the most similar names."""
    if name not in BUGS:
        nearest = did_you_mean(name, BUGS, SIMILAR_MAX)
        raise YarnException(
            f"there is no planted bug {name!r} ({nearest}yarnling simulate --planted-bug list prints all names)"
        )
    return BUGS[name]
