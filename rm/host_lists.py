"""Which hosts may have NodeManagers (Hadoop's HostsFileReader): an include list and an exclude list."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostLists:
    """Both lists as the files have them. No include list lets every host in that is not excluded.

    `excluded` (host, how many seconds its containers are waited for; None: as the request or the configuration says).
    """

    included: tuple[str, ...] = ()
    excluded: tuple[tuple[str, int | None], ...] = ()

    def allows(self, host: str) -> bool:
        """NodesListManager.isValidNode."""
        if not self.included and not self.excluded:
            return True
        return (not self.included or host in self.included) and not self._excludes(host)

    def is_untracked(self, host: str) -> bool:
        """True for a host that neither list names while there is an include list."""
        return bool(self.included) and host not in self.included and not self._excludes(host)

    def timeout_s(self, host: str, default_s: int) -> int:
        """How long a host's containers are waited for when it is decommissioned gracefully; negative: for ever."""
        own = dict(self.excluded).get(host)
        return default_s if own is None else own

    def _excludes(self, host: str) -> bool:
        return any(host == name for name, _ in self.excluded)
