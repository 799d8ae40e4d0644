"""All planted bugs, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tests.mutants.application_master import APPLICATION_MASTER_BUGS
from tests.mutants.bug import PlantedBug
from tests.mutants.node_manager import NODE_MANAGER_BUGS
from tests.mutants.played_nodes import PLAYED_NODE_BUGS
from tests.mutants.resource_manager import RESOURCE_MANAGER_BUGS
from tests.mutants.scheduler import SCHEDULER_BUGS
from yarn.errors import YarnException
from yarn.suggestions import did_you_mean

SIMILAR_MAX = 3
GROUPS: Mapping[str, tuple[PlantedBug, ...]] = {
    "Scheduler": SCHEDULER_BUGS,
    "ResourceManager": RESOURCE_MANAGER_BUGS,
    "NodeManager": NODE_MANAGER_BUGS,
    "ApplicationMaster": APPLICATION_MASTER_BUGS,
    "Played nodes": PLAYED_NODE_BUGS,
}
"""{the part of the product: its bugs}"""

BUGS: Mapping[str, PlantedBug] = {bug.name: bug for bugs in GROUPS.values() for bug in bugs}


def find_bug(name: str) -> PlantedBug:
    """The bug of that name. Raises YarnException with the most similar names."""
    if name not in BUGS:
        nearest = did_you_mean(name, BUGS, SIMILAR_MAX)
        raise YarnException(f"there is no planted bug {name!r} ({nearest}docs/planted-bugs.md lists all)")
    return BUGS[name]
