"""Which hosts may have NodeManagers (Hadoop's HostsFileReader): an include list and an exclude list."""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct


class HostLists(Struct, frozen=True, dict=True):
    """The include and exclude lists of hosts. Without an include list every host that is not excluded is allowed.

    `excluded`: (host, seconds to wait for the containers there; None: the timeout of the request or the configuration).
    """

    included: tuple[str, ...] = ()
    excluded: tuple[tuple[str, int | None], ...] = ()

    def allows(self, host: str) -> bool:
        """True if the host may have NodeManagers (NodesListManager.isValidNode)."""
        return (not self.included or host in self._included_hosts) and host not in self._timeouts_s

    def is_untracked(self, host: str) -> bool:
        """True for a host that neither list names while there is an include list."""
        return bool(self.included) and host not in self._included_hosts and host not in self._timeouts_s

    def timeout_s(self, host: str, default_s: int) -> int:
        """Seconds to wait for the containers of a host that is decommissioned gracefully; negative: without limit."""
        own = self._timeouts_s.get(host)
        return default_s if own is None else own

    # Every heartbeat looks hosts up here, so the cost must not grow with the length of the lists.

    @cached_property
    def _included_hosts(self) -> frozenset[str]:
        return frozenset(self.included)

    @cached_property
    def _timeouts_s(self) -> dict[str, int | None]:
        return dict(self.excluded)
