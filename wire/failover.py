"""The addresses of a service that one of several ResourceManagers serves, and which of them is called.

All proxies of a process that share one `Failover` go on to the next address together, as soon as one of them is refused
(ConfiguredRMFailoverProxyProvider has it for each proxy).
"""

from __future__ import annotations

from collections.abc import Sequence


class Failover:
    """Addresses (`host:port`), one or more; `current` is the one to call."""

    def __init__(self, targets: Sequence[str]) -> None:
        assert targets, "a service has at least one address"
        self.targets = tuple(targets)
        self._index = 0

    @staticmethod
    def of(target: str | Failover) -> Failover:
        return target if isinstance(target, Failover) else Failover((target,))

    def __len__(self) -> int:
        return len(self.targets)

    def __str__(self) -> str:
        return ", ".join(self.targets)

    @property
    def current(self) -> str:
        return self.targets[self._index]

    def leave(self, target: str) -> None:
        """Call the next address from now on, unless another caller has left `target` already."""
        if self.current == target:
            self._index = (self._index + 1) % len(self.targets)
