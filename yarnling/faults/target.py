"""The operations that faults need of a cluster: one of processes and a simulated one have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from yarn.errors import YarnException
from yarnling.cluster.network import NetworkFault
from yarnling.faults.history import ProcessRole, ProcessSpan

RM = 0
"""The number that stands for the ResourceManager; nodes are numbered from 1."""
WAIT_S = 10.0
"""The seconds a fault waits for its target (a running container, or a daemon that restarts), unless it is optional."""
POLL_S = 0.05


class NoTarget(YarnException):
    """The fault has no target: for example, no ApplicationMaster runs, or the node is already down."""


class Target(Protocol):
    """A running cluster. Daemons are named by numbers: nodes from 1, and RM.

    Everything is undone by its counterpart, even if several faults overlap: a daemon that was paused twice runs after
    the second `resume`.
    """

    def is_up(self, number: int) -> bool:
        """True if this daemon has a process, which may be paused."""
        ...

    async def kill(self, numbers: Sequence[int], *, containers: bool) -> None:
        """Send SIGKILL to daemons, and if `containers`, to the containers of their nodes as well."""

    async def stop(self, numbers: Sequence[int]) -> None:
        """Send SIGTERM to NodeManagers."""

    async def start(self, numbers: Sequence[int]) -> None:
        """Restart daemons that have exited. No effect on one that runs, or whose node is leaving."""

    def pause(self, number: int) -> None: ...

    def resume(self, number: int) -> None: ...

    async def decommission(self, numbers: Sequence[int], timeout_s: int) -> None:
        """Have nodes leave gracefully; their NodeManagers exit once their containers have ended."""

    async def recommission(self, numbers: Sequence[int]) -> None:
        """Take the nodes again; their NodeManagers are not restarted."""

    async def fill_disk(self, number: int) -> None:
        """Fill the disk of a node's local directory, or that of the state store."""

    def empty_disk(self, number: int) -> None: ...

    def impair(self, key: int, links: Sequence[str], fault: NetworkFault) -> None:
        """Put a fault on links of the network until `mend` is called with the same key."""

    def mend(self, key: int, links: Sequence[str]) -> None: ...

    def running(self, *roles: ProcessRole) -> list[ProcessSpan]:
        """The containers that run in these roles, in the order of their ids."""
        ...

    async def kill_container(self, container: ProcessSpan) -> None:
        """Send SIGKILL to a container; its NodeManager reports exit status 137. Raises NoTarget if it has ended."""

    async def pause_container(self, container: ProcessSpan) -> None:
        """Send SIGSTOP to the processes of a container. Raises NoTarget if it has ended."""

    def resume_container(self, container: ProcessSpan) -> None:
        """Send SIGCONT to the processes that `pause_container` has paused."""


def no_target(*roles: ProcessRole) -> NoTarget:
    """The error for a fault that needs a container in one of these roles, while none runs."""
    return NoTarget(f"no {'ApplicationMaster' if ProcessRole.MASTER in roles else 'container'} is running")
